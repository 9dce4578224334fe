-- sql_pop: serves the requests of pops in the caller's transaction. Part of the SQL interface's inside.
--
-- in   p_requests  as sql_read_pop
--      p_named     whether every request must name its partition
--      p_fetch     whether the messages are wanted, or only the lease
-- out  [{idx, result}], as the functions that call it say
--
-- Locks: rows of new groups and cursors; then the cursors of the partitions that are named, by (partition,
-- group), waiting. A pop of any partition waits for no cursor. All are held until the caller's transaction ends.
create or replace function queen.sql_pop(p_requests jsonb, p_named bool, p_fetch bool) returns jsonb
language plpgsql
set search_path = queen, pg_temp
as $$
#variable_conflict use_column
declare
  v_asks       jsonb[] := '{}';              -- sql_read_pop's rows, with the ids of queue, group and partition
  v_ask        jsonb;
  v_answers    jsonb[] := '{}';
  v_result     jsonb;
  v_messages   jsonb;
  v_more       jsonb;
  v_token      int8;
  v_lanes      int8[];
  v_tried      int8[];
  v_taken      int8[];
  v_names      text[];
  v_from       int8[];
  v_to         int8[];
  v_acked      int8multirange[];
  v_expires    timestamptz;
  v_reason     text;
  v_complete   bool;
  v_stopped    bool;                         -- nothing of the queue is delivered to the group now
  v_paused     int8[];
  v_left       int4;
  v_lease      text;
  r record;
