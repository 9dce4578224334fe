-- delete_group: removes a consumer group's cursors, in all queues or in one, and the group itself where asked.
--
-- in   p_queue      null: all queues
--      p_metadata   whether the group's subscription goes, too; if it stays, it says where the group starts anew
-- out  one row: lanes   cursors that were removed
--               queue_names  the queues that had the group
--
-- Leases end: acks with their tokens find nothing. Dead letters stay. Locks: the queues' rows, the groups'
-- rows (no cursor is opened meanwhile), then the cursors by partition, waiting.
create or replace function queen.delete_group(p_group text, p_queue text, p_metadata bool)
returns table (lanes int4, queue_names text[])
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_groups int4[];
  v_names  text[];
  v_lanes  int4 := 0;
begin
  select array_agg(t.name) into v_names
    from (select q.name from queen.queues q
           where (p_queue is null or q.name = p_queue)
             and q.id in (select g.queue_id from queen.consumer_groups g where g.name = p_group)
           order by q.id
             for key share) t;
  select array_agg(t.id) into v_groups
    from (select g.id from queen.consumer_groups g
           where g.name = p_group
             and g.queue_id in (select q.id from queen.queues q where q.name = any (v_names))
           order by g.id
             for update) t;

  if v_groups is not null then
    perform 1
       from queen.consumer_groups g
       join queen.partitions p on p.queue_id = g.queue_id
       join queen.partition_consumers c on c.partition_id = p.id and c.group_id = g.id
      where g.id = any (v_groups)
      order by c.partition_id, c.group_id
        for update of c;
    delete from queen.partition_consumers c
     using queen.consumer_groups g, queen.partitions p
     where g.id = any (v_groups) and p.queue_id = g.queue_id and c.partition_id = p.id and c.group_id = g.id;
    get diagnostics v_lanes = row_count;
    if p_metadata then
      delete from queen.consumer_groups g where g.id = any (v_groups);
    end if;
  end if;
  delete from queen.consumer_watermarks w
   where w.consumer_group = p_group and (p_queue is null or w.queue_name = p_queue);
  return query select v_lanes, coalesce(v_names, '{}');
end
$$;
