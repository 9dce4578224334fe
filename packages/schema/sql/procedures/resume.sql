-- resume: ends the pause of exactly what is named: a queue, a lane, a group, or a group on a lane.
--
-- in   p_partition, p_group   null: the pause that is for all of them
-- out  one row
--        queue_id, partition_id, group_id   null where what was named does not exist; nothing was done then
--        changed                            false: it was not paused
--        remaining                          pauses of the queue that are left
create or replace function queen.resume(p_queue text, p_partition text, p_group text)
returns table (queue_id int8, partition_id int8, group_id int4, changed bool, remaining int4)
language plpgsql
set search_path = queen, pg_temp
as $$
#variable_conflict use_column
declare
  v_queue     int8;
  v_partition int8;
  v_group     int4;
  v_rows      int4 := 0;
begin
  select q.id into v_queue from queen.queues q where q.name = p_queue;
  select p.id into v_partition from queen.partitions p where p.queue_id = v_queue and p.name = p_partition;
  select g.id into v_group from queen.consumer_groups g where g.queue_id = v_queue and g.name = p_group;
  if v_queue is not null and (p_partition is null or v_partition is not null) and (p_group is null or v_group is not null)
  then
    delete from queen.pauses x
     where x.queue_id = v_queue and x.partition_id is not distinct from v_partition
       and x.group_id is not distinct from v_group;
    get diagnostics v_rows = row_count;
  end if;
  return query
  select v_queue, v_partition, v_group, v_rows > 0,
         (select count(*)::int4 from queen.pauses x where x.queue_id = v_queue);
end
$$;
