-- postgres_stats: how the server is doing with Queen's tables, from its own statistics.
--
-- out  jsonb object in the shape of GET /api/v1/analytics/postgres-stats
--
-- Needs no superuser: what a role may not see is left out. The contents of the buffer cache are shown only where the
-- extension pg_buffercache is installed and the role may read it.
create or replace function queen.postgres_stats() returns jsonb
language plpgsql stable
set search_path = queen, pg_temp
set jit = off
as $$
declare
  v_cache  text;
  v_usage  jsonb := '[]';
  v_answer jsonb;
begin
  select format('%I.pg_buffercache', n.nspname) into v_cache
    from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_buffercache';
  if v_cache is not null and has_table_privilege(v_cache, 'select') then
    begin
      execute format($sql$
        select coalesce(jsonb_agg(jsonb_build_object(
                 'object', b.name, 'bufferedSize', pg_size_pretty(b.bytes), 'bufferedBytes', b.bytes,
                 'percentOfCache', round(100.0 * b.bytes / (current_setting('block_size')::int8 * b.buffers), 2))
                 order by b.bytes desc), '[]')
          from (select c.relname as name, count(*) * current_setting('block_size')::int8 as bytes,
                       (select setting::int8 from pg_settings where name = 'shared_buffers') as buffers
                  from %s k join pg_class c on pg_relation_filenode(c.oid) = k.relfilenode
                   and k.reldatabase = (select oid from pg_database where datname = current_database())
                 where c.relnamespace = 'queen'::regnamespace
                 group by c.relname order by count(*) desc limit 20) b $sql$, v_cache) into v_usage;
    exception when insufficient_privilege then
      v_usage := '[]';
    end;
  end if;

  with tables as (
    select t.relid, t.relname, coalesce(io.heap_blks_read, 0) as reads, coalesce(io.heap_blks_hit, 0) as hits,
           t.n_dead_tup, t.n_live_tup, t.n_tup_upd, t.n_tup_hot_upd, t.last_vacuum, t.last_autovacuum,
           t.autovacuum_count, t.autoanalyze_count, pg_total_relation_size(t.relid) as total_bytes,
           pg_relation_size(t.relid) as table_bytes, pg_indexes_size(t.relid) as index_bytes
      from pg_stat_user_tables t left join pg_statio_user_tables io on io.relid = t.relid
     where t.schemaname = 'queen'),
  indexes as (
    select i.relname, i.indexrelname, coalesce(i.idx_blks_read, 0) as reads, coalesce(i.idx_blks_hit, 0) as hits
      from pg_statio_user_indexes i where i.schemaname = 'queen')
  select jsonb_build_object(
    'timestamp', to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'database', current_database(),
    'databaseCache', (select jsonb_build_object('database', d.datname, 'diskReads', d.blks_read,
                               'cacheHits', d.blks_hit, 'cacheHitRatio', queen.hit_ratio(d.blks_read, d.blks_hit))
                        from pg_stat_database d where d.datname = current_database()),
    'tableCache', (select coalesce(jsonb_agg(jsonb_build_object('schema', 'queen', 'table', relname, 'diskReads', reads,
                                    'cacheHits', hits, 'cacheHitRatio', queen.hit_ratio(reads, hits))
                                    order by reads + hits desc, relname), '[]') from tables),
    'indexCache', (select coalesce(jsonb_agg(jsonb_build_object('schema', 'queen', 'table', relname,
                                    'index', indexrelname, 'diskReads', reads, 'cacheHits', hits,
                                    'cacheHitRatio', queen.hit_ratio(reads, hits))
                                    order by reads + hits desc, indexrelname), '[]') from indexes),
    'cacheSummary', jsonb_build_object(
      'tables', (select jsonb_build_object('diskReads', coalesce(sum(reads), 0), 'cacheHits', coalesce(sum(hits), 0),
                                           'hitRatio', queen.hit_ratio(sum(reads)::int8, sum(hits)::int8)) from tables),
      'indexes', (select jsonb_build_object('diskReads', coalesce(sum(reads), 0), 'cacheHits', coalesce(sum(hits), 0),
                                            'hitRatio', queen.hit_ratio(sum(reads)::int8, sum(hits)::int8))
                    from indexes)),
    'deadTuples', (select coalesce(jsonb_agg(jsonb_build_object('schema', 'queen', 'table', relname,
                                    'deadTuples', n_dead_tup, 'liveTuples', n_live_tup, 'deadPercentage',
                                    coalesce(round(100.0 * n_dead_tup / nullif(n_dead_tup + n_live_tup, 0), 2), 0),
                                    'lastVacuum', queen.utc_seconds(last_vacuum),
                                    'lastAutovacuum', queen.utc_seconds(last_autovacuum))
                                    order by n_dead_tup desc, relname), '[]') from tables),
    'hotUpdates', (select coalesce(jsonb_agg(jsonb_build_object('schema', 'queen', 'table', relname,
                                    'totalUpdates', n_tup_upd, 'hotUpdates', n_tup_hot_upd, 'hotUpdatePercentage',
                                    coalesce(round(100.0 * n_tup_hot_upd / nullif(n_tup_upd, 0), 2), 0))
                                    order by n_tup_upd desc, relname), '[]') from tables),
    'activeQueries', (select coalesce(jsonb_agg(jsonb_build_object('pid', a.pid,
                                    'duration', round(extract(epoch from clock_timestamp() - a.query_start), 3),
                                    'state', a.state, 'query', left(a.query, 200),
                                    'waitEventType', a.wait_event_type, 'waitEvent', a.wait_event)
                                    order by a.query_start), '[]')
                        from (select * from pg_stat_activity
                               where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()
                               order by query_start limit 50) a),
    'autovacuumStatus', (select coalesce(jsonb_agg(jsonb_build_object('table', relname,
                                    'lastAutovacuum', queen.utc_seconds(last_autovacuum), 'deadTuples', n_dead_tup,
                                    'autovacuumCount', autovacuum_count, 'autoanalyzeCount', autoanalyze_count)
                                    order by relname), '[]') from tables),
    'bufferConfig', jsonb_build_object(
      'sharedBuffers', (select setting::int8 from pg_settings where name = 'shared_buffers'),
      'sharedBuffersSize', current_setting('shared_buffers')),
    'bufferUsage', v_usage,
    'tableSizes', (select coalesce(jsonb_agg(jsonb_build_object('table', relname,
                                    'totalSize', pg_size_pretty(total_bytes), 'totalSizeBytes', total_bytes,
                                    'tableSize', pg_size_pretty(table_bytes), 'tableSizeBytes', table_bytes,
                                    'indexSize', pg_size_pretty(index_bytes), 'indexSizeBytes', index_bytes)
                                    order by total_bytes desc, relname), '[]') from tables))
    into v_answer;
  return v_answer;
end
$$;
