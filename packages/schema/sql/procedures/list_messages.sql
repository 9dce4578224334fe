-- list_messages: a page of messages with what the consumer groups made of them.
--
-- in   as pick_messages
-- out  as pick_messages, and with each message
--      queue_name, namespace, task, priority, partition_name
--      is_dead                  some group has it among its dead letters
--      queue_finished           by queue mode; null: nobody reads the queue so
--      queue_lease_expires_at   queue mode holds it until then
--      consumed_by, groups      named groups that finished it, named groups in all
create or replace function queen.list_messages(
  p_queue int8, p_partition int8, p_namespace text, p_task text, p_status text, p_from timestamptz, p_to timestamptz,
  p_before_at timestamptz, p_before_partition int8, p_before_offset int8, p_limit int4, p_offset int8)
returns table (partition_id int8, at_offset int8, created_at timestamptz, header bytea, queue_name text,
               namespace text, task text, priority int4, partition_name text, is_dead bool, queue_finished bool,
               queue_lease_expires_at timestamptz, consumed_by int8, groups int8)
language sql stable
set search_path = queen, pg_temp
set enable_seqscan = off
set jit = off
begin atomic
  with picked as materialized (
    select m.*, row_number() over () as place
      from queen.pick_messages(p_queue, p_partition, p_namespace, p_task, p_status, p_from, p_to, p_before_at,
                               p_before_partition, p_before_offset, p_limit, p_offset) m),
  reader as materialized (
    select l.partition_id, g.*
      from (select distinct p.partition_id from picked p) l
     cross join lateral queen.lane_groups(l.partition_id) g)
  select m.partition_id, m.at_offset, m.created_at, m.header, q.name, q.namespace, q.task, q.priority, p.name,
         exists (select 1 from queen.dead_letters d
                  where d.partition_id = m.partition_id and d.message_offset = m.at_offset),
         r.queue_finished, r.queue_lease_expires_at, coalesce(r.consumed_by, 0), coalesce(r.groups, 0)
    from picked m
    join queen.partitions p on p.id = m.partition_id
    join queen.queues q on q.id = p.queue_id
   cross join lateral (
     select bool_or(g.finished @> m.at_offset) filter (where g.name = '__QUEUE_MODE__') as queue_finished,
            max(g.lease_expires_at) filter (where g.name = '__QUEUE_MODE__' and m.at_offset < g.leased_until
                                              and not g.finished @> m.at_offset) as queue_lease_expires_at,
            count(*) filter (where g.name <> '__QUEUE_MODE__' and g.finished @> m.at_offset) as consumed_by,
            count(*) filter (where g.name <> '__QUEUE_MODE__') as groups
       from reader g where g.partition_id = m.partition_id) r
   order by m.place;
end;
