-- pick_messages: a page of messages, the newest segments first, without walking the log.
--
-- in   p_queue, p_partition, p_namespace, p_task   null: any
--      p_status                 see offsets_with_status; null: any
--      p_from, p_to             stored in [p_from, p_to)
--      p_before_at, p_before_partition, p_before_offset   where the page before ended; null: the first page
--      p_limit, p_offset        messages of the page, messages to skip before it
-- out  partition_id, at_offset, created_at
--      header   the fragment without the payload; null in the last row, which is there if more may follow,
--               and says where this page ended
--
-- Order: created_at, then partition, then offset, all descending. Merged are the 1,000 lanes that were pushed
-- to last before the page's place, and of those that were pushed to later, too, 1,000: what is older in further
-- such lanes is not shown. A lane is walked backwards from where the filter's ranges end, a segment a step: one
-- or two index probes. Within one lane skipping is arithmetic, because offsets are dense (the places of deleted
-- messages count). After 20,000 steps the page ends, however full it is.
create or replace function queen.pick_messages(
  p_queue int8, p_partition int8, p_namespace text, p_task text, p_status text, p_from timestamptz, p_to timestamptz,
  p_before_at timestamptz, p_before_partition int8, p_before_offset int8, p_limit int4, p_offset int8)
returns table (partition_id int8, at_offset int8, created_at timestamptz, header bytea)
language plpgsql stable
set search_path = queen, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_lanes_max constant int4 := 1000;
  v_steps_max constant int4 := 20000;
  v_id     int8[] := '{}';
  v_wanted int8multirange[] := '{}';         -- offsets of the lane that are still to come
  v_at     timestamptz[] := '{}';            -- created_at of the newest of them; null: the lane is done
  v_want   int8multirange;
  v_here   int8multirange;
  v_skip   int8 := p_offset;
  v_left   int4 := p_limit;
  v_count  int8;
  v_high   int8;
  v_live   int8[];
  v_last   int8;
  v_step   int4 := 0;
  v_bound  timestamptz := least(p_to, p_before_at);  -- nothing younger is wanted
  v_lanes  text;
  v_older  int4 := 0;                        -- lanes that are all older than the bound
  v_edge_at timestamptz;                     -- the last of them: what is older may be in lanes not looked at
  v_edge_id int8;
  i        int4;
  l        record;
  s        record;
