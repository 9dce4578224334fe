-- sweep_metrics: one round of forgetting old figures, in all tables that keep some by time.
--
-- in   p_batch    rows to delete at most
--      p_keep_s   how old they may get
-- out  next       where the next round begins; null: the pass is complete
--      done       what was done, by kind
create or replace function queen.sweep_metrics(p_batch int4, p_keep_s float8, out next jsonb, out done jsonb)
language plpgsql
set search_path = queen, pg_temp
set jit = off
as $$
declare
  -- A table and the column, with an index, that says when.
  v_tables constant text[] := array[
    ['retention_history', 'at'],
    ['worker_minutes', 'minute'],
    ['queue_minutes', 'minute'],
    ['group_minutes', 'minute'],
    ['audit_log', 'at']
  ];
  v_old_at timestamptz := clock_timestamp() - p_keep_s * interval '1 second';
  v_left   int4 := p_batch;
  v_rows   int4;
begin
  for i in 1 .. array_length(v_tables, 1) loop
    execute format('delete from queen.%1$I where ctid = any (array(
                      select ctid from queen.%1$I where %2$I < $1 order by %2$I limit $2))',
                   v_tables[i][1], v_tables[i][2])
      using v_old_at, v_left;
    get diagnostics v_rows = row_count;
    v_left := v_left - v_rows;
    if v_left <= 0 then
      next := '{}';
      exit;
    end if;
  end loop;
  done := jsonb_build_object('rows', p_batch - v_left);
end
$$;
