-- queue_depth: how many messages of a queue its slowest consumer group has not finished; where no group reads it,
-- how many are stored. From offsets only.
create or replace function queen.queue_depth(p_queue int8) returns int8
language sql stable
set search_path = queen, pg_temp
set enable_seqscan = off
set jit = off
begin atomic
  select coalesce(
    (select max(d.pending) from (
       select sum(l.pending) as pending
         from queen.consumer_groups g cross join lateral queen.group_lanes(p_queue, g.id) l
        where g.queue_id = p_queue
        group by g.id) d),
    (select sum(p.next_offset - p.start_offset) from queen.partitions p where p.queue_id = p_queue), 0)::int8;
end;