begin
  v_lanes :=
    ' p.id, p.start_offset, p.next_offset, p.last_at, p.created_at from queen.partitions p'
    || case when p_namespace is not null or p_task is not null
            then ' join queen.queues q on q.id = p.queue_id' else '' end
    || ' where p.last_at >= $5'
    || case when p_partition is not null then ' and p.id = $1' else '' end
    || case when p_queue is not null then ' and p.queue_id = $2' else '' end
    || case when p_namespace is not null then ' and q.namespace = $3' else '' end
    || case when p_task is not null then ' and q.task = $4' else '' end;
  for l in execute
    '(select true as is_older,' || v_lanes || ' and p.last_at < $7 order by p.last_at desc, p.id desc limit $6)'
    || ' union all (select false,' || v_lanes || ' and p.last_at >= $7 order by p.last_at limit $6)'
    using p_partition, p_queue, p_namespace, p_task, p_from, v_lanes_max, v_bound
  loop
    if l.is_older then
      v_older := v_older + 1;
      v_edge_at := l.last_at;
      v_edge_id := l.id;
    end if;
    v_high := case when l.last_at < p_to then l.next_offset else queen.offset_at(l.id, p_to) end;
    if p_before_at is not null and (l.last_at >= p_before_at or l.id = p_before_partition) then
      v_high := least(v_high, case
        when l.id = p_before_partition then p_before_offset
        when l.id < p_before_partition then queen.offset_at(l.id, p_before_at + interval '1 microsecond')
        else queen.offset_at(l.id, p_before_at) end);
    end if;
    v_want := int8multirange(int8range(
      case when l.created_at >= p_from then l.start_offset else least(v_high, queen.offset_at(l.id, p_from)) end,
      greatest(v_high, l.start_offset)));
    if p_status is not null then
      v_want := v_want * queen.offsets_with_status(l.id, p_status);
    end if;
    continue when isempty(v_want);
    if p_partition is not null then
      while v_skip > 0 and not isempty(v_want) loop
        select upper(r) - lower(r) into v_count from unnest(v_want) as r order by r desc limit 1;
        v_count := least(v_count, v_skip);
        v_want := v_want - int8multirange(int8range(upper(v_want) - v_count, null));
        v_skip := v_skip - v_count;
      end loop;
      continue when isempty(v_want);
    end if;
    v_id := array_append(v_id, l.id);
    v_wanted := array_append(v_wanted, v_want);
    v_at := array_append(v_at, case when upper(v_want) = l.next_offset then l.last_at
      else (select s.created_at from queen.segments s
             where s.partition_id = l.id and s.first_offset < upper(v_want)
             order by s.first_offset desc limit 1) end);
  end loop;

  loop
    select n into i from unnest(v_at, v_id) with ordinality as h (at, id, n)
     where h.at is not null order by h.at desc, h.id desc limit 1;
    if v_older = v_lanes_max and (not found or (v_at[i], v_id[i]) < (v_edge_at, v_edge_id)) then
      return query
      select v_edge_id, coalesce((select upper(v_wanted[h.n]) from unnest(v_id) with ordinality as h (id, n)
                                   where h.id = v_edge_id), 0), v_edge_at, null::bytea;
      return;
    end if;
    exit when not found;
    v_step := v_step + 1;
    v_want := v_wanted[i];
    select s.first_offset, s.created_at into s
      from queen.segments s
     where s.partition_id = v_id[i] and s.first_offset < upper(v_want)
     order by s.first_offset desc limit 1;
    if not found then
      v_at[i] := null;
      continue;
    end if;
    v_here := v_want * int8multirange(int8range(s.first_offset, null));
    v_count := (select coalesce(sum(upper(r) - lower(r)), 0) from unnest(v_here) as r);
    if v_skip >= v_count then
      v_skip := v_skip - v_count;
      v_last := s.first_offset;
    else
      v_live := array(
        select b.first_offset + n
          from (select g.first_offset, g.count, g.ends from queen.segments g
                 where g.partition_id = v_id[i] and g.first_offset = s.first_offset offset 0) b
         cross join lateral generate_series(0, b.count - 1) as n
         where v_here @> (b.first_offset + n) and queen.int4_at(b.ends, n) > queen.int4_at(b.ends, n - 1)
         order by 1 desc
        limit v_left offset v_skip);
      -- `body || ''` is the body out of its compression, once.
      return query
      select v_id[i], m.at_offset, s.created_at,
             substring(m.fragment from 1 for position('\x2c2264617461223a'::bytea in m.fragment) - 1)
        from (select o.at_offset, queen.fragment_at(b.ends, b.body, (o.at_offset - b.first_offset)::int4) as fragment
                from (select g.first_offset, g.ends, g.body || ''::bytea as body from queen.segments g
                       where g.partition_id = v_id[i] and g.first_offset = s.first_offset offset 0) b
               cross join lateral unnest(v_live) as o (at_offset)) m
       order by m.at_offset desc;
      v_skip := 0;
      v_left := v_left - cardinality(v_live);
      v_last := case when v_left <= 0 then v_live[cardinality(v_live)] else s.first_offset end;
    end if;

    v_want := v_want * int8multirange(int8range(null, v_last));
    v_wanted[i] := v_want;
    if isempty(v_want) then
      v_at[i] := null;
    else
      v_at[i] := (select g.created_at from queen.segments g
                   where g.partition_id = v_id[i] and g.first_offset < upper(v_want)
                   order by g.first_offset desc limit 1);
    end if;
    if v_left <= 0 or v_step >= v_steps_max then
      if v_older = v_lanes_max or exists (select 1 from unnest(v_at) as a where a is not null) then
        return query select v_id[i], v_last, s.created_at, null::bytea;
      end if;
      return;
    end if;
  end loop;
end
$$;
