-- reader_group: the id of a queue's consumer group; queue mode is opened if nobody has popped yet. Null: none.
create or replace function queen.reader_group(p_queue text, p_group text) returns int4
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_group int4;
begin
  select g.id into v_group from queen.consumer_groups g
    join queen.queues q on q.id = g.queue_id where q.name = p_queue and g.name = p_group;
  if v_group is null and p_group = '__QUEUE_MODE__' then
    select g.group_id into v_group from queen.open_group(p_queue, p_group, 'all', null) g;
  end if;
  return v_group;
end
$$;
