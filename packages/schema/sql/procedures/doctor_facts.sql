-- doctor_facts: what the doctor looks at in the server and in Queen's tables, as one object.
--
-- in   p_old_s   transactions that are open for longer are named
-- out  as the keys below say; the broker judges (control/doctor-findings.ts)
--
-- Needs no superuser. `sees_all` is false where the role may not see other roles' transactions
-- (pg_read_all_stats). Counts of rows are the server's estimates; only the places of groups are looked at one
-- by one. Locks nothing.
create or replace function queen.doctor_facts(p_old_s float8) returns jsonb
language sql stable
set search_path = queen, pg_temp
set timezone = 'UTC'
set jit = off
as $$
  select jsonb_build_object(
    'now', clock_timestamp(),
    'role', current_user,
    'database', current_database(),
    'sees_all', pg_has_role(current_user, 'pg_read_all_stats', 'usage'),
    'server_version', current_setting('server_version'),
    'settings', (select jsonb_object_agg(name, setting) from pg_settings
                  where name in ('fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum', 'track_counts',
                                 'max_connections', 'superuser_reserved_connections')),
    -- The horizon of a database's tables is held back by its own sessions that have a snapshot or have written
    -- something, and by standbys.
    'transactions', (select coalesce(jsonb_agg(t order by t.seconds desc nulls last), '[]') from (
       select a.pid, a.usename as role, a.application_name as application, a.state, a.backend_type as kind,
              left(a.query, 200) as query,
              round(extract(epoch from clock_timestamp() - a.xact_start)::numeric, 1) as seconds,
              age(a.backend_xmin) as xids
         from pg_stat_activity a
        where a.pid <> pg_backend_pid()
          and (a.datname = current_database()
               and extract(epoch from clock_timestamp() - a.xact_start) >= p_old_s
               and (a.backend_xmin is not null or a.backend_xid is not null)
               or a.backend_type = 'walsender' and a.backend_xmin is not null and age(a.backend_xmin) > 1000000)
        order by a.xact_start nulls last limit 20) t),
    'prepared', (select coalesce(jsonb_agg(t order by t.seconds desc), '[]') from (
       select x.gid, x.owner as role, round(extract(epoch from clock_timestamp() - x.prepared)::numeric, 1) as seconds
         from pg_prepared_xacts x
        where x.database = current_database()
          and extract(epoch from clock_timestamp() - x.prepared) >= p_old_s
        order by x.prepared limit 20) t),
    'slots', (select coalesce(jsonb_agg(t order by t.name), '[]') from (
       select s.slot_name as name, s.slot_type as kind, s.active, s.wal_status,
              greatest(age(s.xmin), age(s.catalog_xmin)) as xids,
              pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end,
                              s.restart_lsn)::int8 as wal_bytes
         from pg_replication_slots s limit 20) t),
    'tables', (select coalesce(jsonb_agg(t order by t.name), '[]') from (
       select s.relname as name, s.n_live_tup as live, s.n_dead_tup as dead, s.n_tup_upd as updates,
              s.n_tup_hot_upd as hot_updates, greatest(s.last_autovacuum, s.last_vacuum) as last_vacuum,
              greatest(c.reltuples, 0)::int8 as rows
         from pg_stat_user_tables s join pg_class c on c.oid = s.relid
        where s.schemaname = 'queen'
          and s.relname in ('partitions', 'partition_consumers', 'hints', 'segments', 'queues')) t),
    'connections', (select count(*) from pg_stat_activity where backend_type in ('client backend', 'walsender')),
    'xid_age', (select age(datfrozenxid) from pg_database where datname = current_database()),
    'multixact_age', (select mxid_age(datminmxid) from pg_database where datname = current_database()),
    'oldest_hint_s', (select extract(epoch from clock_timestamp() - h.at) from queen.hints h order by h.xid limit 1),
    'maintenance', (select coalesce(jsonb_agg(jsonb_build_object(
                             'key', s.key, 'since', s.updated_at,
                             'seconds', extract(epoch from clock_timestamp() - s.updated_at)) order by s.key), '[]')
                      from queen.system_state s
                     where s.key in ('maintenance_mode', 'pop_maintenance_mode')
                       and s.value -> 'enabled' = 'true'::jsonb),
    'pauses', (select coalesce(jsonb_agg(t order by t.seconds desc), '[]') from (
       select q.name as queue, p.name as partition, g.name as "group", x.reason, x.paused_by as by, x.paused_at as at,
              extract(epoch from clock_timestamp() - x.paused_at) as seconds
         from queen.pauses x
         join queen.queues q on q.id = x.queue_id
         left join queen.partitions p on p.id = x.partition_id
         left join queen.consumer_groups g on g.id = x.group_id
        order by x.paused_at limit 20) t),
    'pause_count', (select count(*) from queen.pauses),
    'expired_leases', (select jsonb_build_object(
         'count', coalesce(max(t.total), 0),
         'oldest', coalesce(jsonb_agg(jsonb_build_object(
                     'queue', t.queue, 'partition', t.partition, 'group', t.group_name, 'seconds', t.seconds)
                     order by t.seconds desc), '[]'))
       from (select q.name as queue, p.name as partition, g.name as group_name,
                    extract(epoch from clock_timestamp() - c.lease_expires_at) as seconds, count(*) over () as total
               from queen.partition_consumers c
               join queen.partitions p on p.id = c.partition_id
               join queen.queues q on q.id = p.queue_id
               join queen.consumer_groups g on g.id = c.group_id
              where c.lease_expires_at < clock_timestamp() - interval '1 minute'
                and c.committed < c.lease_until
              order by c.lease_expires_at limit 10) t))
$$;
