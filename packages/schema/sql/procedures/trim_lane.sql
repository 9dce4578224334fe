-- trim_lane: removes the oldest segments of a lane, as far as rules allow, with the traces of their messages (not
-- of dead letters), and moves its start behind them.
--
-- in   p_old_at      everything stored before goes, finished or not; null: no such rule
--      p_expired_at  everything stored before goes, except from where somebody holds a lease; null: no such rule
--      p_done_at     what was stored before and every consumer group has finished goes; null: no such rule
--      p_segments    how many segments at most
-- out  old           messages that went by one of the first two rules
--      finished      messages that went by the third
--      segments      how many went; null: another transaction holds the lane
--
-- Only whole segments go. A group without a cursor counts as standing where its subscription starts; where no
-- group reads, nothing is finished.
--
-- Locks: the partition, never waiting. For p_done_at the caller keeps the queue's groups from being moved back.
create or replace function queen.trim_lane(
  p_partition int8, p_old_at timestamptz, p_expired_at timestamptz, p_done_at timestamptz, p_segments int4,
  out old int8, out finished int8, out segments int4)
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_start int8;
  v_old   int8;                              -- what is below may go, whoever has not finished it
  v_done  int8;                              -- what is below was finished by all
  v_place int8;                              -- of the group that is behind all others
  v_held  int8;                              -- of the last group that holds a lease
  v_end   int8;
begin
  old := 0;
  finished := 0;
  select p.start_offset into v_start from queen.partitions p where p.id = p_partition
     for no key update skip locked;
  if not found then
    return;
  end if;
  v_old := v_start;
  v_done := v_start;
  if p_old_at is not null then
    v_old := queen.offset_at(p_partition, p_old_at);
  end if;
  if p_expired_at is not null or p_done_at is not null then
    select min(g.place), min(g.place) filter (where g.is_leased) into v_place, v_held
      from (select case when g.finished @> 0::int8 then (select upper(f) from unnest(g.finished) as f limit 1)
                        else 0 end as place,
                   g.leased_until is not null as is_leased
              from queen.lane_groups(p_partition) g) g;
    if p_expired_at is not null then
      v_old := greatest(v_old, least(queen.offset_at(p_partition, p_expired_at), v_held));
    end if;
    if p_done_at is not null and v_place is not null then
      v_done := least(queen.offset_at(p_partition, p_done_at), v_place);
    end if;
  end if;

  select max(s.first_offset + s.count), count(*)::int4 into v_end, segments
    from (select s.first_offset, s.count from queen.segments s
           where s.partition_id = p_partition and s.first_offset >= v_start
             and s.first_offset < greatest(v_old, v_done)
           order by s.first_offset limit p_segments) s
   where s.first_offset + s.count <= greatest(v_old, v_done);
  if segments = 0 then
    return;
  end if;
  delete from queen.segments s
   where s.partition_id = p_partition and s.first_offset >= v_start and s.first_offset < v_end;
  delete from queen.message_traces t
   where t.partition_id = p_partition and t.message_offset >= v_start and t.message_offset < v_end
     and not exists (select 1 from queen.dead_letters d
                      where d.partition_id = p_partition and d.message_offset = t.message_offset);
  update queen.partitions p set start_offset = v_end where p.id = p_partition;
  old := greatest(0, least(v_end, v_old) - v_start);
  finished := v_end - v_start - old;
end
$$;
