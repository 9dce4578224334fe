-- hand_over: appends one segment to one partition and leases it to the pop that waits there; one row, or none: then nothing
-- was done, and it is for append and take to say why.
--
-- in   p_partition, p_known, p_messages, p_keys, p_ends, p_body, p_sealed   as in append: one lane, one segment
--      p_group, p_token, p_lease_s, p_auto_ack, p_budget                    as in take: one pop
-- out  created_at   of the messages, which are at p_known
--
-- One statement, because at a low rate it is what a message costs on its way: it does what append and take would do where
-- the caller knows everything of the lane, the group has finished all that was there, and nothing failed. Locks: the
-- partition's row, then the cursor's, never waiting.
create or replace function queen.hand_over(
  p_partition int8, p_known int8, p_messages int4, p_keys bytea, p_ends bytea, p_body bytea, p_sealed bool,
  p_group int4, p_token int8, p_lease_s int4, p_auto_ack bool, p_budget int4)
returns table (created_at timestamptz)
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_now constant timestamptz := clock_timestamp();
begin
  return query
  with place as materialized (
    select p.id from queen.partitions p
     where p.id = p_partition and p.next_offset = p_known and (p_sealed or not p.encryption_required)
       for no key update skip locked),
  waiting as materialized (
    select c.partition_id, c.group_id
      from place
      join queen.partition_consumers c on c.partition_id = place.id
     where c.group_id = p_group and c.committed = p_known
       and c.lease_token is null and c.acked is null and c.failures is null
       and (c.not_before is null or c.not_before <= v_now)
       for no key update of c skip locked),
  moved as (
    update queen.partitions p
       set next_offset = p_known + p_messages, last_at = greatest(v_now, p.last_at)
      from waiting
     where p.id = waiting.partition_id
    returning p.id, p.last_at),
  stored as (
    insert into queen.segments (partition_id, first_offset, count, created_at, keys, ends, body)
    select moved.id, p_known, p_messages, moved.last_at, p_keys, p_ends, p_body from moved),
  hinted as (
    insert into queen.hints (partition_ids, appended) select array[moved.id], true from moved),
  leased as (
    update queen.partition_consumers c
       set lease_token = case when p_auto_ack then null else p_token end,
           lease_expires_at = case when p_auto_ack then null else v_now + p_lease_s * interval '1 second' end,
           lease_until = case when p_auto_ack then null else p_known + least(p_budget, p_messages) end,
           lease_acquired_at = v_now,
           not_before = null,
           committed = case when p_auto_ack then p_known + least(p_budget, p_messages) else c.committed end,
           last_consumed_at = case when p_auto_ack then v_now else c.last_consumed_at end
      from waiting, moved
     where c.partition_id = waiting.partition_id and c.group_id = waiting.group_id)
  select moved.last_at from moved;
end
$$;
