-- show_lane: a lane with the places of all its consumer groups.
--
-- out  null: there is no such queue or partition; otherwise an object
--   partition   id, name, created_at, last_at, start_offset, next_offset, dead_letters
--   groups      by name: name, place (the first offset that is not finished), pending, ahead (the first hundred
--               finished ranges above the place, as [from, to)), leased_until, lease_expires_at
--
-- Reads offsets; the log as lane_groups does.
create or replace function queen.show_lane(p_queue text, p_partition text) returns jsonb
language sql stable
set search_path = queen, pg_temp
set timezone = 'UTC'
set jit = off
begin atomic
  select jsonb_build_object(
    'partition', jsonb_build_object(
      'id', p.id, 'name', p.name, 'created_at', p.created_at, 'last_at', p.last_at,
      'start_offset', p.start_offset, 'next_offset', p.next_offset,
      'dead_letters', (select count(*) from queen.dead_letters d where d.partition_id = p.id)),
    'groups', (
      select coalesce(jsonb_agg(jsonb_build_object(
               'name', g.name, 'place', f.place, 'pending', p.next_offset - f.place - f.above, 'ahead', f.ahead,
               'leased_until', g.leased_until, 'lease_expires_at', g.lease_expires_at) order by g.name), '[]')
        from queen.lane_groups(p.id) g
       cross join lateral (
         select least(p.next_offset, greatest(p.start_offset,
                  coalesce((select upper(r) from unnest(g.finished) as r where lower(r) = 0), 0))) as place) h
       cross join lateral (
         select h.place, coalesce(sum(upper(r) - lower(r)), 0)::int8 as above,
                coalesce(jsonb_agg(jsonb_build_array(lower(r), upper(r)) order by lower(r)) filter (where n <= 100), '[]')
                  as ahead
           from unnest(g.finished) with ordinality as u (r, n) where lower(r) > h.place) f))
    from queen.queues q join queen.partitions p on p.queue_id = q.id
   where q.name = p_queue and p.name = p_partition;
end;
