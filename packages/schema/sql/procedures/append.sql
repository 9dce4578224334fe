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
-- row lock is what makes offsets appear in commit order without gaps. A lane of which the caller knows everything is
-- locked and moved on by one statement: where another writer was faster, the row is not as known any more, and stays. What
-- was added before we got the lock is visible to the statements after the locking one, each of which has a new snapshot.
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
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_lanes    constant int4 := cardinality(p_partition);
  v_base     int8[] := array_fill(-1::int8, array[v_lanes]);  -- where it is appended; -1: not yet
  v_at       timestamptz[] := array_fill(null::timestamptz, array[v_lanes]);
  v_left     int4 := v_lanes;
  v_differs  int4[] := '{}';
  v_taken    int4[] := '{}';
  v_answered int4[] := '{}';
  v_behind_max constant int8 := 4096;
  r record;
begin
  for r in
    update queen.partitions p
       set next_offset = l.known + l.count, last_at = greatest(clock_timestamp(), p.last_at)
      from (select n.partition_id, n.known, n.count, n.sealed, n.ordinality
              from unnest(p_partition, p_known, p_count, p_sealed) with ordinality
                   as n (partition_id, known, count, sealed, ordinality)
              join queen.partitions p on p.id = n.partition_id
             order by p.id
               for no key update of p skip locked) l
     where p.id = l.partition_id and p.next_offset = l.known and (l.sealed or not p.encryption_required)
    returning l.ordinality as lane, l.known as base, p.last_at
  loop
    v_base[r.lane] := r.base;
    v_at[r.lane] := r.last_at;
    v_left := v_left - 1;
  end loop;

  if v_left > 0 then
    for r in
      select l.ordinality::int4 as lane, p.next_offset, p.encryption_required
        from unnest(p_partition) with ordinality as l (partition_id, ordinality)
        join queen.partitions p on p.id = l.partition_id
       where v_base[l.ordinality] < 0
       order by p.id
         for no key update of p skip locked
    loop
      if r.encryption_required and p_sealed[r.lane] is not true then
        v_answered := v_answered || r.lane;
        return query select r.lane - 1, 6::int2, null::int8, null::timestamptz, null::bytea;
      elsif p_known[r.lane] < 0 or p_known[r.lane] > r.next_offset or r.next_offset - p_known[r.lane] > v_behind_max then
        v_answered := v_answered || r.lane;
        return query select r.lane - 1, 3::int2, null::int8, null::timestamptz, null::bytea;
      else
        v_differs := v_differs || r.lane;
      end if;
    end loop;

    if v_differs <> '{}' then
      -- The keys of both sides are hashed, not compared each with each.
      v_taken := array(
        select same.lane
          from (select n.lane, substring(n.keys from k * 8 + 1 for 8)
                  from unnest(p_lane, p_messages, p_keys) as n (lane, messages, keys)
                 cross join lateral generate_series(0, n.messages - 1) as k
                 where n.lane = any (v_differs)
                intersect
                select d.lane, substring(s.keys from k * 8 + 1 for 8)
                  from unnest(v_differs) as d (lane)
                 cross join lateral (
                   select s.keys, s.count from queen.segments s
                    where s.partition_id = p_partition[d.lane] and s.first_offset >= p_known[d.lane]) s
                 cross join lateral generate_series(0, s.count - 1) as k) same
         group by same.lane);

      if v_taken <> '{}' then
        return query
        select t.lane - 1, 4::int2, null::int8, null::timestamptz, null::bytea from unnest(v_taken) as t (lane);
      end if;

      return query
      select d.lane - 1, 5::int2, s.first_offset, s.created_at, s.keys
        from unnest(v_differs) as d (lane)
       cross join lateral (
         select s.first_offset, s.created_at, s.keys from queen.segments s
          where s.partition_id = p_partition[d.lane] and s.first_offset >= p_known[d.lane]
          order by s.first_offset) s
       where d.lane <> all (v_taken);

      for r in
        update queen.partitions p
           set next_offset = p.next_offset + p_count[d.lane], last_at = greatest(clock_timestamp(), p.last_at)
          from unnest(v_differs) as d (lane)
         where p.id = p_partition[d.lane] and d.lane <> all (v_taken)
        returning d.lane, p.next_offset - p_count[d.lane] as base, p.last_at
      loop
        v_base[r.lane] := r.base;
        v_at[r.lane] := r.last_at;
        v_left := v_left - 1;
      end loop;
    end if;

    if v_left > cardinality(v_answered || v_taken) then
      return query
      select (l.ordinality - 1)::int4,
             case when exists (select 1 from queen.partitions p where p.id = l.partition_id)
                  then 1::int2 else 2::int2 end, null::int8, null::timestamptz, null::bytea
        from unnest(p_partition) with ordinality as l (partition_id, ordinality)
       where v_base[l.ordinality] < 0 and l.ordinality <> all (v_answered || v_taken);
    end if;

    if v_left = v_lanes then
      return;
    end if;
  end if;

  insert into queen.segments (partition_id, first_offset, count, created_at, keys, ends, body)
  select p_partition[s.lane], v_base[s.lane] + s.relative, s.messages, v_at[s.lane], s.keys, s.ends, s.body
    from unnest(p_lane, p_relative, p_messages, p_keys, p_ends, p_body)
         as s (lane, relative, messages, keys, ends, body)
   where v_base[s.lane] >= 0;

  insert into queen.hints (partition_ids, appended)
  select array_agg(l.partition_id), true
    from unnest(p_partition, v_base) as l (partition_id, base)
   where l.base >= 0;

  return query
  select (l.ordinality - 1)::int4, 0::int2, l.base, l.at, null::bytea
    from unnest(v_base, v_at) with ordinality as l (base, at, ordinality)
   where l.base >= 0;
end
$$;
