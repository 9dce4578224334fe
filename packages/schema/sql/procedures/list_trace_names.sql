-- list_trace_names: the names of traces, the one used last first.
--
-- in   p_limit, p_offset
-- out  trace_name           null: the page is empty
--      traces, messages     that have the name
--      last_seen
--      total                names in all; the same in every row
--
-- Walks the index of names once, in its order; messages are counted for the page only.
create or replace function queen.list_trace_names(p_limit int4, p_offset int8)
returns table (trace_name text, traces int8, messages int8, last_seen timestamptz, total int8)
language sql stable
set search_path = queen, pg_temp
set enable_seqscan = off
set jit = off
begin atomic
  with used as materialized (
    select n.trace_name, count(*) as traces, max(n.trace_id) as newest
      from queen.message_trace_names n group by n.trace_name),
  page as (
    select u.* from used u order by u.newest desc limit p_limit offset p_offset)
  select p.trace_name, p.traces,
         (select count(distinct (t.partition_id, t.message_offset))
            from queen.message_trace_names n
            join queen.message_traces t on t.id = n.trace_id
           where n.trace_name = p.trace_name),
         (select t.created_at from queen.message_traces t where t.id = p.newest), c.total
    from (select count(*) as total from used) c
    left join page p on true
   order by p.newest desc;
end;
