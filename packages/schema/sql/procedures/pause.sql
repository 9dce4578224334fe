-- pause: stops the delivery of a queue, of one of its lanes, of one of its groups, or of a group on a lane.
--
-- in   p_partition, p_group   null: all of them
-- out  one row
--        queue_id, partition_id, group_id   null where what was named does not exist; nothing was done then
--        changed                            false: it was paused already, as the rest of the row says
--        reason, paused_by, paused_at
--
-- Queue mode is opened if nobody has popped yet. Leases that are held stay valid. Locks: the rows of the queue,
-- the partition and the group against deletion.
create or replace function queen.pause(p_queue text, p_partition text, p_group text, p_by text, p_reason text)
returns table (queue_id int8, partition_id int8, group_id int4, changed bool, reason text, paused_by text,
               paused_at timestamptz)
language plpgsql
set search_path = queen, pg_temp
as $$
#variable_conflict use_column
declare
  v_queue     int8;
  v_partition int8;
  v_group     int4;
  v_rows      int4;
begin
  select q.id into v_queue from queen.queues q where q.name = p_queue for key share;
  if v_queue is not null and p_partition is not null then
    select p.id into v_partition from queen.partitions p
     where p.queue_id = v_queue and p.name = p_partition for key share;
  end if;
  if v_queue is not null and p_group is not null then
    v_group := queen.reader_group(p_queue, p_group);
  end if;
  if v_queue is null or (p_partition is not null and v_partition is null) or (p_group is not null and v_group is null)
  then
    return query select v_queue, v_partition, v_group, false, null::text, null::text, null::timestamptz;
    return;
  end if;
  loop
    insert into queen.pauses (queue_id, partition_id, group_id, paused_by, reason)
    values (v_queue, v_partition, v_group, p_by, p_reason)
    on conflict do nothing;
    get diagnostics v_rows = row_count;
    return query
    select v_queue, v_partition, v_group, v_rows > 0, x.reason, x.paused_by, x.paused_at
      from queen.pauses x
     where x.queue_id = v_queue and x.partition_id is not distinct from v_partition
       and x.group_id is not distinct from v_group;
    exit when found;                         -- if not, it was there and somebody ended it just now
  end loop;
end
$$;
