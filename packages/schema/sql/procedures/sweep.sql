-- sweep: one round of a sweep, if it is due and nobody else is at it.
--
-- in   p_name         leases, eviction, retention, partitions, metrics or lag
--      p_worker       who asks
--      p_interval_ms  the time between the end of a pass and the beginning of the next; of lag there is a pass in every
--                     stretch of so long, but its rounds take at most a hundredth of the time
--      p_batch        rows that a round may change at most
--      p_keep_s       partitions, metrics: how old; leases: how long ago they ran out
-- out  state     elsewhere: somebody else is at it; not due; under way: a round was done, more is to do;
--                finished: the pass is complete
--      wait_ms   when to ask again
--      done      under way: by this round; finished: by the whole pass
--      rounds    of the pass
--
-- There is no leader. The lock on the sweep's row is the claim for a round, which is one short transaction; where
-- the pass stands is in the row. A worker that dies in a round leaves nothing of it, and one that dies between
-- two rounds is replaced after ten seconds by whoever asks next.
--
-- Locks: the sweep's row, never waiting; then as the round says.
create or replace function queen.sweep(
  p_name text, p_worker text, p_interval_ms int8, p_batch int4, p_keep_s float8,
  out state text, out wait_ms int8, out done jsonb, out rounds int4)
language plpgsql
set search_path = queen, pg_temp
as $$
#variable_conflict use_column
declare
  v_now       timestamptz := clock_timestamp();
  v_ms        float8;
  v_claim_ms  constant int8 := 10000;
  v_due_at    timestamptz;
  s           queen.sweeps;
  r           record;
begin
  select * into s from queen.sweeps where name = p_name for no key update skip locked;
  if not found or s.position is not null and s.worker <> p_worker
                  and s.round_at > v_now - v_claim_ms * interval '1 millisecond' then
    state := 'elsewhere';
    wait_ms := least(p_interval_ms, v_claim_ms);
    return;
  end if;
  if s.position is null then
    v_due_at := queen.sweep_due_at(s, p_interval_ms);
    if v_due_at > v_now then
      state := 'not due';
      wait_ms := ceil(extract(epoch from v_due_at - v_now) * 1000)::int8;
      return;
    end if;
    s.position := '{}';
    s.started_at := v_now;
    s.rounds := 0;
    s.busy_ms := 0;
    s.done := '{}';
  end if;

  case p_name
    when 'leases' then r := queen.sweep_leases(s.position, (p_keep_s * 1000)::int8);
    when 'eviction' then r := queen.sweep_eviction(s.position, p_batch);
    when 'retention' then r := queen.sweep_retention(s.position, p_batch);
    when 'partitions' then r := queen.sweep_partitions(s.position, p_batch, p_keep_s);
    when 'metrics' then r := queen.sweep_metrics(p_batch, p_keep_s);
    when 'lag' then r := queen.sweep_lag(s.position, s.started_at);
  end case;

  v_ms := extract(epoch from clock_timestamp() - v_now) * 1000;
  s.done := queen.add_counts(s.done, r.done);
  update queen.sweeps
     set position = r.next, worker = p_worker, round_at = clock_timestamp(), started_at = s.started_at,
         finished_at = case when r.next is null then clock_timestamp() else s.finished_at end,
         rounds = s.rounds + 1, busy_ms = s.busy_ms + v_ms, done = s.done,
         passes = s.passes + (r.next is null)::int4, total = queen.add_counts(s.total, r.done)
   where name = p_name
  returning * into s;
  state := case when r.next is null then 'finished' else 'under way' end;
  wait_ms := case when r.next is null
                  then ceil(extract(epoch from queen.sweep_due_at(s, p_interval_ms) - s.finished_at) * 1000)::int8
                  else ceil(v_ms)::int8 end;
  done := case when r.next is null then s.done else r.done end;
  rounds := s.rounds;
end
$$;