begin
  for r in
    select to_jsonb(a) || jsonb_build_object('idx', coalesce(q.request -> 'idx', to_jsonb(q.at - 1))) as ask
      from jsonb_array_elements(p_requests) with ordinality as q (request, at)
     cross join lateral queen.sql_read_pop(q.request, 'requests[' || q.at - 1 || ']') a
     order by q.at
  loop
    if p_named and r.ask ->> 'partition' is null then
      raise exception 'requests[%].partition_name: Partition_name must not be empty', cardinality(v_asks)
        using errcode = 'QN400';
    end if;
    v_asks := v_asks || r.ask;
  end loop;

  for r in
    select distinct on (a.ask ->> 'queue', a.ask ->> 'consumer_group') a.ask
      from unnest(v_asks) with ordinality as a (ask, at)
     order by a.ask ->> 'queue', a.ask ->> 'consumer_group', a.at
  loop
    perform 1 from queen.open_group(r.ask ->> 'queue', r.ask ->> 'consumer_group', r.ask ->> 'mode',
                                    (r.ask ->> 'start_at')::timestamptz);
  end loop;
  select array_agg(a.ask || jsonb_build_object('queue_id', q.id, 'group_id', g.id, 'partition_id', p.id) order by a.at)
    into v_asks
    from unnest(v_asks) with ordinality as a (ask, at)
    left join queen.queues q on q.name = a.ask ->> 'queue'
    left join queen.consumer_groups g on g.queue_id = q.id and g.name = a.ask ->> 'consumer_group'
    left join queen.partitions p on p.queue_id = q.id and p.name = a.ask ->> 'partition';

  for r in
    select n.partition_id, n.group_id
      from (select distinct (a ->> 'partition_id')::int8 as partition_id, (a ->> 'group_id')::int4 as group_id
              from unnest(v_asks) as a where a ->> 'partition_id' is not null) n
     where not exists (select 1 from queen.partition_consumers c
                        where c.partition_id = n.partition_id and c.group_id = n.group_id)
     order by n.partition_id, n.group_id
  loop
    -- As sql_find_lanes: who makes a cursor holds this, so that a pop of any lane can pass on.
    perform pg_advisory_xact_lock(hashtextextended('queen.cursor/' || r.partition_id || '/' || r.group_id, 0));
    perform 1 from queen.open_cursors(array[r.partition_id], array[r.group_id]);
  end loop;
  perform 1
     from (select distinct (a ->> 'partition_id')::int8 as partition_id, (a ->> 'group_id')::int4 as group_id
             from unnest(v_asks) as a where a ->> 'partition_id' is not null) n
     join queen.partition_consumers c on c.partition_id = n.partition_id and c.group_id = n.group_id
    order by c.partition_id, c.group_id
      for no key update of c;

  foreach v_ask in array coalesce(v_asks, '{}') loop
    v_token := queen.sql_token();
    v_taken := '{}';
    v_from := '{}';
    v_to := '{}';
    v_acked := '{}';
    v_expires := null;
    v_left := (v_ask ->> 'batch')::int4;
    v_reason := 'no_available_partition';
    v_complete := true;
    v_tried := '{}';
    select s.everything, s.lanes into v_stopped, v_paused
      from queen.sql_pauses((v_ask ->> 'queue_id')::int8, (v_ask ->> 'group_id')::int4) s;
    if v_stopped then
      v_reason := 'paused';
    end if;
    loop
      exit when v_stopped;
      if v_ask ->> 'partition' is null then
        exit when v_ask ->> 'group_id' is null;
        select f.lanes, f.complete into v_lanes, v_complete
          from queen.sql_find_lanes((v_ask ->> 'queue_id')::int8, (v_ask ->> 'group_id')::int4,
                                    (v_ask ->> 'partitions')::int4 - cardinality(v_taken), v_tried) f;
        exit when v_lanes = '{}';
      elsif v_ask ->> 'partition_id' is null or v_ask ->> 'group_id' is null then
        v_reason := 'partition_not_found';
        exit;
      else
        v_lanes := array[(v_ask ->> 'partition_id')::int8];
      end if;
      for r in
        select t.* from queen.sql_take(v_lanes, (v_ask ->> 'group_id')::int4, v_left, v_token,
                                       (v_ask ->> 'lease_s')::int4, (v_ask ->> 'auto_ack')::bool) t
      loop
        if r.status = 0 then
          v_taken := v_taken || r.partition_id;
          v_from := v_from || r.from_offset;
          v_to := v_to || r.to_offset;
          v_acked := v_acked || coalesce(r.acked, '{}');
          v_expires := least(v_expires, r.expires_at);
          v_left := v_left - (r.to_offset - r.from_offset)::int4;
        elsif v_ask ->> 'partition' is not null then
          v_reason := case r.status when 2 then 'partition_not_found' when 4 then 'lease_held' when 5 then 'delayed'
                                    when 6 then 'window_buffer' when 7 then 'retry_delay' when 10 then 'paused'
                                    else v_reason end;
        end if;
      end loop;
      v_tried := v_tried || v_lanes;
      exit when v_ask ->> 'partition' is not null or v_left <= 0
             or cardinality(v_taken) >= (v_ask ->> 'partitions')::int4;
    end loop;

    if v_taken = '{}' and v_ask ->> 'partition' is null and exists (
         select 1 from queen.partitions p
           left join queen.partition_consumers c
             on c.partition_id = p.id and c.group_id = (v_ask ->> 'group_id')::int4
          where p.id = any (v_paused) and p.next_offset > greatest(coalesce(c.committed, 0), p.start_offset))
    then
      v_reason := 'paused';
    end if;
    if v_taken = '{}' then
      v_result := jsonb_build_object('success', false, 'error', v_reason, 'messages', '[]'::jsonb);
      if not v_complete then
        v_result := v_result || jsonb_build_object('complete', false);
      end if;
    else
      v_lease := case when (v_ask ->> 'auto_ack')::bool then '' else queen.lease_id(v_token, v_taken) end;
      select array_agg(p.name order by t.at) into v_names
        from unnest(v_taken) with ordinality as t (id, at) join queen.partitions p on p.id = t.id;
      v_result := jsonb_build_object(
        'success', true, 'queue', v_ask ->> 'queue', 'partition', v_names[1],
        'partitionId', queen.partition_uuid(v_taken[1]), 'leaseId', v_lease,
        'consumerGroup', v_ask ->> 'consumer_group', 'partitionsClaimed', cardinality(v_taken));
      if p_fetch then
        v_messages := '[]';
        for i in 1 .. cardinality(v_taken) loop
          v_more := jsonb_build_object('partitionId', queen.partition_uuid(v_taken[i]), 'partition', v_names[i],
                                       'leaseId', v_lease, 'consumerGroup', v_ask ->> 'consumer_group');
          v_messages := v_messages || queen.sql_messages(v_taken[i], v_from[i], v_to[i], v_acked[i],
                                                         (v_ask ->> 'data_text')::bool, v_more);
        end loop;
        v_result := v_result || jsonb_build_object('messages', v_messages);
      else
        v_result := v_result || jsonb_build_object(
          'expiresAt', to_char(v_expires at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'));
      end if;
    end if;
    v_answers := v_answers || jsonb_build_object('idx', v_ask -> 'idx', 'result', v_result);
  end loop;
  return to_jsonb(v_answers);
end
$$;

revoke execute on function queen.sql_pop(jsonb, bool, bool) from public;
