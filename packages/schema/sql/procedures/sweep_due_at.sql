-- sweep_due_at: when a sweep's next pass begins, after the one that ended last; null: now.
--
-- in   p_sweep        its row
--      p_interval_ms  from one end to the next beginning; of lag: a pass in every stretch of so long
create or replace function queen.sweep_due_at(p_sweep queen.sweeps, p_interval_ms int8)
returns timestamptz
language sql stable
set search_path = queen, pg_temp
as $$
  select case when p_sweep.name = 'lag'
              then greatest(p_sweep.finished_at + p_sweep.busy_ms * 99 * interval '1 millisecond',
                            date_bin(greatest(p_interval_ms, 1) * interval '1 millisecond', p_sweep.started_at,
                                     timestamptz '2000-01-01 00:00:00+00') + p_interval_ms * interval '1 millisecond')
              else p_sweep.finished_at + p_interval_ms * interval '1 millisecond' end
$$;
