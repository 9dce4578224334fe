-- take: leases lanes for pops and returns what is in them; at least one row per lane asked for.
--
-- in   one element per lane, each lane at most once
--        p_pop          the pop it is for: the lanes of one pop share its budget, first come first
--        p_budget       messages that the pop wants in all
--        p_partition, p_group
--        p_token        the new lease's token
--        p_lease_s      its length
--        p_auto_ack     finish at delivery, no lease
--        p_delay_s, p_window_s, p_ttl_s   the queue's delayedProcessing, windowBuffer and ttl (0: none)
--        p_retry_limit  -1: unlimited
--        p_have_from, p_have_to  offsets whose segments the caller holds already
--      p_bytes        the call's messages have at most so many bytes, or are a single one; null: no limit
--      p_fit          false: a call with more of them is refused (QN413), and nothing was done
--                     true: lanes are cut, or left out, so that it fits; costs a question per lane
-- out  lane           index from 0
--      status         0 taken: [from_offset, to_offset) without what is in `acked`
--                     1 busy: another transaction holds the cursor, or the call's bytes were used up before
--                     2 missing: no cursor; open it
--                     3 empty: nothing to deliver
--                     4 leased by somebody; free in due_ms
--                     5 delayed, 6 window buffer, 7 retry delay: something to deliver in due_ms
--                     8 exhausted: the first message ran out of attempts by expired leases; bury it
--                     9 not tried: the pop's budget was used up before
--      from_offset, to_offset, expires_at, due_ms, acked
--      next_offset    of a lane that was taken or is empty
--      first_offset, count, created_at, ends, body    a segment of the range; null where the caller has it
--
-- Locks: cursor rows, never waiting. What is delivered is what is leased: the range is fixed under the
-- cursor's lock, below the next_offset of the same snapshot. A cursor below the start of the log moves to
-- what is left of it, and one below what is older than p_ttl_s moves past it.
create or replace function queen.take(
  p_pop int4[], p_budget int4[], p_partition int8[], p_group int4[], p_token int8[], p_lease_s int4[],
  p_auto_ack bool[], p_delay_s int4[], p_window_s int4[], p_ttl_s int4[], p_retry_limit int4[],
  p_have_from int8[], p_have_to int8[], p_bytes int8 default null, p_fit bool default false)
returns table (
  lane int4, status int2, from_offset int8, to_offset int8, next_offset int8, expires_at timestamptz, due_ms int8,
  acked text, first_offset int8, count int4, created_at timestamptz, ends bytea, body bytea)
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
  v_lanes    int4 := cardinality(p_partition);
  v_now      timestamptz := clock_timestamp();
  v_status   int2[] := array_fill(-1::int2, array[v_lanes]);
  v_from     int8[] := array_fill(0::int8, array[v_lanes]);
  v_to       int8[] := array_fill(0::int8, array[v_lanes]);
  v_next     int8[] := array_fill(0::int8, array[v_lanes]);
  v_due      int8[] := array_fill(0::int8, array[v_lanes]);
  v_acked    text[] := array_fill(''::text, array[v_lanes]);
  v_pop      int4 := -1;
  v_left     int4 := 0;
  v_lo       int8;
  v_hi       int8;
  v_done     int8multirange;
  v_seen     int4 := 0;
  v_taken    int4 := 0;
  v_updated  int4;
  v_ran_out  bool;
  v_want     int4;
  v_attempts int4;
  v_failures jsonb;
  v_floor    int8;
  v_due_at   timestamptz;
  v_due_ms   int8;
  v_old      timestamptz;
  v_first    int8;
  v_bytes    int8 := coalesce(p_bytes, 0);
  v_size     int8;
  r record;
