-- sweep_partitions: one round of deleting idle partitions: no message is stored, nothing was pushed, consumed or
-- leased for long, no dead letter could be put back. `Default` stays: it belongs to the queue from the beginning.
--
-- in   p_position  where the round before ended; empty: from the beginning
--      p_batch     partitions to delete at most
--      p_idle_s    for how long nothing happened
-- out  next        where the next round begins; null: the pass is complete
--      done        what was done, by kind
--
-- A push that holds the partition keeps it; one that comes a moment later finds it gone and makes it anew.
--
-- Locks: partitions and their cursors, never waiting.
create or replace function queen.sweep_partitions(
  p_position jsonb, p_batch int4, p_idle_s float8, out next jsonb, out done jsonb)
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
  v_until    timestamptz := clock_timestamp() + interval '50 milliseconds';
  v_page_max constant int4 := 2000;
  v_after    int8 := coalesce((p_position ->> 'partition')::int8, 0);
  v_idle_at  timestamptz := clock_timestamp() - p_idle_s * interval '1 second';
  v_gone     int8[] := '{}';
  v_page     int8[];
  v_cursors  int4;
  v_locked   int4;
  l          record;
begin
  loop
    select array_agg(p.id order by p.id) into v_page
      from (select id from queen.partitions where id > v_after order by id limit v_page_max) p;
    v_after := v_page[cardinality(v_page)];
    for l in
      select p.id
        from unnest(v_page) as on_page (id)
        join queen.partitions p on p.id = on_page.id
       where p.start_offset = p.next_offset and p.name <> 'Default'
         and coalesce(p.last_at, p.created_at) < v_idle_at
         and not exists (select 1 from queen.dead_letters d where d.partition_id = p.id)
         and not exists (select 1 from queen.partition_consumers c
                          where c.partition_id = p.id
                            and (c.last_consumed_at >= v_idle_at or c.lease_expires_at > clock_timestamp()))
       order by p.id
    loop
      if cardinality(v_gone) >= p_batch then
        v_after := l.id - 1;
        exit;
      end if;
      perform 1 from queen.partitions p
        where p.id = l.id and p.start_offset = p.next_offset and coalesce(p.last_at, p.created_at) < v_idle_at
          for update skip locked;
      continue when not found;
      select count(*)::int4 into v_cursors from queen.partition_consumers c where c.partition_id = l.id;
      perform 1 from queen.partition_consumers c where c.partition_id = l.id for update skip locked;
      get diagnostics v_locked = row_count;
      if v_locked = v_cursors then
        v_gone := v_gone || l.id;
      end if;
    end loop;
    exit when coalesce(cardinality(v_page), 0) < v_page_max and cardinality(v_gone) < p_batch;
    if cardinality(v_gone) >= p_batch or clock_timestamp() >= v_until then
      next := jsonb_build_object('partition', v_after);
      exit;
    end if;
  end loop;
  if v_gone <> '{}' then
    delete from queen.partitions p where p.id = any (v_gone);
  end if;
  done := jsonb_build_object('partitions', cardinality(v_gone));
end
$$;
