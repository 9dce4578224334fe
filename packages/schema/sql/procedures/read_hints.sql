-- read_hints: what happened that a snapshot has not seen: changed queues, lanes that may have work.
--
-- in   p_snapshot   what the last call returned; null: only the snapshot is wanted
--      p_queues     the queues whose lanes matter
-- out  snapshot     in the first row only: to be given to the next call; a later row of nothing but nulls: a mode
--                   of maintenance was switched
--      queue_id     with partition_id null: this queue was made, changed or deleted
--      partition_id, name, next_offset     a lane that may have work; with queue_id null: a lane of which a
--                   segment was written anew, so that what is held of it is void
--      appended     of such a lane: it was appended to, and nothing else happened
--
-- Reads the lanes that hints name, one by one, and never all lanes of a queue, however many it has, nor all queues for a
-- lane, however many matter.
-- Exact, whatever order transactions commit in: a row is returned by the first call whose snapshot sees it.
create or replace function queen.read_hints(p_snapshot text, p_queues int8[])
returns table (snapshot text, queue_id int8, partition_id int8, name text, next_offset int8, appended bool)
language sql
set search_path = queen, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
begin atomic
  -- Not visible to the old snapshot: begun after it, or under way when it was taken. Asked so, a transaction
  -- that stays open for long costs one probe, not a walk over everything since it began.
  with fresh as materialized (
    select h.queue_ids, h.partition_ids, h.rewritten_partition_ids, h.state_changed, h.appended
      from queen.hints h
     where h.xid >= pg_snapshot_xmax(p_snapshot::pg_snapshot)
    union all
    select h.queue_ids, h.partition_ids, h.rewritten_partition_ids, h.state_changed, h.appended
      from pg_snapshot_xip(p_snapshot::pg_snapshot) as under_way
      join queen.hints h on h.xid = under_way
  )
  select pg_current_snapshot()::text, null::int8, null::int8, null::text, null::int8, null::bool
  union all
  select null, null, null, null, null, null
    from (select 1 from fresh f where f.state_changed limit 1) s
  union all
  select null, q.id, null, null, null, null
    from (select distinct unnest(f.queue_ids) as id from fresh f) q
  union all
  select null, null, r.id, null, null, null
    from (select distinct unnest(f.rewritten_partition_ids) as id from fresh f) r
  union all
  select null, p.queue_id, p.id, p.name, p.next_offset, l.appended
    from (select i.id, bool_and(f.appended is true) as appended
            from fresh f
           cross join lateral unnest(f.partition_ids) as i (id)
           group by i.id) l
    join queen.partitions p on p.id = l.id
   where (p.queue_id in (select unnest(p_queues))) is true;   -- in a table of them, not queue by queue for every lane
end;
