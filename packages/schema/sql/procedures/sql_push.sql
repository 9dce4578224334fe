-- sql_push: stores messages in the caller's transaction. Part of the SQL interface's inside.
--
-- in   as sql_read_items
-- out  item        index from 1
--      is_new      false: the partition has this transactionId already, at this offset
--      queue, transaction_id, trace_id, partition_id, message_offset
--
-- Locks: names of new queues and partitions, then the partitions' rows by id, waiting, until the caller's
-- transaction ends. Under these locks the keys are compared with everything in the dedup window, so
-- duplicates are exact, also against a push that was under way elsewhere. Raises QN429 where a queue has
-- maxSize unfinished messages or more.
create or replace function queen.sql_push(p_items jsonb, p_paths text[], p_missing text)
returns table (item int4, is_new bool, queue text, transaction_id text, trace_id text, partition_id int8,
               message_offset int8)
language plpgsql
set search_path = queen, pg_temp
set jit = off
as $$
#variable_conflict use_column
declare
  -- one element per item
  v_queue     text[];
  v_name      text[];
  v_id        text[];
  v_trace     text[];
  v_key       bytea[];
  v_fragment  bytea[];
  v_lane      int4[];
  v_first     int4[];                        -- the first item of the call with the same lane and transactionId
  v_offset    int8[];
  v_new       bool[];
  v_segment   int4[];
  -- one element per lane
  v_queues    text[];
  v_names     text[];
  v_partition int8[];
  v_next      int8[];
  v_window    int8[];                        -- the dedup window's lowest offset
  v_encrypted text;
  v_full      text;
  v_suspects  int4[];
  v_appended  int4[] := '{}';                -- the lanes that get messages
  v_counts    int4[] := '{}';
  v_items     int4;
  v_locked    int4;
  v_last      int4 := 0;
  v_segments  int4 := 0;
  v_messages  int4;
  v_bytes     int4;
  v_messages_max constant int4 := 128;
  v_bytes_max    constant int4 := 65536;
  r record;
