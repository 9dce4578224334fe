-- transact_many: many transactions in one call, of which the plain ones are committed and all others left untouched.
--
-- in   p_transactions   how many
--      one element per lane
--        p_of           its transaction, index from 1
--        p_partition, p_known, p_count, p_sealed   as append
--      p_lane … p_body  one element per segment, as append
--      one element per lease and partition
--        p_lease_of     its transaction, index from 1
--        p_lease_partition, p_lease_group, p_lease_token
--        p_from, p_to   the finished offsets [p_from, p_to); several elements may be of one lease
-- out  one row per lane (index from 0) and one per lease of each transaction that is done
--      lane, at_offset, created_at   where its messages are, and since when
--      lease, committed, released    the group's place now, and whether the lane is free
--
-- A transaction is plain if nobody wrote to its lanes since p_known, every lease is held, and none of its messages was
-- finished before. Of those that push to the same partition the messages follow each other; the caller has compared them.
-- Of those that finish the same message, the first is plain.
-- Locks: partitions by id, then cursors by (partition, group), never waiting: what another transaction holds is not plain.
-- A cursor is locked only by whoever has the lanes, so that of several that race for a transaction, one does it.
create or replace function queen.transact_many(
  p_transactions int4,
  p_of int4[], p_partition int8[], p_known int8[], p_count int4[], p_sealed bool[],
  p_lane int4[], p_relative int4[], p_messages int4[], p_keys bytea[], p_ends bytea[], p_body bytea[],
  p_lease_of int4[], p_lease_partition int8[], p_lease_group int4[], p_lease_token int8[], p_from int8[], p_to int8[])
returns table (lane int4, at_offset int8, created_at timestamptz, lease int4, committed int8, released bool)
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
  v_lanes     int4[] := array_fill(0, array[p_transactions]);  -- how many of its lanes are not as known
  v_open      int4[];                                           -- and of its leases, too
  v_locked    int4[] := '{}';                                   -- lanes that are as known, by partition
  v_base      int8[] := array_fill(-1::int8, array[cardinality(p_partition)]);  -- where a lane is appended; -1: not at all
  v_place     int4[] := array_fill(0, array[cardinality(p_partition)]);         -- its partition's index in the next three
  v_changed   int8[] := '{}';                                   -- the partitions that are appended to
  v_ends      int8[] := '{}';                                   -- how far each reaches then
  v_at        timestamptz[] := '{}';
  v_lane      int4;
  v_of        int4;
  v_partition int8;                                             -- the one looked at last
  v_group     int4;
  v_finished  int8multirange;
  v_next      int8;
  r record;
