-- offsets_with_status: the offsets of a lane whose messages have a status, from cursors and dead letters.
--
-- in   p_status   dead_letter   some group has it among its dead letters
--                 completed     finished by queue mode; in a queue that only named groups read: by all of them
--                 processing    under a lease of queue mode
--                 pending       none of these
create or replace function queen.offsets_with_status(p_partition int8, p_status text) returns int8multirange
language plpgsql stable
set search_path = queen, pg_temp
set jit = off
as $$
declare
  v_all        int8multirange;
  v_dead       int8multirange;
  v_finished   int8multirange;
  v_leased     int8multirange;
begin
  select int8multirange(int8range(start_offset, next_offset)) into v_all
    from queen.partitions where id = p_partition;
  select coalesce(range_agg(int8range(d.message_offset, d.message_offset + 1)), '{}') into v_dead
    from queen.dead_letters d where d.partition_id = p_partition;
  if p_status = 'dead_letter' then
    return v_all * v_dead;
  end if;
  select coalesce(range_intersect_agg(g.finished) filter (where g.name = '__QUEUE_MODE__'),
                  range_intersect_agg(g.finished), '{}'),
         coalesce(range_intersect_agg(int8multirange(int8range(0, g.leased_until)))
                    filter (where g.name = '__QUEUE_MODE__' and g.leased_until is not null), '{}')
    into v_finished, v_leased
    from queen.lane_groups(p_partition) g;
  v_leased := v_leased - v_finished;
  return (case p_status when 'completed' then v_all * v_finished
                        when 'processing' then v_all * v_leased
                        when 'pending' then v_all - v_finished - v_leased
                        else v_all end) - v_dead;
end
$$;
