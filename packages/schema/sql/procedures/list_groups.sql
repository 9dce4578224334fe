-- list_groups: every consumer group of every queue, with how far it is behind.
--
-- in   p_queue   only this queue; null: all
-- out  name, queue_name, subscription_mode, subscription_from, created_at
--      members        lanes where the group has a cursor
--      lagging        lanes with unfinished messages
--      pending        unfinished messages in all
--      oldest_at      when the oldest unfinished message was stored; null: there is none
--      last_consumed_at
--
-- One index probe of the log per lagging lane, for at most 10,000 lanes of a group: those that nobody has
-- pushed to for longest, which are most likely to hold the oldest message.
create or replace function queen.list_groups(p_queue text)
returns table (name text, queue_name text, subscription_mode text, subscription_from timestamptz,
               created_at timestamptz, members int8, lagging int8, pending int8, oldest_at timestamptz,
               last_consumed_at timestamptz)
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  select g.name, q.name, g.subscription_mode, g.subscription_from, g.created_at,
         coalesce(l.members, 0), coalesce(l.lagging, 0), coalesce(l.pending, 0)::int8, o.oldest_at, l.last_consumed_at
    from queen.consumer_groups g
    join queen.queues q on q.id = g.queue_id
   cross join lateral (
     select count(*) filter (where l.has_cursor) as members, count(*) filter (where l.pending > 0) as lagging,
            sum(l.pending) as pending, max(l.last_consumed_at) as last_consumed_at
       from queen.group_lanes(q.id, g.id) l) l
   cross join lateral (
     select min(s.created_at) as oldest_at
       from (select l.partition_id, l.place from queen.group_lanes(q.id, g.id) l
              where l.pending > 0 order by l.last_at limit 10000) l
      cross join lateral (select s.created_at from queen.segments s
                           where s.partition_id = l.partition_id and s.first_offset <= l.place
                           order by s.first_offset desc limit 1) s) o
   where p_queue is null or q.name = p_queue
   order by q.name, g.name;
end;
