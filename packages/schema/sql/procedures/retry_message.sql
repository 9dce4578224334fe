-- retry_message: has a group deliver one message again, by an operator's order.
--
-- out  action   no group, gone
--               pending      it was not finished: its failures and its delay are forgotten
--               leased       a consumer holds it now; nothing was changed
--               redelivered  its finished mark is taken back
--               copied       the group's place is beyond it, and going back would deliver everything behind it
--                            again; or it was finished under a lease that is held. So a copy was appended, for
--                            this group only
--      at_offset   of the copy
--
-- Queue mode is opened if nobody has popped yet. Locks: the queue, the partition, its cursors, waiting.
create or replace function queen.retry_message(p_partition int8, p_offset int8, p_group text)
returns table (action text, at_offset int8)
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_group    int4;
  v_queue    text;
  v_fragment bytea;
  v_finished bool;
  v_leased   bool;
  c          record;
begin
  select q.name into v_queue from queen.queues q
    join queen.partitions p on p.queue_id = q.id where p.id = p_partition for key share of q;
  select m.fragment into v_fragment from queen.read_message(p_partition, p_offset) m;
  if v_queue is null or v_fragment is null then
    return query select 'gone', null::int8;
    return;
  end if;
  v_group := queen.reader_group(v_queue, p_group);
  if v_group is null then
    return query select 'no group', null::int8;
    return;
  end if;
  perform queen.open_cursors(array[p_partition], array[v_group]);
  perform 1 from queen.partitions where id = p_partition for no key update;
  select * into c from queen.partition_consumers
   where partition_id = p_partition and group_id = v_group
     for no key update;
  v_finished := p_offset < c.committed or coalesce(c.acked @> p_offset, false);
  v_leased := coalesce(p_offset < c.lease_until and c.lease_expires_at > clock_timestamp(), false);

  if v_leased and not v_finished then
    return query select 'leased', null::int8;
  elsif p_offset >= c.committed and not v_leased then
    update queen.partition_consumers pc
       set acked = nullif(c.acked - int8multirange(int8range(p_offset, p_offset + 1)), '{}'),
           failures = nullif(c.failures - p_offset::text, '{}'), not_before = null
     where pc.partition_id = p_partition and pc.group_id = v_group;
    insert into queen.hints (partition_ids) values (array[p_partition]);
    return query select case when v_finished then 'redelivered' else 'pending' end, null::int8;
  else
    return query
    select 'copied', queen.republish(p_partition, array[v_fragment],
             array[('{' || left(f.text, position(',"data":' in f.text) - 1) || '}')::json ->> 'transactionId'],
             array[v_group])
      from (select convert_from(v_fragment, 'UTF8') as text) f;
  end if;
end
$$;