begin
  for r in
    select l.lane::int4 as lane, l.pop, l.budget, l.auto_ack, l.delay_s, l.ttl_s, l.retry_limit,
           c.partition_id, c.group_id, c.committed, c.acked, c.lease_token, c.lease_until, c.failures,
           p.next_offset, p.start_offset,
           (select s.created_at from queen.segments s
             where l.ttl_s > 0 and s.partition_id = c.partition_id
               and s.first_offset <= greatest(c.committed, p.start_offset)
             order by s.first_offset desc limit 1) as first_at
      from unnest(p_pop, p_budget, p_partition, p_group, p_auto_ack, p_delay_s, p_window_s, p_ttl_s, p_retry_limit)
           with ordinality
           as l (pop, budget, partition_id, group_id, auto_ack, delay_s, window_s, ttl_s, retry_limit, lane)
      join queen.partition_consumers c on c.partition_id = l.partition_id and c.group_id = l.group_id
      join queen.partitions p on p.id = l.partition_id
     where (c.lease_token is null or c.lease_expires_at <= v_now)
       and p.next_offset > c.committed
       and (c.not_before is null or c.not_before <= v_now)
       and (l.window_s = 0 or p.last_at <= v_now - l.window_s * interval '1 second')
     order by l.lane
       for no key update of c skip locked
  loop
    if r.pop <> v_pop then
      v_pop := r.pop;
      v_left := r.budget;
    end if;
    v_seen := v_seen + 1;
    if v_left <= 0 then
      v_status[r.lane] := 9;
      continue;
    end if;

    v_lo := r.committed;
    v_done := r.acked;
    v_failures := r.failures;
    v_floor := r.start_offset;
    if r.ttl_s > 0 then
      v_old := v_now - r.ttl_s * interval '1 second';
      if v_old > r.first_at then
        v_floor := greatest(v_floor, queen.offset_at(r.partition_id, v_old));
      end if;
    end if;
    if v_floor > r.committed then
      v_done := int8multirange(int8range(0, v_floor)) + coalesce(r.acked, '{}');
      select upper(f) into v_lo from unnest(v_done) as f limit 1;
      v_done := nullif(v_done - int8multirange(int8range(null, v_lo)), '{}');
      v_failures := queen.unfinished_failures(r.failures, v_lo, v_done);
      update queen.partition_consumers c
         set committed = v_lo, acked = v_done, failures = v_failures,
             lease_token = case when v_lo >= r.lease_until then null else c.lease_token end,
             lease_expires_at = case when v_lo >= r.lease_until then null else c.lease_expires_at end,
             lease_until = case when v_lo >= r.lease_until then null else c.lease_until end
       where c.partition_id = r.partition_id and c.group_id = r.group_id;
      if v_lo >= r.next_offset then
        v_status[r.lane] := 3;
        v_next[r.lane] := r.next_offset;
        continue;
      end if;
    end if;

    v_want := v_left;
    v_ran_out := r.lease_token is not null and v_lo < r.lease_until;
    if v_ran_out or v_failures is not null then
      if v_ran_out then                       -- a lease that ran out is an attempt of its first message
        v_failures := queen.count_failure(v_failures, v_lo, 'lease expired', v_now);
      end if;
      v_attempts := coalesce((v_failures -> v_lo::text ->> 'n')::int4, 0);
      if r.retry_limit >= 0 and v_attempts > r.retry_limit + 1 and v_ran_out then
        v_status[r.lane] := 8;
        continue;
      end if;
      if r.retry_limit >= 0 and v_attempts > r.retry_limit then
        v_want := 1;                          -- the last chance, alone
      end if;
    end if;

    v_hi := least(v_lo + v_want, r.next_offset);
    if r.delay_s > 0 then
      v_old := v_now - r.delay_s * interval '1 second';
      select coalesce(max(s.first_offset), v_lo) into v_first
        from queen.segments s where s.partition_id = r.partition_id and s.first_offset <= v_lo;
      select least(v_hi, max(s.first_offset + s.count)) into v_hi
        from queen.segments s
       where s.partition_id = r.partition_id and s.first_offset >= v_first and s.first_offset < v_hi
         and s.created_at <= v_old
      having count(*) > 0;
      if v_hi is null then
        v_status[r.lane] := 5;
        select greatest(0, ceil(extract(epoch from s.created_at - v_old) * 1000))::int8 into v_due_ms
          from queen.segments s
         where s.partition_id = r.partition_id and s.first_offset >= v_first
         order by s.first_offset limit 1;
        v_due[r.lane] := v_due_ms;
        continue;
      end if;
    end if;

    if p_fit then                             -- up to the last segment that fits; of the call's first lane one in any case
      select max(s.first_offset + s.count), max(s.bytes) into v_first, v_size
        from (select g.first_offset, g.count, g.first_offset <= v_lo as is_first,
                     sum(octet_length(g.body)) over (order by g.first_offset) as bytes
                from queen.segments g
               where g.partition_id = r.partition_id
                 and g.first_offset < v_hi
                 and g.first_offset >= coalesce(
                       (select b.first_offset from queen.segments b
                         where b.partition_id = r.partition_id and b.first_offset <= v_lo
                         order by b.first_offset desc limit 1), v_lo)) s
       where s.bytes <= v_bytes or (v_taken = 0 and s.is_first);
      if v_first is null then
        v_status[r.lane] := case when v_left < r.budget then 9 else 1 end;
        continue;
      end if;
      v_hi := least(v_hi, v_first);
      v_bytes := v_bytes - v_size;
    end if;

    v_taken := v_taken + 1;
    v_status[r.lane] := 0;
    v_from[r.lane] := v_lo;
    v_to[r.lane] := v_hi;
    v_next[r.lane] := r.next_offset;
    v_left := v_left - (v_hi - v_lo)::int4;
    if v_done is not null then
      v_acked[r.lane] := v_done::text;
    end if;
    if r.auto_ack and (v_done is not null or v_failures is not null) then
      update queen.partition_consumers c
         set committed = upper(run.first), acked = nullif(run.done - int8multirange(run.first), '{}'),
             failures = queen.unfinished_failures(v_failures, upper(run.first), run.done)
        from (select d.done, (select f from unnest(d.done) as f limit 1) as first
                from (select int8multirange(int8range(0, v_hi)) + coalesce(v_done, '{}') as done) d) run
       where c.partition_id = r.partition_id and c.group_id = r.group_id;
    elsif v_ran_out then
      update queen.partition_consumers c set failures = v_failures
       where c.partition_id = r.partition_id and c.group_id = r.group_id;
    end if;
  end loop;

  v_now := clock_timestamp();

  update queen.partition_consumers c
     set lease_token = case when p_auto_ack[l.lane] then null else p_token[l.lane] end,
         lease_expires_at = case when p_auto_ack[l.lane] then null
                                 else v_now + p_lease_s[l.lane] * interval '1 second' end,
         lease_until = case when p_auto_ack[l.lane] then null else v_to[l.lane] end,
         lease_acquired_at = v_now,
         not_before = null,
         committed = case when p_auto_ack[l.lane] then greatest(c.committed, v_to[l.lane]) else c.committed end,
         last_consumed_at = case when p_auto_ack[l.lane] then v_now else c.last_consumed_at end
    from unnest(p_partition, p_group) with ordinality as l (partition_id, group_id, lane)
   where v_status[l.lane] = 0 and c.partition_id = l.partition_id and c.group_id = l.group_id;

  get diagnostics v_updated = row_count;
  if v_updated <> v_taken then
    raise exception 'a lane was asked for twice in one call' using errcode = 'QN400';
  end if;

  if v_seen < v_lanes then
    -- The others were not locked: say why, as far as this moment shows.
    for r in
      select l.lane::int4 as lane, c.partition_id is null as missing, c.committed, c.lease_token,
             c.lease_expires_at, c.not_before, p.next_offset, p.last_at, l.window_s
        from unnest(p_partition, p_group, p_window_s) with ordinality as l (partition_id, group_id, window_s, lane)
        left join queen.partition_consumers c on c.partition_id = l.partition_id and c.group_id = l.group_id
        left join queen.partitions p on p.id = l.partition_id
       where v_status[l.lane] = -1
    loop
      v_due_at := null;
      if r.missing then
        v_status[r.lane] := 2;
      elsif r.lease_token is not null and r.lease_expires_at > v_now then
        v_status[r.lane] := 4;
        v_due_at := r.lease_expires_at;
      elsif r.next_offset <= r.committed then
        v_status[r.lane] := 3;
        v_next[r.lane] := r.next_offset;
      elsif r.not_before > v_now then
        v_status[r.lane] := 7;
        v_due_at := r.not_before;
      elsif r.window_s > 0 and r.last_at > v_now - r.window_s * interval '1 second' then
        v_status[r.lane] := 6;
        v_due_at := r.last_at + r.window_s * interval '1 second';
      else
        v_status[r.lane] := 1;
      end if;
      if v_due_at is not null then
        v_due[r.lane] := greatest(0, ceil(extract(epoch from v_due_at - v_now) * 1000))::int8;
      end if;
    end loop;
  end if;

  return query
  select (l.lane - 1)::int4, v_status[l.lane], v_from[l.lane], v_to[l.lane], v_next[l.lane],
         v_now + p_lease_s[l.lane] * interval '1 second',
         v_due[l.lane], nullif(v_acked[l.lane], ''),
         s.first_offset, s.count, s.created_at, s.ends,
         case when not p_fit and sum(octet_length(s.body)) over () > p_bytes then queen.too_many_bytes(p_bytes)
              else s.body end
    from unnest(p_partition, p_have_from, p_have_to) with ordinality as l (partition_id, have_from, have_to, lane)
    left join lateral (
      select s.first_offset, s.count, s.created_at, s.ends, s.body
        from queen.segments s
       where s.partition_id = l.partition_id
         and s.first_offset < v_to[l.lane]
         and s.first_offset >= coalesce(
               (select b.first_offset from queen.segments b
                 where b.partition_id = l.partition_id and b.first_offset <= v_from[l.lane]
                 order by b.first_offset desc limit 1), v_from[l.lane])
       order by s.first_offset) s
      on v_status[l.lane] = 0 and not (v_from[l.lane] >= l.have_from and v_to[l.lane] <= l.have_to);
end
$$;
