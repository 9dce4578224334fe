-- dead_letters_matching: the ids of dead letters that a filter names, the newest failure first.
--
-- in   p_queue, p_group, p_partition   names; null: any
--      p_error                         the whole error; null: any
--      p_from, p_to                    failed between these, to the millisecond; null: at any time
--      p_before_at, p_before_id        only what comes after this letter in the order; null: from the first on
--      p_limit, p_offset
-- out  letter_id, failed_at
--
-- The statement is made for the filters that are given, so that each finds its index.
create or replace function queen.dead_letters_matching(
  p_queue text, p_group text, p_partition text, p_error text, p_from timestamptz, p_to timestamptz,
  p_before_at timestamptz, p_before_id int8, p_limit int8, p_offset int8)
returns table (letter_id int8, failed_at timestamptz)
language plpgsql stable
set search_path = queen, pg_temp
set jit = off
as $$
#variable_conflict use_column
declare
  v_queue int8;
begin
  if p_queue is not null then
    select id into v_queue from queen.queues where name = p_queue;
    if not found then
      return;
    end if;
  end if;
  return query execute
    'select d.id, d.failed_at from queen.dead_letters d where true'
    || case when p_queue is not null then ' and d.queue_id = $1' else '' end
    || case when p_group is not null then ' and d.consumer_group = $2' else '' end
    || case when p_partition is not null then ' and d.partition_name = $3' else '' end
    || case when p_error is not null then ' and d.error_message = $4' else '' end
    || case when p_from is not null then ' and d.failed_at >= $5' else '' end
    || case when p_to is not null then ' and d.failed_at < $6 + interval ''1 millisecond''' else '' end
    || case when p_before_at is not null then ' and (d.failed_at, d.id) < ($7, $8)' else '' end
    || ' order by d.failed_at desc, d.id desc limit $9 offset $10'
    using v_queue, p_group, p_partition, p_error, p_from, p_to, p_before_at, p_before_id, p_limit, p_offset;
end
$$;
