-- scan_ready: looks at a page of lanes of each (queue, group) for work that no hint told of.
--
-- in   p_queue, p_group, p_after   one element per group; p_after: the last partition looked at
--      p_page                      lanes to look at for each
-- out  scan          index from 0
--      partition_id  a lane that has something to deliver and is not leased; null in the page's last row
--      name, next_offset
--      last          in the page's last row: the last partition looked at; null: the end was reached
create or replace function queen.scan_ready(p_queue int8[], p_group int4[], p_after int8[], p_page int4)
returns table (scan int4, partition_id int8, name text, next_offset int8, last int8)
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
  v_last int8;
begin
  for i in 1 .. cardinality(p_queue) loop
    return query
    select i - 1, p.id, p.name, p.next_offset, null::int8
      from (select p.id, p.name, p.next_offset, p.start_offset
              from queen.partitions p
             where p.queue_id = p_queue[i] and p.id > p_after[i]
             order by p.id limit p_page) p
      left join queen.partition_consumers c on c.partition_id = p.id and c.group_id = p_group[i]
     where p.next_offset > greatest(coalesce(c.committed, 0), p.start_offset)
       and (c.lease_token is null or c.lease_expires_at <= clock_timestamp())
       and (c.not_before is null or c.not_before <= clock_timestamp());

    select p.id into v_last from queen.partitions p
     where p.queue_id = p_queue[i] and p.id > p_after[i]
     order by p.id offset p_page - 1 limit 1;
    return query select i - 1, null::int8, null::text, null::int8, v_last;
  end loop;
end
$$;
