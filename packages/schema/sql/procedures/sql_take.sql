-- sql_take: leases lanes of one queue, whose cursors the caller's transaction has locked. Part of the SQL
-- interface's inside.
--
-- in   p_partition  the lanes; they share p_budget, first come first
--      p_lease_s    null: as the queue says
-- out  one row per lane, as queen.take without the segments; status 10: paused. A message whose attempts were used up by leases
--      that ran out is buried, and what is behind it is taken.
create or replace function queen.sql_take(
  p_partition int8[], p_group int4, p_budget int4, p_token int8, p_lease_s int4, p_auto_ack bool)
returns table (partition_id int8, status int2, from_offset int8, to_offset int8, acked int8multirange,
               expires_at timestamptz)
language plpgsql
set search_path = queen, pg_temp
as $$
#variable_conflict use_column
declare
  v_queue     queen.queues;
  v_lanes     int8[];
  v_left      int4 := p_budget;
  v_exhausted int8[];
  v_paused    int8[];
  v_count     int4;
  v_everything constant int8 := 9223372036854775807;
  r record;
begin
  select q.* into v_queue from queen.partitions p join queen.queues q on q.id = p.queue_id where p.id = p_partition[1];
  select case when s.everything then p_partition else s.lanes end into v_paused
    from queen.sql_pauses(v_queue.id, p_group) s;
  return query
  select l.id, 10::int2, null::int8, null::int8, null::int8multirange, null::timestamptz
    from unnest(p_partition) as l (id) where l.id = any (v_paused);
  v_lanes := array(select l.id from unnest(p_partition) with ordinality as l (id, at)
                    where l.id <> all (v_paused) order by l.at);
  if v_lanes = '{}' then
    return;
  end if;
  -- A message of a lane is buried at most once per round; several in a row need as many rounds.
  for round in 1 .. 4 loop
    v_count := cardinality(v_lanes);
    v_exhausted := '{}';
    for r in
      select t.lane, t.status, t.from_offset, t.to_offset, t.acked, t.expires_at
        from queen.take(
               array_fill(0, array[v_count]), array_fill(v_left, array[v_count]), v_lanes,
               array_fill(p_group, array[v_count]), array_fill(p_token, array[v_count]),
               array_fill(coalesce(p_lease_s, nullif(v_queue.lease_time, 0), 60), array[v_count]),
               array_fill(p_auto_ack, array[v_count]), array_fill(v_queue.delayed_processing, array[v_count]),
               array_fill(v_queue.window_buffer, array[v_count]),
               array_fill(coalesce(v_queue.ttl, 0), array[v_count]),
               array_fill(queen.sql_retry_limit(v_queue), array[v_count]),
               array_fill(0::int8, array[v_count]), array_fill(v_everything, array[v_count])) t
    loop
      if r.status = 8 then
        v_exhausted := v_exhausted || v_lanes[r.lane + 1];
        continue;
      end if;
      if r.status = 0 then
        v_left := v_left - (r.to_offset - r.from_offset)::int4;
      end if;
      return query select v_lanes[r.lane + 1], r.status, r.from_offset, r.to_offset, r.acked::int8multirange, r.expires_at;
    end loop;
    exit when v_exhausted = '{}' or v_left <= 0;
    perform queen.bury_expired(e.partition_id, p_group, queen.sql_retry_limit(v_queue))
       from unnest(v_exhausted) as e (partition_id);
    v_lanes := v_exhausted;
  end loop;
end
$$;

revoke execute on function queen.sql_take(int8[], int4, int4, int8, int4, bool) from public;
