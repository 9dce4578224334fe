-- partitions_deleted: removes the log, the cursors, the traces and the pauses of deleted partitions, and counts
-- them (trigger).
--
-- Runs when a queue is deleted too, also by hand: the foreign key deletes its partitions. Then there is no queue left
-- to count for. Lane by lane by index, so that a small queue goes quickly however long the log is.
create or replace function queen.partitions_deleted() returns trigger
language plpgsql
set search_path = queen, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
begin
  delete from queen.segments s using gone where s.partition_id = gone.id;
  delete from queen.partition_consumers c using gone where c.partition_id = gone.id;
  delete from queen.message_traces t using gone where t.partition_id = gone.id;
  delete from queen.pauses x using gone where x.partition_id = gone.id;
  -- Without waiting: who deletes the queue may wait for these partitions.
  with there as (
    select q.id from queen.queues q where q.id in (select queue_id from gone) for key share of q skip locked)
  insert into queen.queue_minutes as m (minute, queue_id, run_id, hostname, worker_id, partitions_deleted)
  select date_trunc('minute', clock_timestamp()), gone.queue_id, '00000000-0000-0000-0000-000000000000', '', 0, count(*)
    from gone join there on there.id = gone.queue_id
   group by gone.queue_id
   order by gone.queue_id
  on conflict (queue_id, minute, run_id) do update
     set partitions_deleted = m.partitions_deleted + excluded.partitions_deleted;
  return null;
end
$$;

create or replace trigger partitions_deleted after delete on queen.partitions
  referencing old table as gone for each statement execute function queen.partitions_deleted();
