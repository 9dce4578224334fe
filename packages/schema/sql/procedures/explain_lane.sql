-- explain_lane: everything that decides whether a pop of a consumer group would get the next message of a lane now.
--
-- out  null: there is no such queue or partition; otherwise an object
--   now               the database's clock
--   queue             id, delay_s, window_s, retry_limit (-1: none)
--   partition         id, next_offset, start_offset, last_at
--   group_exists
--   place, pending, finished_ahead   the first offset that is not finished; how many are not; how many are above it
--   head              offset, transaction_id, created_at of the first message that is not finished; null: none
--   lease             token, acquired_at, expires_at, until (the offset after its last), unfinished (messages);
--                     null: none, not even one that ran out
--   attempts, errors  of the message at `place`: how often it failed, and the last times as {at, error}
--   not_before        a failed message waits until then, for the sake of `last_error`
--   place_at          when the message at `place` was stored
--   locked            the transaction that holds the cursor's row, or is making it: pid, since, state, query
--   pauses            {partition, group, reason, by, at} that stop the group on this lane
--   pop_maintenance
--
-- Stable: all of it is from the snapshot of the call. Locks nothing. A few index probes of the log.
create or replace function queen.explain_lane(p_queue text, p_partition text, p_group text) returns jsonb
language plpgsql stable
set search_path = queen, pg_temp
set timezone = 'UTC'
as $$
declare
  v_now     timestamptz := clock_timestamp();
  q         queen.queues;
  p         queen.partitions;
  g         queen.consumer_groups;
  c         queen.partition_consumers;
  v_done    int8multirange;
  v_place   int8;
  v_ahead   int8;
  v_from    int8;
  v_head    jsonb;
  v_at      timestamptz;
  v_key     int8;
  v_locked  jsonb;
begin
  select * into q from queen.queues where name = p_queue;
  select * into p from queen.partitions where queue_id = q.id and name = p_partition;
  if p.id is null then
    return null;
  end if;
  select * into g from queen.consumer_groups where queue_id = q.id and name = p_group;
  select * into c from queen.partition_consumers where partition_id = p.id and group_id = g.id;

  v_place := greatest(p.start_offset, case
    when c.partition_id is not null then c.committed
    when g.subscription_from is null then p.start_offset
    else queen.offset_at(p.id, g.subscription_from) end);
  v_done := int8multirange(int8range(0, v_place)) + coalesce(c.acked, '{}');
  if v_place > 0 then
    v_place := (select upper(r) from unnest(v_done) as r limit 1);
  end if;
  select coalesce(sum(upper(r) - lower(r)), 0) into v_ahead from unnest(v_done) as r where lower(r) > v_place;

  select s.first_offset, s.created_at into v_from, v_at from queen.segments s
   where s.partition_id = p.id and s.first_offset <= v_place order by s.first_offset desc limit 1;
  -- What was deleted has left a place without bytes behind; it is looked over in the next few segments.
  select jsonb_build_object('offset', m.at_offset, 'created_at', m.created_at,
           'transaction_id', ('{' || left(m.fragment, position(',"data":' in m.fragment) - 1) || '}')::jsonb
                             ->> 'transactionId')
    into v_head
    from (select s.first_offset + i as at_offset, s.created_at,
                 convert_from(queen.fragment_at(s.ends, s.body, i), 'UTF8') as fragment
            from (select * from queen.segments where partition_id = p.id and first_offset >= coalesce(v_from, v_place)
                   order by first_offset limit 5) s
           cross join lateral generate_series(0, s.count - 1) as i
           where s.first_offset + i >= v_place and not v_done @> s.first_offset + i
             and queen.int4_at(s.ends, i) > queen.int4_at(s.ends, i - 1)
           order by 1 limit 1) m
   where v_place < p.next_offset;

  -- Who changes or locks a row writes its transaction into it; while that is open, it holds a lock on itself.
  -- Who makes the cursor in SQL holds an advisory lock on it (sql_pop, sql_find_lanes).
  v_key := hashtextextended('queen.cursor/' || p.id || '/' || g.id, 0);
  select jsonb_build_object('pid', l.pid, 'since', a.xact_start, 'state', a.state, 'query', left(a.query, 200))
    into v_locked
    from pg_locks l
    left join pg_stat_activity a on a.pid = l.pid
   where l.granted and l.mode = 'ExclusiveLock'
     and (l.locktype = 'transactionid'
          and l.transactionid = (select t.xmax from queen.partition_consumers t
                                  where t.partition_id = p.id and t.group_id = g.id)
          or l.locktype = 'advisory' and c.partition_id is null and l.objsubid = 1
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.classid::int8 = (v_key >> 32) & 4294967295 and l.objid::int8 = v_key & 4294967295)
   limit 1;

  return jsonb_build_object(
    'now', v_now,
    'queue', jsonb_build_object('id', q.id, 'delay_s', q.delayed_processing, 'window_s', q.window_buffer,
                                'retry_limit', queen.sql_retry_limit(q)),
    'partition', jsonb_build_object('id', p.id, 'next_offset', p.next_offset, 'start_offset', p.start_offset,
                                    'last_at', p.last_at),
    'group_exists', g.id is not null,
    'place', v_place,
    'pending', p.next_offset - v_place - v_ahead,
    'finished_ahead', v_ahead,
    'head', v_head,
    'place_at', v_at,
    'lease', case when c.lease_token is not null then jsonb_build_object(
               'token', c.lease_token, 'acquired_at', c.lease_acquired_at, 'expires_at', c.lease_expires_at,
               'until', c.lease_until,
               'unfinished', c.lease_until - v_place - (
                 select coalesce(sum(upper(r) - lower(r)), 0)
                   from unnest(v_done * int8multirange(int8range(v_place, greatest(v_place, c.lease_until)))) as r)) end,
    'attempts', coalesce((c.failures -> v_place::text ->> 'n')::int4, 0),
    'errors', coalesce(c.failures -> v_place::text -> 'history', '[]'),
    'not_before', c.not_before,
    'last_error', (select h ->> 'error' from jsonb_each(c.failures) as f
                    cross join lateral jsonb_array_elements(f.value -> 'history') as h
                    order by (h ->> 'at')::timestamptz desc limit 1),
    'locked', v_locked,
    'pauses', (select coalesce(jsonb_agg(jsonb_build_object(
                        'partition', case when x.partition_id is not null then p.name end,
                        'group', case when x.group_id is not null then g.name end,
                        'reason', x.reason, 'by', x.paused_by, 'at', x.paused_at) order by x.paused_at, x.id), '[]')
                 from queen.pauses x
                where x.queue_id = q.id and (x.partition_id is null or x.partition_id = p.id)
                  and (x.group_id is null or x.group_id = g.id)),
    'pop_maintenance', exists (select 1 from queen.system_state s
                                where s.key = 'pop_maintenance_mode' and s.value -> 'enabled' = 'true'::jsonb));
end
$$;
