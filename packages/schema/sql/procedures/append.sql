-- append: adds messages to many partitions; one result row per lane, and one per segment that was missed.
--
-- in   one element per lane
--        p_partition  the partition
--        p_known      the caller has compared its messages with every key below this offset
--        p_count      messages for this partition
--      one element per segment, in order
--        p_lane       its lane, index from 1
--        p_relative   its first message's place among the lane's messages, from 0
--        p_messages, p_keys, p_ends, p_body   as in queen.segments
--      one element per lane, null: false for all
--        p_sealed     whether its messages are encrypted, or are what was stored before
-- out  lane        index from 0
--      status      0 appended at `at_offset`
--                  1 busy: another transaction holds the partition; nothing stored
--                  2 gone: there is no such partition; nothing stored
--                  3 behind: too much was added since p_known; nothing stored, read the keys first
--                  4 conflict: one of the keys was added since p_known; nothing stored, read the keys first
--                  5 missed: `keys` from `at_offset` on were added by others since p_known (before 0)
--                  6 plain: the lane's messages must be encrypted, and these are not; nothing stored
--      at_offset
--      created_at  when, by the database's clock
--      keys
--
-- Locks: partition rows, never waiting (SKIP LOCKED), so that a merged call waits for nobody's lane. The
-- row lock is what makes offsets appear in commit order without gaps. What another writer added before we
-- got the lock is visible to the statements after the locking one, each of which has a new snapshot.
create or replace function queen.append(
  p_partition int8[], p_known int8[], p_count int4[],
  p_lane int4[], p_relative int4[], p_messages int4[], p_keys bytea[], p_ends bytea[], p_body bytea[],
  p_sealed bool[] default null)
returns table (lane int4, status int2, at_offset int8, created_at timestamptz, keys bytea)
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_base     int8[] := array_fill(-1::int8, array[cardinality(p_partition)]);  -- next_offset; -1: not ours
  v_last     timestamptz[] := array_fill('-infinity'::timestamptz, array[cardinality(p_partition)]);
  v_differs  int4[] := '{}';
  v_plain    int4[] := '{}';
  v_now      timestamptz;
  v_behind_max constant int8 := 4096;
  r record;
  i int4;
begin
  for r in
    select l.ordinality::int4 as lane, p.next_offset, p.last_at, p.encryption_required
      from unnest(p_partition) with ordinality as l (partition_id, ordinality)
      join queen.partitions p on p.id = l.partition_id
     order by p.id
       for no key update of p skip locked
  loop
    if r.encryption_required and p_sealed[r.lane] is not true then
      v_plain := v_plain || r.lane;
      continue;
    end if;
    v_base[r.lane] := r.next_offset;
    if r.last_at is not null then
      v_last[r.lane] := r.last_at;
    end if;
    if r.next_offset <> p_known[r.lane] then
      v_differs := v_differs || r.lane;
    end if;
  end loop;

  foreach i in array v_differs loop
    if p_known[i] < 0 or p_known[i] > v_base[i] or v_base[i] - p_known[i] > v_behind_max then
      v_base[i] := -1;
      return query select i - 1, 3::int2, null::int8, null::timestamptz, null::bytea;
    elsif exists (
      select 1
        from queen.segments s
       cross join lateral generate_series(0, s.count - 1) as m
        join (select substring(n.keys from k * 8 + 1 for 8) as key
                from unnest(p_lane, p_messages, p_keys) as n (lane, messages, keys)
               cross join lateral generate_series(0, n.messages - 1) as k
               where n.lane = i) new on new.key = substring(s.keys from m * 8 + 1 for 8)
       where s.partition_id = p_partition[i] and s.first_offset >= p_known[i])
    then
      v_base[i] := -1;
      return query select i - 1, 4::int2, null::int8, null::timestamptz, null::bytea;
    else
      return query
      select i - 1, 5::int2, s.first_offset, s.created_at, s.keys
        from queen.segments s
       where s.partition_id = p_partition[i] and s.first_offset >= p_known[i]
       order by s.first_offset;
    end if;
  end loop;

  if v_plain <> '{}' then
    return query
    select l.lane - 1, 6::int2, null::int8, null::timestamptz, null::bytea from unnest(v_plain) as l (lane);
    v_differs := v_differs || v_plain;       -- answered
  end if;

  v_now := clock_timestamp();

  update queen.partitions p
     set next_offset = v_base[l.ordinality] + p_count[l.ordinality],
         last_at = greatest(v_now, v_last[l.ordinality])
    from unnest(p_partition) with ordinality as l (partition_id, ordinality)
   where p.id = l.partition_id and v_base[l.ordinality] >= 0;

  if not found then
    return query
    select (l.ordinality - 1)::int4,
           case when exists (select 1 from queen.partitions p where p.id = l.partition_id)
                then 1::int2 else 2::int2 end, null::int8, null::timestamptz, null::bytea
      from unnest(p_partition) with ordinality as l (partition_id, ordinality)
     where l.ordinality <> all (v_differs);
    return;
  end if;

  insert into queen.segments (partition_id, first_offset, count, created_at, keys, ends, body)
  select p_partition[s.lane], v_base[s.lane] + s.relative, s.messages, greatest(v_now, v_last[s.lane]),
         s.keys, s.ends, s.body
    from unnest(p_lane, p_relative, p_messages, p_keys, p_ends, p_body)
         as s (lane, relative, messages, keys, ends, body)
   where v_base[s.lane] >= 0;

  insert into queen.hints (partition_ids)
  select array_agg(l.partition_id)
    from unnest(p_partition) with ordinality as l (partition_id, ordinality)
   where v_base[l.ordinality] >= 0;

  return query
  select (l.ordinality - 1)::int4,
         case when v_base[l.ordinality] >= 0 then 0::int2
              when exists (select 1 from queen.partitions p where p.id = l.partition_id) then 1::int2
              else 2::int2 end,
         case when v_base[l.ordinality] >= 0 then v_base[l.ordinality] end,
         case when v_base[l.ordinality] >= 0
              then greatest(v_now, v_last[l.ordinality]) end,
         null::bytea
    from unnest(p_partition) with ordinality as l (partition_id, ordinality)
   where v_base[l.ordinality] >= 0 or l.ordinality <> all (v_differs);
end
$$;
