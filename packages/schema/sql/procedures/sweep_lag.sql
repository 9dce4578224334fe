-- sweep_lag: one round of noting how far consumer groups are behind.
--
-- in   p_position  where the round before ended, and what it had counted of the queue it was at; empty: from the beginning
--      p_started   when the pass began
-- out  next        where the next round begins; null: the pass is complete
--      done        nothing that would be worth a line in the log
--
-- Messages are counted from offsets, as group_lanes does: lanes are walked by queue in pages, for 50 ms a round, and a
-- queue's groups are written when its last lane is counted. The age of the oldest message takes a look at the log: one
-- index probe for at most 100 lanes of a group and page, those that nobody has pushed to for longest and those with
-- most to do.
--
-- Locks: groups (key share), never waiting.
create or replace function queen.sweep_lag(p_position jsonb, p_started timestamptz, out next jsonb, out done jsonb)
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  v_until     timestamptz := clock_timestamp() + interval '50 milliseconds';
  v_minute    timestamptz := date_trunc('minute', p_started);
  v_page_max  constant int4 := 2000;
  v_asked_max constant int4 := 50;
  v_queue     int8 := coalesce((p_position ->> 'queue')::int8, 0);
  v_partition int8 := coalesce((p_position ->> 'partition')::int8, 0);
  v_counted   jsonb := coalesce(p_position -> 'counted', '[]');   -- of the queue that is not complete
  v_rows      int4;
  v_is_last   bool;
begin
  loop
    with page as materialized (
      select p.id, p.queue_id, p.start_offset, p.next_offset, p.last_at, p.created_at
        from queen.partitions p
       where (p.queue_id, p.id) > (v_queue, v_partition)
       order by p.queue_id, p.id limit v_page_max),
    lanes as (
      select p.queue_id, g.id as group_id, p.id, p.last_at, l.place,
             p.next_offset - l.place
               - case when c.acked is null then 0
                      else (select coalesce(sum(upper(r) - greatest(lower(r), l.place)), 0)::int8
                              from unnest(c.acked) as r where upper(r) > l.place) end as pending
        from page p
        join queen.consumer_groups g on g.queue_id = p.queue_id
        left join queen.partition_consumers c on c.partition_id = p.id and c.group_id = g.id
       cross join lateral (
         select least(p.next_offset, greatest(p.start_offset, case
                  when c.partition_id is not null then c.committed
                  when g.subscription_from is null then p.start_offset
                  when coalesce(p.last_at < g.subscription_from, true) then p.next_offset
                  when p.created_at >= g.subscription_from then p.start_offset
                  else queen.offset_at(p.id, g.subscription_from) end)) as place) l),
    ranked as (
      select l.*, row_number() over (partition by l.group_id order by l.pending = 0, l.last_at) as by_age,
             row_number() over (partition by l.group_id order by l.pending desc) as by_depth
        from lanes l),
    sums as (
      select r.queue_id, r.group_id, sum(r.pending) as pending,
             min(case when r.pending > 0 and least(r.by_age, r.by_depth) <= v_asked_max
                      then (select s.created_at from queen.segments s
                             where s.partition_id = r.id and s.first_offset <= r.place
                             order by s.first_offset desc limit 1) end) as oldest_at
        from ranked r group by r.queue_id, r.group_id)
    select (select count(*) from page), l.queue_id, l.id,
           v_counted || coalesce((select jsonb_agg(jsonb_build_object('q', s.queue_id, 'g', s.group_id, 'n', s.pending,
                                                                      'at', s.oldest_at)) from sums s), '[]')
      into v_rows, v_queue, v_partition, v_counted
      from (select 1) as always
      left join (select p.queue_id, p.id from page p order by p.queue_id desc, p.id desc limit 1) l on true;
    v_is_last := v_rows < v_page_max;

    with counted as (
      select c.q, c.g, sum(c.n)::int8 as n, min(c.at) as at
        from jsonb_to_recordset(v_counted) as c (q int8, g int4, n int8, at timestamptz)
       where v_is_last or c.q < v_queue
       group by c.q, c.g),
    there as (
      select g.id from queen.consumer_groups g where g.id in (select c.g from counted c)
         for key share of g skip locked)
    insert into queen.group_minutes as m (group_id, minute, pending, age_ms)
    select c.g, v_minute, c.n,
           greatest(0, coalesce(extract(epoch from clock_timestamp() - c.at) * 1000, 0))::int8
      from counted c
      join there on there.id = c.g
      left join lateral (select m.minute, m.pending from queen.group_minutes m
                          where m.group_id = c.g order by m.minute desc limit 1) l on true
     where c.n > 0 or l.pending is null or l.pending > 0 or l.minute <= v_minute - interval '1 hour'
    on conflict (group_id, minute) do update set pending = excluded.pending, age_ms = excluded.age_ms;

    exit when v_is_last;
    v_counted := (select coalesce(jsonb_agg(c), '[]') from jsonb_array_elements(v_counted) as c
                   where (c ->> 'q')::int8 = v_queue);
    if clock_timestamp() >= v_until then
      next := jsonb_build_object('queue', v_queue, 'partition', v_partition, 'counted', v_counted);
      exit;
    end if;
  end loop;
  done := '{}';
end
$$;
