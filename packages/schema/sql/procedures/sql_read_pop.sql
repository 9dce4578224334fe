-- sql_read_pop: one request of a pop, checked. Part of the SQL interface's inside.
--
-- in   p_request  {idx, queue_name, partition_name, consumer_group, batch_size, lease_seconds, sub_mode, sub_from,
--                 partitions, auto_ack, data_text}; other fields are ignored
--      p_path     where it stands, for messages
-- out  partition  null: any
--      lease_s    null: as the queue says
--      mode, start_at   for a group that pops for the first time: all, new, or timestamp and the time
--
-- Raises QN400 with the request and the field.
create or replace function queen.sql_read_pop(
  p_request jsonb, p_path text,
  out queue text, out partition text, out consumer_group text, out batch int4, out lease_s int4,
  out partitions int4, out auto_ack bool, out data_text bool, out mode text, out start_at timestamptz)
language plpgsql stable
set search_path = queen, pg_temp
set timezone = 'UTC'
as $$
declare
  v_problem text;
  v_field   text;
begin
  if jsonb_typeof(p_request) is distinct from 'object' then
    raise exception '%: Request must be an object', p_path using errcode = 'QN400';
  end if;
  v_problem := coalesce(
    queen.sql_name_problem(p_request -> 'queue_name', 'queue_name', true),
    case when coalesce(p_request ->> 'partition_name', '') <> ''
         then queen.sql_name_problem(p_request -> 'partition_name', 'partition_name', false) end,
    case when coalesce(p_request ->> 'consumer_group', '') <> ''
         then queen.sql_name_problem(p_request -> 'consumer_group', 'consumer_group', false) end);
  if v_problem is not null then
    raise exception '%', p_path || v_problem using errcode = 'QN400';
  end if;
  foreach v_field in array array['batch_size', 'lease_seconds', 'partitions'] loop
    if jsonb_typeof(p_request -> v_field) <> 'null' and p_request ->> v_field !~ '^-?[0-9]{1,9}$' then
      raise exception '%.%: must be a whole number', p_path, v_field using errcode = 'QN400';
    end if;
  end loop;
  foreach v_field in array array['auto_ack', 'data_text'] loop
    if jsonb_typeof(p_request -> v_field) not in ('boolean', 'null') then
      raise exception '%.%: must be true or false', p_path, v_field using errcode = 'QN400';
    end if;
  end loop;

  queue := p_request ->> 'queue_name';
  partition := nullif(p_request ->> 'partition_name', '');
  consumer_group := coalesce(nullif(p_request ->> 'consumer_group', ''), '__QUEUE_MODE__');
  batch := least(greatest(coalesce((p_request ->> 'batch_size')::int4, 1), 1), 10000);
  lease_s := least(nullif(greatest(coalesce((p_request ->> 'lease_seconds')::int4, 0), 0), 0), 43200);
  partitions := least(greatest(coalesce((p_request ->> 'partitions')::int4, 1), 1), 128);
  auto_ack := coalesce((p_request ->> 'auto_ack')::bool, false);
  data_text := coalesce((p_request ->> 'data_text')::bool, false);
  if p_request ->> 'sub_from' = 'now' then
    mode := 'new';
  elsif coalesce(p_request ->> 'sub_from', '') <> '' then
    mode := 'timestamp';
    begin
      start_at := (p_request ->> 'sub_from')::timestamptz;
    exception when data_exception then
      raise exception '%.sub_from: must be "now" or a time such as 2026-11-15T19:00:00Z', p_path
        using errcode = 'QN400';
    end;
  else
    mode := case when p_request ->> 'sub_mode' in ('new', 'new-only') then 'new' else 'all' end;
  end if;
end
$$;

revoke execute on function queen.sql_read_pop(jsonb, text) from public;