begin
  select array_agg(i.queue order by i.item), array_agg(i.partition order by i.item),
         array_agg(i.transaction_id order by i.item), array_agg(i.trace_id order by i.item),
         array_agg(i.key order by i.item), array_agg(i.fragment order by i.item)
    into v_queue, v_name, v_id, v_trace, v_key, v_fragment
    from queen.sql_read_items(p_items, p_paths, p_missing) i;
  v_items := coalesce(cardinality(v_id), 0);
  if v_items = 0 then
    return;
  end if;

  select array_agg(i.lane order by i.item), array_agg(i.first order by i.item)
    into v_lane, v_first
    from (select i.item, (dense_rank() over (order by i.queue, i.name))::int4 as lane,
                 (min(i.item) over (partition by i.queue, i.name, i.id))::int4 as first
            from unnest(v_queue, v_name, v_id) with ordinality as i (queue, name, id, item)) i;
  select array_agg(l.queue order by l.lane), array_agg(l.name order by l.lane)
    into v_queues, v_names
    from (select distinct i.lane, i.queue, i.name from unnest(v_lane, v_queue, v_name) as i (lane, queue, name)) l;

  for attempt in 1 .. 10 loop
    select array_agg(o.partition_id order by o.lane) into v_partition
      from queen.open_lanes(v_queues, v_names, attempt > 1) o;
    if array_position(v_partition, null) is null then
      perform 1 from queen.partitions p where p.id = any (v_partition) order by p.id for no key update;
      get diagnostics v_locked = row_count;
      exit when v_locked = cardinality(v_partition);
    end if;
    if attempt = 10 then
      raise exception 'a queue or partition is being deleted, push again' using errcode = '40001';
    end if;
  end loop;

  select array_agg(p.next_offset order by l.lane),
         array_agg(case when p.next_offset - q.dedup_messages_min <= p.start_offset then p.start_offset
                        else greatest(p.start_offset, p.next_offset - q.dedup_messages_max,
                               least(p.next_offset - q.dedup_messages_min,
                                     queen.offset_at(p.id, clock_timestamp()
                                                     - q.dedup_window_seconds * interval '1 second'))) end
                   order by l.lane),
         min(q.name) filter (where q.encryption_enabled)
    into v_next, v_window, v_encrypted
    from unnest(v_partition) with ordinality as l (id, lane)
    join queen.partitions p on p.id = l.id
    join queen.queues q on q.id = p.queue_id;
  if v_encrypted is not null then
    raise exception 'queue %: messages of this queue are encrypted, push them through a broker', v_encrypted
      using errcode = 'QN400';
  end if;
  select format('queue %s has maxSize (%s) unfinished messages or more, push again when consumers are further',
                q.name, q.max_queue_size) into v_full
    from queen.queues q
   where q.name = any (v_queues) and q.max_queue_size > 0 and queen.queue_depth(q.id) >= q.max_queue_size
   order by q.name limit 1;
  if v_full is not null then
    raise exception '%', v_full using errcode = 'QN429';
  end if;

  v_offset := array_fill(null::int8, array[v_items]);
  v_new := array_fill(false, array[v_items]);
  v_segment := array_fill(0, array[v_items]);

  select array_agg(i.item::int4) into v_suspects
    from unnest(v_first, v_lane) with ordinality as i (first, lane, item)
   where i.item = i.first and v_next[i.lane] > v_window[i.lane];
  for r in
    select v_suspects[f.search] as item, min(f.at_offset) as at_offset
      from queen.sql_find_messages(
             v_partition, v_window, v_next,
             (select array_agg(v_lane[t.item] order by t.at) from unnest(v_suspects) with ordinality as t (item, at)),
             (select array_agg(v_id[t.item] order by t.at) from unnest(v_suspects) with ordinality as t (item, at))) f
     group by f.search
  loop
    v_offset[r.item] := r.at_offset;
  end loop;

  for r in
    select i.item::int4 as item, i.lane, octet_length(i.fragment) as bytes
      from unnest(v_first, v_lane, v_fragment) with ordinality as i (first, lane, fragment, item)
     where i.item = i.first and v_offset[i.item] is null
     order by i.lane, i.item
  loop
    if r.lane <> v_last then
      v_last := r.lane;
      v_appended := v_appended || r.lane;
      v_counts := v_counts || 0;
      v_messages := v_messages_max;
    end if;
    if v_messages >= v_messages_max or v_bytes + r.bytes > v_bytes_max then
      v_segments := v_segments + 1;
      v_messages := 0;
      v_bytes := 0;
    end if;
    v_messages := v_messages + 1;
    v_bytes := v_bytes + r.bytes;
    v_segment[r.item] := v_segments;
    v_new[r.item] := true;
    v_offset[r.item] := v_next[r.lane] + v_counts[cardinality(v_counts)];
    v_counts[cardinality(v_counts)] := v_counts[cardinality(v_counts)] + 1;
  end loop;

  if v_segments > 0 then
    for r in
      select a.lane, a.status
        from (select array_agg(array_position(v_appended, s.lane) order by s.segment) as lane,
                     array_agg(s.relative order by s.segment) as relative,
                     array_agg(s.messages order by s.segment) as messages,
                     array_agg(s.keys order by s.segment) as keys,
                     array_agg(s.ends order by s.segment) as ends,
                     array_agg(s.body order by s.segment) as body
                from (select m.segment, m.lane, (min(m.at_offset) - v_next[m.lane])::int4 as relative,
                             count(*)::int4 as messages, string_agg(m.key, '' order by m.item) as keys,
                             string_agg(int4send(m.ends_at), '' order by m.item) as ends,
                             string_agg(m.fragment, '' order by m.item) as body
                        from (select i.item, i.segment, i.lane, i.at_offset, i.key, i.fragment,
                                     (sum(octet_length(i.fragment)) over (partition by i.segment order by i.item))::int4
                                       as ends_at
                                from unnest(v_segment, v_lane, v_offset, v_key, v_fragment) with ordinality
                                     as i (segment, lane, at_offset, key, fragment, item)
                               where i.segment > 0) m
                       group by m.segment, m.lane) s) s
       cross join lateral queen.append(
               (select array_agg(v_partition[l.lane] order by l.at) from unnest(v_appended) with ordinality as l (lane, at)),
               (select array_agg(v_next[l.lane] order by l.at) from unnest(v_appended) with ordinality as l (lane, at)),
               v_counts, s.lane, s.relative, s.messages, s.keys, s.ends, s.body) a
    loop
      if r.status <> 0 then
        raise exception 'a partition that is locked here was not appended to: status %', r.status;
      end if;
    end loop;
    perform queen.sql_wake((select array_agg(v_partition[l.lane]) from unnest(v_appended) as l (lane)), '{}');
  end if;

  return query
  select i.item::int4, v_new[i.item], i.queue, i.id, i.trace, v_partition[i.lane], v_offset[i.first]
    from unnest(v_queue, v_id, v_trace, v_lane, v_first) with ordinality as i (queue, id, trace, lane, first, item)
   order by i.item;
end
$$;

revoke execute on function queen.sql_push(jsonb, text[], text) from public;
