-- sql_read_items: the messages of a push, checked and in the form in which they are stored. Part of the SQL
-- interface's inside.
--
-- in   p_items    [{queue, partition, transactionId, traceId, producerSub, traceparent, payload | data | payloadText}];
--                 a traceparent that is none by the W3C's rules is ignored
--      p_paths    where each item stands in the request, for messages; null: items[0], items[1], …
--      p_missing  the payload of an item that has none
-- out  item       index from 1, in this order
--      key        as in queen.segments
--      fragment   as in queen.segments
--
-- Raises QN400 with the item and the field, before anything is changed.
create or replace function queen.sql_read_items(p_items jsonb, p_paths text[], p_missing text)
returns table (item int4, queue text, partition text, transaction_id text, trace_id text, key bytea, fragment bytea)
language plpgsql
set search_path = queen, pg_temp
as $$
#variable_conflict use_column
declare
  v_at      int4;
  v_problem text;
  v_text    text;
begin
  select i.at, i.problem into v_at, v_problem
    from (select t.at::int4 as at, case
            when jsonb_typeof(t.item) <> 'object' then ': Item must be an object'
            else coalesce(
              queen.sql_name_problem(t.item -> 'queue', 'queue', true),
              case when t.item ? 'partition'
                   then queen.sql_name_problem(t.item -> 'partition', 'partition', false) end,
              case when coalesce(t.item ->> 'transactionId', '') <> ''
                   then queen.sql_name_problem(t.item -> 'transactionId', 'transactionId', false) end,
              case when jsonb_typeof(t.item -> 'traceId') not in ('string', 'null')
                   then '.traceId: TraceId must be a string'
                   when t.item ->> 'traceId' !~* '^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?$'
                   then '.traceId: TraceId must be a UUID' end,
              case when jsonb_typeof(t.item -> 'producerSub') not in ('string', 'null')
                   then '.producerSub: ProducerSub must be a string' end,
              case when jsonb_typeof(t.item -> 'payloadText') not in ('string', 'null')
                   then '.payloadText: PayloadText must be a string' end)
            end as problem
            from jsonb_array_elements(p_items) with ordinality as t (item, at)) i
   where i.problem is not null
   order by i.at limit 1;
  if v_problem is not null then
    raise exception '%', coalesce(p_paths[v_at], 'items[' || v_at - 1 || ']') || v_problem using errcode = 'QN400';
  end if;

  if jsonb_path_exists(p_items, '$[*].payloadText ? (@ != null)') then
    begin
      for v_at, v_text in
        select t.at, t.item ->> 'payloadText' from jsonb_array_elements(p_items) with ordinality as t (item, at)
         where t.item ->> 'payloadText' is not null
      loop
        perform v_text::json;
      end loop;
    exception when data_exception or statement_too_complex then
      raise exception '%', coalesce(p_paths[v_at], 'items[' || v_at - 1 || ']')
                           || '.payloadText: PayloadText must be JSON: ' || sqlerrm using errcode = 'QN400';
    end;
  end if;

  return query
  select m.at, m.queue, m.partition, m.transaction_id, m.trace_id,
         int8send(hashtextextended(m.transaction_id, 0)),
         convert_to('"transactionId":' || to_json(m.transaction_id)
                    || ',"traceId":' || coalesce(to_json(m.trace_id)::text, 'null')
                    || ',"producerSub":' || coalesce(to_json(m.producer_sub)::text, 'null')
                    || coalesce(',"traceparent":' || to_json(m.traceparent), '')
                    || ',"data":' || m.payload, 'UTF8')
    from (select t.at::int4 as at, t.item ->> 'queue' as queue,
                 coalesce(t.item ->> 'partition', 'Default') as partition,
                 coalesce(nullif(t.item ->> 'transactionId', ''), gen_random_uuid()::text) as transaction_id,
                 lower(nullif(t.item ->> 'traceId', '')) as trace_id,
                 nullif(t.item ->> 'producerSub', '') as producer_sub,
                 substring(t.item ->> 'traceparent' from
                           '^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$') as traceparent,
                 coalesce(btrim(t.item ->> 'payloadText', e' \t\n\r'), (t.item -> 'payload')::text,
                          (t.item -> 'data')::text, p_missing) as payload
            from jsonb_array_elements(p_items) with ordinality as t (item, at)) m
   order by m.at;
end
$$;

revoke execute on function queen.sql_read_items(jsonb, text[], text) from public;
