-- sweep_leases: one round of ending leases that ran out, so that attempts count and lanes show as free though
-- nobody pops.
--
-- in   p_position  where the round before ended; empty: from the beginning
--      p_grace_ms  a lease that ran out so short ago is left to its late consumer
-- out  next        where the next round begins; null: the pass is complete
--      done        what was done, by kind
--
-- No index knows about leases, so that taking one stays a HOT update: the cursors are walked by their key, in
-- pages, for 50 ms a round.
--
-- Locks: queues (key share) and cursors, never waiting.
create or replace function queen.sweep_leases(p_position jsonb, p_grace_ms int8, out next jsonb, out done jsonb)
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
  v_page_max  constant int4 := 2000;
  v_partition int8 := coalesce((p_position ->> 'partition')::int8, 0);
  v_group     int4 := coalesce((p_position ->> 'group')::int4, 0);
  v_ran_out   timestamptz := clock_timestamp() - p_grace_ms * interval '1 millisecond';
  v_free      int8[] := '{}';
  v_buried    int4 := 0;
  v_rows      int4;
  v_end       text;
  v_lanes     int8[];
  v_groups    int4[];
  l           record;
begin
  loop
    select count(*)::int4, (array_agg(c.partition_id order by c.partition_id, c.group_id))[v_page_max],
           (array_agg(c.group_id order by c.partition_id, c.group_id))[v_page_max],
           array_agg(c.partition_id) filter (where c.lease_expires_at <= v_ran_out),
           array_agg(c.group_id) filter (where c.lease_expires_at <= v_ran_out)
      into v_rows, v_partition, v_group, v_lanes, v_groups
      from (select c.partition_id, c.group_id, c.lease_expires_at
              from queen.partition_consumers c
             where (c.partition_id, c.group_id) > (v_partition, v_group)
             order by c.partition_id, c.group_id limit v_page_max) c;
    for l in
      select e.partition_id, e.group_id,
             case when coalesce(q.dlq_after_max_retries, q.dead_letter_queue, true) then greatest(0, q.retry_limit)
                  else -1 end as retry_limit
        from unnest(v_lanes, v_groups) as e (partition_id, group_id)
        join queen.partitions p on p.id = e.partition_id
        join queen.queues q on q.id = p.queue_id
       order by e.partition_id, e.group_id
         for key share of q skip locked
    loop
      v_end := queen.expire_lease(l.partition_id, l.group_id, l.retry_limit);
      if v_end is not null then
        v_free := v_free || l.partition_id;
        v_buried := v_buried + (v_end = 'buried')::int4;
      end if;
    end loop;
    exit when v_rows < v_page_max;
    if clock_timestamp() >= v_until then
      next := jsonb_build_object('partition', v_partition, 'group', v_group);
      exit;
    end if;
  end loop;
  perform queen.lanes_freed(v_free);
  done := jsonb_build_object('leases', cardinality(v_free), 'deadLetters', v_buried);
end
$$;
