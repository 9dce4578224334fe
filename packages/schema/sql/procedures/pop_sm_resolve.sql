-- pop_sm_resolve: the first step of a pop of any partition: which one. Part of the SQL interface.
--
-- in   p_requests  [{idx, queue_name, consumer_group, sub_mode, sub_from}]
-- out  [{idx, result}]: {success: true, queue, partition, partitionId, consumerGroup}, or {success: false, error}
--
-- Two requests of one call get different partitions. Locks: cursor rows, never waiting; within a transaction
-- they keep the partitions for the next step.
create or replace function queen.pop_sm_resolve(p_requests jsonb) returns jsonb
language plpgsql security definer
set search_path = queen, pg_temp
as $$
declare
  v_answers jsonb := '[]';
  v_result  jsonb;
  v_found   jsonb := '{}';                   -- (queue, group) → the partitions found before
  v_lanes   int8[];
  v_queue   int8;
  v_group   int4;
  v_key     text;
  r record;
begin
  for r in
    select coalesce(q.request -> 'idx', to_jsonb(q.at - 1)) as idx, a.*
      from jsonb_array_elements(queen.sql_list(p_requests, 'requests', 1000)) with ordinality as q (request, at)
     cross join lateral queen.sql_read_pop(q.request, 'requests[' || q.at - 1 || ']') a
     order by q.at
  loop
    v_lanes := '{}';
    select g.queue_id, g.group_id into v_queue, v_group
      from queen.open_group(r.queue, r.consumer_group, r.mode, r.start_at) g;
    if v_group is not null then
      v_key := v_queue || '/' || v_group;
      select f.lanes into v_lanes
        from queen.sql_find_lanes(v_queue, v_group, 1,
               array(select jsonb_array_elements_text(coalesce(v_found -> v_key, '[]'))::int8)) f;
    end if;
    if v_lanes = '{}' then
      v_result := jsonb_build_object('success', false, 'error',
        case when (select s.everything from queen.sql_pauses(v_queue, v_group) s) then 'paused'
             else 'no_available_partition' end);
    else
      v_found := v_found || jsonb_build_object(v_key, coalesce(v_found -> v_key, '[]') || to_jsonb(v_lanes));
      select jsonb_build_object('success', true, 'queue', r.queue, 'partition', p.name,
                                'partitionId', queen.partition_uuid(p.id), 'consumerGroup', r.consumer_group)
        into v_result from queen.partitions p where p.id = v_lanes[1];
    end if;
    v_answers := v_answers || jsonb_build_object('idx', r.idx, 'result', v_result);
  end loop;
  return v_answers;
end
$$;

revoke execute on function queen.pop_sm_resolve(jsonb) from public;
