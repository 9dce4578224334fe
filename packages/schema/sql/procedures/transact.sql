-- transact: pushes and acks in one transaction, all or nothing.
--
-- in   p_partition … p_body   as append
--      p_settle    jsonb array, one object per lease and partition:
--                  { partition, group, token, done, failed, dead, errors, release, retryLimit, retryDelayMs }
--                  as settle_lease
--      p_required_partition, p_required_token   leases that must be held
--      p_sealed    as append
-- out  { "appended": [append's rows, created in microseconds since 2000], "settled": [settle_lease's rows] }
--
-- Raises QN409 when a lease is not held or a message was finished before, and QN001 with append's rows as
-- detail when the messages' keys must be compared again, or the messages encrypted. Where nothing is left to push and every ack is
-- finished, it is the replay of a transaction that committed: it succeeds, changes nothing, and tells what is a dead letter.
--
-- Locks: partitions by id, then cursors by (partition, group), waiting: nobody else is in the call (plain ones: transact_many).
create or replace function queen.transact(
  p_partition int8[], p_known int8[], p_count int4[],
  p_lane int4[], p_relative int4[], p_messages int4[], p_keys bytea[], p_ends bytea[], p_body bytea[],
  p_settle jsonb, p_required_partition int8[], p_required_token int8[], p_sealed bool[] default null)
returns jsonb
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_appended jsonb := '[]';
  v_settled  jsonb := '[]';
  v_done     int8multirange;
  v_stored   bool;
  v_replay   bool := false;
  v_row      record;
  s          record;
begin
  perform 1 from queen.partitions where id = any (p_partition) order by id for no key update;
  perform 1
     from queen.partition_consumers c
     join (select distinct (e ->> 'partition')::int8 as partition_id, (e ->> 'group')::int4 as group_id
             from jsonb_array_elements(p_settle) as e) t
       on t.partition_id = c.partition_id and t.group_id = c.group_id
    order by c.partition_id, c.group_id
      for no key update of c;

  if cardinality(p_partition) = 0 then
    v_replay := not exists (
      select 1
        from jsonb_to_recordset(p_settle) as t (
               partition int8, "group" int4, done text, failed int8[], dead int8[], release bool)
        left join queen.partition_consumers c on c.partition_id = t.partition and c.group_id = t."group"
       where t.release or c.partition_id is null
          or not t.done::int8multirange + coalesce(
               (select range_agg(int8range(o, o + 1)) from unnest(t.failed || t.dead) as o), '{}')
             <@ (int8multirange(int8range(0, c.committed)) + coalesce(c.acked, '{}')));
  end if;

  if not v_replay and cardinality(p_required_partition) > 0 then
    perform 1 from unnest(p_required_partition, p_required_token) as l (partition_id, token)
      where not exists (select 1 from queen.partition_consumers c
                         where c.partition_id = l.partition_id and c.lease_token = l.token);
    if found then
      raise exception 'Invalid or expired lease' using errcode = 'QN409';
    end if;
  end if;

  if cardinality(p_partition) > 0 then
    select jsonb_agg(jsonb_build_object('lane', a.lane, 'status', a.status, 'at', a.at_offset,
                                        'created', (extract(epoch from a.created_at - timestamptz '2000-01-01Z') * 1000000)::int8) order by a.lane),
           bool_and(a.status = 0)
      into v_appended, v_stored
      from queen.append(p_partition, p_known, p_count, p_lane, p_relative, p_messages, p_keys, p_ends, p_body,
                        p_sealed) a
     where a.status <> 5;
    if not v_stored then
      raise exception 'the messages must be prepared again' using errcode = 'QN001', detail = v_appended::text;
    end if;
  end if;

  for s in
    select * from jsonb_to_recordset(p_settle) as t (
      partition int8, "group" int4, token int8, done text, failed int8[], dead int8[], errors text[],
      release bool, "retryLimit" int4, "retryDelayMs" int4)
  loop
    if v_replay then
      v_settled := v_settled || jsonb_build_object(
        'status', 0, 'committed', null, 'released', false,
        'buried', array(select d.message_offset from queen.dead_letters d
                         where d.partition_id = s.partition and d.group_id = s."group"
                           and d.message_offset = any (s.failed || s.dead)));
      continue;
    end if;
    v_done := s.done;
    if cardinality(s.failed || s.dead) > 0 then
      v_done := v_done + (select range_agg(int8range(o, o + 1)) from unnest(s.failed || s.dead) as o);
    end if;
    perform 1 from queen.partition_consumers c
      where c.partition_id = s.partition and c.group_id = s."group"
        and v_done && (int8multirange(int8range(0, c.committed)) + coalesce(c.acked, '{}'));
    if found then
      raise exception 'Message already acknowledged' using errcode = 'QN409';
    end if;
    select * into v_row from queen.settle_lease(s.partition, s."group", s.token, s.done::int8multirange,
                                                s.failed, s.dead, s.errors, s.release, s."retryLimit",
                                                s."retryDelayMs");
    if v_row.status <> 0 then
      raise exception 'Invalid or expired lease' using errcode = 'QN409';
    end if;
    v_settled := v_settled || to_jsonb(v_row);
  end loop;

  return jsonb_build_object('appended', v_appended, 'settled', v_settled);
end
$$;
