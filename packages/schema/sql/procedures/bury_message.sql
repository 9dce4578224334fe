-- bury_message: moves one message to the dead letters of a group, by an operator's order.
--
-- out  no group, gone, or moved: the message is finished for the group, and it is among its dead letters,
--      where it stands once however often it is asked for
--
-- Queue mode is opened if nobody has popped yet. Locks: the queue, the group's cursor, waiting.
create or replace function queen.bury_message(p_partition int8, p_offset int8, p_group text, p_error text)
returns text
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_group    int4;
  v_queue    text;
  v_failures jsonb;
begin
  select q.name into v_queue from queen.queues q
    join queen.partitions p on p.queue_id = q.id where p.id = p_partition for key share of q;
  if v_queue is null or not exists (select 1 from queen.read_message(p_partition, p_offset)) then
    return 'gone';
  end if;
  v_group := queen.reader_group(v_queue, p_group);
  if v_group is null then
    return 'no group';
  end if;
  perform queen.open_cursors(array[p_partition], array[v_group]);
  select failures into v_failures from queen.partition_consumers
   where partition_id = p_partition and group_id = v_group
     for no key update;
  perform queen.bury(p_partition, v_group, p_offset, p_error, v_failures);
  perform queen.finish(p_partition, array[v_group], int8multirange(int8range(p_offset, p_offset + 1)));
  return 'moved';
end
$$;