begin
  foreach v_of in array p_of loop
    v_lanes[v_of] := v_lanes[v_of] + 1;
  end loop;

  for r in
    select l.of, l.ordinality::int4 as lane
      from unnest(p_of, p_partition, p_known, p_sealed) with ordinality as l (of, partition_id, known, sealed, ordinality)
      join queen.partitions p on p.id = l.partition_id
     where p.next_offset = l.known and (l.sealed or not p.encryption_required)
     order by p.id, l.ordinality
       for no key update of p skip locked
  loop
    v_locked := v_locked || r.lane;
    v_lanes[r.of] := v_lanes[r.of] - 1;
  end loop;

  v_open := v_lanes;
  foreach v_of in array p_lease_of loop
    v_open[v_of] := v_open[v_of] + 1;
  end loop;
  for r in
    select l.of, c.partition_id, c.group_id, c.acked, int8range(l.from_offset, l.to_offset) as done
      from unnest(p_lease_of, p_lease_partition, p_lease_group, p_lease_token, p_from, p_to) with ordinality
           as l (of, partition_id, group_id, token, from_offset, to_offset, ordinality)
      join queen.partition_consumers c on c.partition_id = l.partition_id and c.group_id = l.group_id
     where v_lanes[l.of] = 0 and c.lease_token = l.token and c.committed <= l.from_offset and l.to_offset <= c.lease_until
     order by c.partition_id, c.group_id, l.ordinality
       for no key update of c skip locked
  loop
    if r.partition_id is distinct from v_partition or r.group_id is distinct from v_group then
      v_partition := r.partition_id;
      v_group := r.group_id;
      v_finished := coalesce(r.acked, '{}');
    end if;
    continue when v_finished && r.done;
    v_finished := v_finished + int8multirange(r.done);
    v_open[r.of] := v_open[r.of] - 1;
  end loop;

  if 0 <> all (v_open) then
    return;
  end if;

  v_partition := null;
  foreach v_lane in array v_locked loop
    continue when v_open[p_of[v_lane]] <> 0;
    if p_partition[v_lane] is distinct from v_partition then
      v_partition := p_partition[v_lane];
      v_next := p_known[v_lane];
      v_changed := v_changed || v_partition;
    end if;
    v_base[v_lane] := v_next;
    v_place[v_lane] := cardinality(v_changed);
    v_next := v_next + p_count[v_lane];
    v_ends[cardinality(v_changed)] := v_next;
  end loop;

  if v_changed <> '{}' then
    for r in
      update queen.partitions p
         set next_offset = l.next_offset, last_at = greatest(clock_timestamp(), p.last_at)
        from unnest(v_changed, v_ends) with ordinality as l (partition_id, next_offset, place)
       where p.id = l.partition_id
      returning l.place, p.last_at
    loop
      v_at[r.place] := r.last_at;
    end loop;

    insert into queen.segments (partition_id, first_offset, count, created_at, keys, ends, body)
    select p_partition[s.lane], v_base[s.lane] + s.relative, s.messages, v_at[v_place[s.lane]], s.keys, s.ends, s.body
      from unnest(p_lane, p_relative, p_messages, p_keys, p_ends, p_body)
           as s (lane, relative, messages, keys, ends, body)
     where v_base[s.lane] >= 0;

    insert into queen.hints (partition_ids, appended) values (v_changed, true);

    return query
    select (l.ordinality - 1)::int4, l.base, v_at[l.place], null::int4, null::int8, null::bool
      from unnest(v_base, v_place) with ordinality as l (base, place, ordinality)
     where l.base >= 0;
  end if;

  return query
  with settled as (
    update queen.partition_consumers c
       set (committed, acked, failures, lease_token, lease_expires_at, lease_until, last_consumed_at) = (
             select n.committed,
                    nullif(n.finished - int8multirange(int8range(null, n.committed)), '{}'),
                    queen.unfinished_failures(c.failures, n.committed, n.finished),
                    case when n.committed < c.lease_until then c.lease_token end,
                    case when n.committed < c.lease_until then c.lease_expires_at end,
                    case when n.committed < c.lease_until then c.lease_until end,
                    clock_timestamp()
               from (select f.finished,
                            case when lower(f.finished) > c.committed then c.committed
                                 else (select upper(first) from unnest(f.finished) as first limit 1) end as committed
                       from (select coalesce(c.acked, '{}') + d.finished as finished) f) n)
      from (select l.partition_id, l.group_id, range_agg(int8range(l.from_offset, l.to_offset)) as finished,
                   array_agg(l.lease) as leases
              from unnest(p_lease_of, p_lease_partition, p_lease_group, p_from, p_to) with ordinality
                   as l (of, partition_id, group_id, from_offset, to_offset, lease)
             where v_open[l.of] = 0
             group by l.partition_id, l.group_id) d
     where c.partition_id = d.partition_id and c.group_id = d.group_id
    returning d.leases, c.committed, c.lease_token is null as released)
  select null::int4, null::int8, null::timestamptz, (l.lease - 1)::int4, s.committed, s.released
    from settled s cross join lateral unnest(s.leases) as l (lease);
end
$$;
