-- sql_ack: settles messages in the caller's transaction. Part of the SQL interface's inside.
--
-- in   p_acks    [{transactionId, partitionId, status, leaseId, consumerGroup, error}]
--      p_paths   where each stands in the request, for messages; null: acknowledgments[0], …
--      p_group   the group of all of them; null: each names its own
--      p_leases  leases that count for acks that name none
-- out  item      index from 1
--      transaction_id
--      success, error
--      finished_before   nothing changed, because the message was finished already; this is success
--      released, dlq, queue_name, partition_name
--
-- A transactionId is looked for in the range of the lease that is held, then among the 200,000 messages before
-- the group's place. Messages of one lane are settled together. Raises QN400 with the item and the field.
-- Locks: cursor rows by (partition, group), waiting, until the caller's transaction ends.
create or replace function queen.sql_ack(p_acks jsonb, p_paths text[], p_group text, p_leases text[])
returns table (item int4, transaction_id text, success bool, error text, finished_before bool, released bool, dlq bool,
               queue_name text, partition_name text)
language plpgsql
set search_path = queen, pg_temp
set jit = off
as $$
#variable_conflict use_column
declare
  v_at         int4;
  v_problem    text;
  v_items      int4 := jsonb_array_length(p_acks);
  -- one element per item
  v_id         text[];
  v_partition  int8[];
  v_group      int4[];
  v_token      int8[];                       -- null: whoever holds the message now
  v_status     text[];                       -- null: no such status
  v_reason     text[];
  v_queue_name text[];
  v_name       text[];
  v_offset     int8[];
  v_success    bool[];
  v_error      text[];
  v_finished   bool[];
  v_released   bool[];
  v_dlq        bool[];
  v_own        int4[];
  v_done       int8multirange;
  v_settled    record;
  v_wake       int8[] := '{}';
  v_look_back  constant int8 := 200000;
  c record;
  r record;
