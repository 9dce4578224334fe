-- clear_lanes: removes all messages from lanes of a queue, a bounded number at a time.
--
-- in   p_queue      the queue
--      p_partition  only this lane; null: all, from p_after on
--      p_after      the last lane that is done; 0 at first
--      p_below      of the lane after it, only what is below this offset; null: everything it holds now
--      p_messages   remove no more than about so many; of one lane at least a segment
-- out  one row
--      after, below   for the next call; after is null when all is done
--      lanes, messages   lanes that were finished, messages that were removed (places of deleted ones included)
--      released     lanes in which a lease ended
--
-- A lane's messages go whole, up to an offset that was its end under its lock, so that a push is removed whole
-- or not at all. At once every group is moved behind them: leases end and their tokens are dead, failures and
-- delays are forgotten. Where there are too many, the oldest go first, and start_offset follows what is gone:
-- at any moment the log is what it says, and who stops half-way can go on by clearing again. Traces of the
-- messages go with them; dead letters stay. Offsets are not used again. Brokers are told to drop what they hold.
--
-- Locks, waiting: the queue, partitions by id, cursors by (partition, group).
create or replace function queen.clear_lanes(
  p_queue int8, p_partition int8, p_after int8, p_below int8, p_messages int8)
returns table (after int8, below int8, lanes int4, messages int8, released int8[])
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_lanes_max constant int4 := 1000;
  v_told_max  constant int4 := 300;      -- a notification holds less than 8,000 bytes
  v_locked    int8[];
  v_lanes     int8[];
  v_end       int8[];                    -- everything below is finished for all groups
  v_cut       int8[];                    -- everything below is removed
  v_messages  int8;
  v_first     int8;
  v_released  int8[];
begin
  perform 1 from queen.queues q where q.id = p_queue for key share;
  v_locked := array(select p.id from queen.partitions p
                     where p.queue_id = p_queue and p.id > p_after and (p_partition is null or p.id = p_partition)
                     order by p.id limit v_lanes_max
                       for no key update);

  select array_agg(l.id order by l.id), array_agg(l.end_offset order by l.id),
         sum(l.end_offset - l.start_offset), min(l.start_offset) filter (where l.place = 1)
    into v_lanes, v_end, v_messages, v_first
    from (select t.*, row_number() over (order by t.id) as place,
                 sum(t.end_offset - t.start_offset) over (order by t.id) as running
            from (select p.id, p.start_offset,
                         case when p.id = v_locked[1] then coalesce(p_below, p.next_offset)
                              else p.next_offset end as end_offset
                    from queen.partitions p where p.id = any (v_locked)) t) l
   where l.place = 1 or l.running <= p_messages;
  if v_lanes is null then
    return query select null::int8, null::int8, 0, 0::int8, '{}'::int8[];
    return;
  end if;

  v_cut := v_end;
  if v_messages > p_messages then        -- the first lane alone is too long: its oldest segments
    v_cut[1] := coalesce((select s.first_offset from queen.segments s
                           where s.partition_id = v_lanes[1] and s.first_offset > v_first
                             and s.first_offset <= v_first + p_messages
                           order by s.first_offset desc limit 1), v_end[1]);
    v_messages := v_cut[1] - v_first;
  end if;

  perform 1 from queen.partition_consumers c
   where c.partition_id = any (v_lanes)
   order by c.partition_id, c.group_id
     for no key update;
  with moved as (
    update queen.partition_consumers c
       set committed = upper(f.first), acked = nullif(f.done - int8multirange(f.first), '{}'),
           failures = queen.unfinished_failures(c.failures, upper(f.first), f.done), not_before = null,
           lease_token = null, lease_expires_at = null, lease_until = null
      from (select o.partition_id, o.group_id, o.lease_token, d.done, (select r from unnest(d.done) as r limit 1) as first
              from unnest(v_lanes, v_end) as l (id, end_offset)
              join queen.partition_consumers o on o.partition_id = l.id and o.committed < l.end_offset
             cross join lateral (select int8multirange(int8range(0, l.end_offset)) + coalesce(o.acked, '{}') as done) d
           ) f
     where c.partition_id = f.partition_id and c.group_id = f.group_id
    returning c.partition_id, f.lease_token)
  select coalesce(array_agg(distinct m.partition_id) filter (where m.lease_token is not null), '{}')
    into v_released from moved m;

  delete from queen.segments s using unnest(v_lanes, v_cut) as l (id, cut)
   where s.partition_id = l.id and s.first_offset < l.cut;
  delete from queen.message_traces t using unnest(v_lanes, v_cut) as l (id, cut)
   where t.partition_id = l.id and t.message_offset < l.cut;
  update queen.partitions p set start_offset = l.cut
    from unnest(v_lanes, v_cut) as l (id, cut)
   where p.id = l.id and p.start_offset < l.cut;

  insert into queen.hints (partition_ids, rewritten_partition_ids) values (v_released, v_lanes);
  perform pg_notify('queen', json_build_object('rewritten', array_agg(l.id))::text)
     from unnest(v_lanes) with ordinality as l (id, place)
    group by (l.place - 1) / v_told_max;

  return query
  select case when v_cut[1] < v_end[1] then p_after
              when cardinality(v_lanes) < cardinality(v_locked) or cardinality(v_locked) = v_lanes_max
              then v_lanes[cardinality(v_lanes)] end,
         case when v_cut[1] < v_end[1] then v_end[1] end,
         case when v_cut[1] < v_end[1] then 0 else cardinality(v_lanes) end, v_messages, v_released;
end
$$;
