-- count_dead_letters: how many dead letters a filter names; see dead_letters_matching.
create or replace function queen.count_dead_letters(
  p_queue text, p_group text, p_partition text, p_error text, p_from timestamptz, p_to timestamptz)
returns int8
language plpgsql stable
set search_path = queen, pg_temp
set jit = off
as $$
declare
  v_queue int8;
  v_count int8;
begin
  if p_queue is not null then
    select id into v_queue from queen.queues where name = p_queue;
    if not found then
      return 0;
    end if;
  end if;
  execute
    'select count(*) from queen.dead_letters d where true'
    || case when p_queue is not null then ' and d.queue_id = $1' else '' end
    || case when p_group is not null then ' and d.consumer_group = $2' else '' end
    || case when p_partition is not null then ' and d.partition_name = $3' else '' end
    || case when p_error is not null then ' and d.error_message = $4' else '' end
    || case when p_from is not null then ' and d.failed_at >= $5' else '' end
    || case when p_to is not null then ' and d.failed_at < $6 + interval ''1 millisecond''' else '' end
    into v_count using v_queue, p_group, p_partition, p_error, p_from, p_to;
  return v_count;
end
$$;