begin
  if v_items = 0 then
    return;
  end if;
  select i.at, i.problem into v_at, v_problem
    from (select t.at::int4 as at, case
            when jsonb_typeof(t.ack) <> 'object' then ': Ack must be an object'
            when jsonb_typeof(t.ack -> 'transactionId') is distinct from 'string' or t.ack ->> 'transactionId' = ''
            then '.transactionId: Each acknowledgment must have a valid transactionId string'
            when jsonb_typeof(t.ack -> 'partitionId') is distinct from 'string'
              or t.ack ->> 'partitionId' !~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
            then '.partitionId: Each acknowledgment must have a valid partitionId string to ensure message uniqueness'
            when jsonb_typeof(t.ack -> 'status') not in ('string', 'null') then '.status: Status must be a string'
            when jsonb_typeof(t.ack -> 'leaseId') not in ('string', 'null') then '.leaseId: LeaseId must be a string'
            when jsonb_typeof(t.ack -> 'error') not in ('string', 'null') then '.error: Error must be a string'
            when coalesce(t.ack ->> 'consumerGroup', '') <> ''
            then queen.sql_name_problem(t.ack -> 'consumerGroup', 'consumerGroup', false)
            end as problem
            from jsonb_array_elements(p_acks) with ordinality as t (ack, at)) i
   where i.problem is not null
   order by i.at limit 1;
  if v_problem is not null then
    raise exception '%', coalesce(p_paths[v_at], 'acknowledgments[' || v_at - 1 || ']') || v_problem
      using errcode = 'QN400';
  end if;

  select array_agg(a.id order by a.at), array_agg(a.partition_id order by a.at), array_agg(g.id order by a.at),
         array_agg(a.token order by a.at), array_agg(a.status order by a.at), array_agg(a.reason order by a.at),
         array_agg(q.name order by a.at), array_agg(p.name order by a.at),
         array_agg(false order by a.at),
         array_agg(case when a.status is null
                        then 'unknown status "' || a.status_text || '": use completed, failed, dlq or retry'
                        else 'Message not found' end order by a.at)
    into v_id, v_partition, v_group, v_token, v_status, v_reason, v_queue_name, v_name, v_success, v_error
    from (select t.at, t.ack ->> 'transactionId' as id,
                 queen.parse_partition_uuid(t.ack ->> 'partitionId') as partition_id,
                 coalesce(p_group, nullif(t.ack ->> 'consumerGroup', ''), '__QUEUE_MODE__') as group_name,
                 coalesce(nullif(t.ack ->> 'status', ''), 'completed') as status_text,
                 case coalesce(nullif(t.ack ->> 'status', ''), 'completed')
                   when 'completed' then 'completed' when 'success' then 'completed' when 'failed' then 'failed'
                   when 'dlq' then 'dlq' when 'retry' then 'retry' end as status,
                 left(coalesce(nullif(t.ack ->> 'error', ''), 'Retries exhausted'), 8000) as reason,
                 case when coalesce(t.ack ->> 'leaseId', '') <> ''
                      then coalesce((queen.parse_lease_id(t.ack ->> 'leaseId')).token, -1)
                      else (select l.token from unnest(p_leases) with ordinality as n (id, at)
                             cross join lateral queen.parse_lease_id(n.id) l
                             where queen.parse_partition_uuid(t.ack ->> 'partitionId') = any (l.partitions)
                             order by n.at limit 1) end as token
            from jsonb_array_elements(p_acks) with ordinality as t (ack, at)) a
    left join queen.partitions p on p.id = a.partition_id
    left join queen.queues q on q.id = p.queue_id
    left join queen.consumer_groups g on g.queue_id = q.id and g.name = a.group_name;
  v_finished := v_success;
  v_released := v_success;
  v_dlq := v_success;

  for c in
    select c.partition_id, c.group_id, c.committed, c.lease_token, c.lease_until, p.next_offset,
           int8multirange(int8range(0, c.committed)) + coalesce(c.acked, '{}') as finished,
           queen.sql_retry_limit(q) as retry_limit, q.retry_delay
      from (select distinct i.partition_id, i.group_id from unnest(v_partition, v_group) as i (partition_id, group_id)) k
      join queen.partition_consumers c on c.partition_id = k.partition_id and c.group_id = k.group_id
      join queen.partitions p on p.id = c.partition_id
      join queen.queues q on q.id = p.queue_id
     order by c.partition_id, c.group_id
       for no key update of c
  loop
    select array_agg(i.item::int4 order by i.item) into v_own
      from unnest(v_partition, v_group, v_status) with ordinality as i (partition_id, group_id, status, item)
     where i.partition_id = c.partition_id and i.group_id = c.group_id and i.status is not null;
    v_offset := array_fill(null::int8, array[v_items]);

    for r in
      select h.items[f.search] as item,
             coalesce(min(f.at_offset) filter (where not c.finished @> f.at_offset), min(f.at_offset)) as at_offset
        from (select array_agg(o.item order by o.item) as items, array_agg(v_id[o.item] order by o.item) as ids
                from unnest(v_own) as o (item)
               where coalesce(v_token[o.item], c.lease_token) = c.lease_token) h
       cross join lateral queen.sql_find_messages(
               array[c.partition_id], array[c.committed], array[c.lease_until],
               array_fill(1, array[cardinality(h.items)]), h.ids) f
       where h.items is not null
       group by 1
    loop
      v_offset[r.item] := r.at_offset;
      v_finished[r.item] := c.finished @> r.at_offset;
    end loop;

    -- Those that are not in a lease that is held may be finished already, and then acking them again is no error.
    for r in
      select h.items[f.search] as item, bool_or(c.finished @> f.at_offset) as is_finished
        from (select array_agg(o.item order by o.item) as items, array_agg(v_id[o.item] order by o.item) as ids
                from unnest(v_own) as o (item) where v_offset[o.item] is null) h
       cross join lateral queen.sql_find_messages(
               array[c.partition_id], array[greatest(0, c.committed - v_look_back)], array[c.next_offset],
               array_fill(1, array[cardinality(h.items)]), h.ids) f
       where h.items is not null
       group by 1
    loop
      v_success[r.item] := r.is_finished;
      v_finished[r.item] := r.is_finished;
      v_error[r.item] := case when r.is_finished then null else 'Invalid or expired lease' end;
    end loop;

    select array_agg(o.item order by o.item) into v_own from unnest(v_own) as o (item) where v_offset[o.item] is not null;
    continue when v_own is null;
    select coalesce(range_agg(int8range(v_offset[o.item], v_offset[o.item] + 1)), '{}') into v_done
      from unnest(v_own) as o (item) where v_status[o.item] = 'completed';
    select s.status, s.released, s.buried into v_settled
      from (select coalesce(array_agg(v_offset[o.item] order by o.item) filter (where v_status[o.item] = 'failed'), '{}')
                     as failed,
                   coalesce(array_agg(v_offset[o.item] order by o.item) filter (where v_status[o.item] = 'dlq'), '{}')
                     as dead,
                   coalesce(array_agg(v_reason[o.item] order by o.item) filter (where v_status[o.item] = 'failed'), '{}')
                     || coalesce(array_agg(v_reason[o.item] order by o.item) filter (where v_status[o.item] = 'dlq'), '{}')
                     as errors,
                   bool_or(v_status[o.item] = 'retry') as release
              from unnest(v_own) as o (item)) e
     cross join lateral queen.settle_lease(c.partition_id, c.group_id, c.lease_token, v_done, e.failed, e.dead,
                                           e.errors, e.release, c.retry_limit, c.retry_delay) s;
    if v_settled.status <> 0 then
      raise exception 'a lease that is locked here was not settled: status %', v_settled.status;
    end if;
    foreach v_at in array v_own loop
      v_success[v_at] := true;
      v_error[v_at] := null;
      v_released[v_at] := v_settled.released;
      v_dlq[v_at] := v_offset[v_at] = any (v_settled.buried);
    end loop;
    if v_settled.released then
      v_wake := v_wake || c.partition_id;
    end if;
  end loop;

  perform queen.sql_wake('{}', v_wake);

  return query
  select i.item::int4, v_id[i.item], i.success, i.error, v_finished[i.item], v_released[i.item], v_dlq[i.item], i.queue_name, i.name
    from unnest(v_success, v_error, v_queue_name, v_name) with ordinality as i (success, error, queue_name, name, item)
   order by i.item;
end
$$;

revoke execute on function queen.sql_ack(jsonb, text[], text, text[]) from public;
