-- execute_transaction_v2: pushes and acks, all or nothing, in the caller's transaction. Part of the SQL
-- interface.
--
-- in   p_transaction  {operations: [{type: "push", items: […]} | {type: "push", queue, …} | {type: "ack", …}],
--                      requiredLeases: […]}; items as push_messages_v2, acks as ack_messages_v2. An ack that
--                      names no lease uses the required one of its partition.
-- out  {transactionId, success: true, replayed, results}: per message {index, type, success, transactionId, …}.
--      replayed: everything had been done before, and nothing was changed
--
-- What a broker would refuse raises QN409, so that nothing of the caller's transaction is kept: a lease that is
-- not held, a message that is not found or was finished before. Raises QN400 with the operation and the field.
-- Locks: partitions by id, then cursors by (partition, group), waiting, until the caller's transaction ends.
create or replace function queen.execute_transaction_v2(p_transaction jsonb) returns jsonb
language plpgsql security definer
set search_path = queen, pg_temp
as $$
declare
  v_items      jsonb := '[]';
  v_item_paths text[] := '{}';
  v_item_index int4[] := '{}';
  v_acks       jsonb := '[]';
  v_ack_paths  text[] := '{}';
  v_ack_index  int4[] := '{}';
  v_leases     text[];
  v_count      int4 := 0;
  v_results    jsonb[];
  v_pushed_new bool := false;
  v_held       bool;
  v_replayed   bool := true;
  v_problem    text;
  r record;
  s record;
begin
  if jsonb_typeof(p_transaction -> 'operations') is distinct from 'array' then
    raise exception 'operations array required' using errcode = 'QN400';
  end if;
  if jsonb_array_length(p_transaction -> 'operations') = 0 then
    raise exception 'operations array cannot be empty' using errcode = 'QN400';
  end if;
  for r in
    select 'operations[' || o.at - 1 || ']' as path, o.operation
      from jsonb_array_elements(p_transaction -> 'operations') with ordinality as o (operation, at)
     order by o.at
  loop
    if jsonb_typeof(r.operation) <> 'object' then
      raise exception '%: Operation must be an object', r.path using errcode = 'QN400';
    end if;
    if r.operation ->> 'type' = 'push' then
      if r.operation ? 'items' and jsonb_typeof(r.operation -> 'items') <> 'array' then
        raise exception '%.items: Items must be an array', r.path using errcode = 'QN400';
      end if;
      for s in
        select i.item, case when r.operation ? 'items' then r.path || '.items[' || i.at - 1 || ']' else r.path end as path
          from jsonb_array_elements(coalesce(r.operation -> 'items', jsonb_build_array(r.operation)))
               with ordinality as i (item, at)
         order by i.at
      loop
        v_items := v_items || jsonb_build_array(s.item);
        v_item_paths := v_item_paths || s.path;
        v_item_index := v_item_index || v_count;
        v_count := v_count + 1;
      end loop;
    elsif r.operation ->> 'type' = 'ack' then
      v_acks := v_acks || jsonb_build_array(r.operation);
      v_ack_paths := v_ack_paths || r.path;
      v_ack_index := v_ack_index || v_count;
      v_count := v_count + 1;
    else
      raise exception '%.type: Unknown operation type: %', r.path, coalesce(r.operation ->> 'type', 'undefined')
        using errcode = 'QN400';
    end if;
    if v_count > 1000 then
      raise exception 'operations must be at most 1000' using errcode = 'QN400';
    end if;
  end loop;
  if jsonb_typeof(p_transaction -> 'requiredLeases') not in ('array', 'null')
     or jsonb_path_exists(p_transaction, '$.requiredLeases[*] ? (@.type() != "string" && @ != null)')
  then
    raise exception 'requiredLeases: RequiredLeases must be an array of strings' using errcode = 'QN400';
  end if;
  v_leases := array(select jsonb_array_elements_text(coalesce(nullif(p_transaction -> 'requiredLeases', 'null'), '[]')));
  v_results := array_fill(null::jsonb, array[v_count]);

  for r in select * from queen.sql_push(v_items, v_item_paths, '{}') loop
    v_pushed_new := v_pushed_new or r.is_new;
    v_results[v_item_index[r.item] + 1] := jsonb_build_object(
      'index', v_item_index[r.item], 'type', 'push', 'success', true,
      'status', case when r.is_new then 'queued' else 'duplicate' end, 'transactionId', r.transaction_id,
      'messageId', queen.message_id(r.partition_id, r.message_offset),
      'partitionId', queen.partition_uuid(r.partition_id), 'queueName', r.queue);
  end loop;

  -- The leases that must be held and the cursors of the acks, locked together in order.
  perform 1
     from queen.partition_consumers c
    where (c.partition_id, c.group_id) in (
            select n.partition_id, n.group_id
              from unnest(v_leases) as l (id)
             cross join lateral queen.parse_lease_id(l.id) i
             cross join lateral unnest(i.partitions) as p (id)
              join queen.partition_consumers n on n.partition_id = p.id and n.lease_token = i.token
            union all
            select p.id, g.id
              from jsonb_array_elements(v_acks) as a (ack)
              join queen.partitions p on p.id = queen.parse_partition_uuid(a.ack ->> 'partitionId')
              join queen.consumer_groups g on g.queue_id = p.queue_id
               and g.name = coalesce(nullif(a.ack ->> 'consumerGroup', ''), '__QUEUE_MODE__'))
    order by c.partition_id, c.group_id
      for no key update;
  -- Of a lease with acks here, the partitions of the acks must be held; otherwise all of them.
  select coalesce(bool_and(h.held), true) into v_held
    from (select i.token is not null and exists (
                   select 1 from queen.partition_consumers c where c.partition_id = p.id and c.lease_token = i.token) as held,
                 i.token is null or p.id in (select queen.parse_partition_uuid(a.ack ->> 'partitionId')
                                               from jsonb_array_elements(v_acks) as a (ack)) as acked,
                 l.at
            from unnest(v_leases) with ordinality as l (id, at)
            left join lateral queen.parse_lease_id(l.id) i on true
            left join lateral unnest(i.partitions) as p (id) on true) h
   where h.acked or not exists (
           select 1 from unnest((queen.parse_lease_id(v_leases[h.at])).partitions) as p (id)
            where p.id in (select queen.parse_partition_uuid(a.ack ->> 'partitionId')
                             from jsonb_array_elements(v_acks) as a (ack)));

  for r in select * from queen.sql_ack(v_acks, v_ack_paths, null, v_leases) loop
    if not r.success or (r.finished_before and v_pushed_new) then
      v_problem := coalesce(v_problem, 'ACK operation failed: ' || coalesce(r.error, 'Message already acknowledged'));
    end if;
    v_replayed := v_replayed and r.finished_before;
    v_results[v_ack_index[r.item] + 1] := jsonb_build_object(
      'index', v_ack_index[r.item], 'type', 'ack', 'success', true,
      'transactionId', r.transaction_id, 'error', null, 'dlq', r.dlq);
  end loop;
  v_replayed := v_replayed and not v_pushed_new;
  if v_problem is null and not v_held and not v_replayed then
    v_problem := 'Invalid or expired lease';
  end if;
  if v_problem is not null then
    raise exception '%', v_problem using errcode = 'QN409';
  end if;
  return jsonb_build_object('transactionId', gen_random_uuid(), 'success', true, 'replayed', v_replayed,
                            'results', to_jsonb(v_results));
end
$$;

revoke execute on function queen.execute_transaction_v2(jsonb) from public;
