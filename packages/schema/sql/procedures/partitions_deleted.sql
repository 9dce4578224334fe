-- partitions_deleted: removes the log, the cursors and the traces of deleted partitions (trigger).
--
-- Runs when a queue is deleted too, also by hand: the foreign key deletes its partitions. Lane by lane by
-- index, so that a small queue goes quickly however long the log is.
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
  return null;
end
$$;

create or replace trigger partitions_deleted after delete on queen.partitions
  referencing old table as gone for each statement execute function queen.partitions_deleted();
