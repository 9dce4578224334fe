-- sql_messages: the messages of a range of a lane, in order, as a pop shows them. Part of the SQL interface's
-- inside.
--
-- in   p_from, p_to   offsets [p_from, p_to), without those in p_acked
--      p_data_text    whether each payload is wanted as the exact JSON text, too
--      p_more         fields that are added to each message
-- out  [{id, transactionId, traceId, producerSub, data, createdAt, …}]. A payload that jsonb cannot hold is
--      `data: null` and stands in `dataText`. An encrypted message has `isEncrypted: true` and the `keyId` of its
--      key, and `data` as it is stored.
create or replace function queen.sql_messages(
  p_partition int8, p_from int8, p_to int8, p_acked int8multirange, p_data_text bool, p_more jsonb)
returns jsonb
language plpgsql stable
set search_path = queen, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_offsets   int8[];
  v_fragments text[];
  v_created   text[];
begin
  -- `body || ''` is the body out of its compression, once per segment.
  select array_agg(m.at_offset order by m.at_offset), array_agg(m.fragment order by m.at_offset),
         array_agg(m.created order by m.at_offset)
    into v_offsets, v_fragments, v_created
    from (select s.first_offset + n as at_offset, convert_from(queen.fragment_at(s.ends, s.body, n), 'UTF8') as fragment,
                 s.created
            from (select s.first_offset, s.count, s.ends, s.body || ''::bytea as body,
                         to_char(s.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as created
                    from queen.segments s
                   where s.partition_id = p_partition and s.first_offset < p_to
                     and s.first_offset >= coalesce(
                           (select b.first_offset from queen.segments b
                             where b.partition_id = p_partition and b.first_offset <= p_from
                             order by b.first_offset desc limit 1), p_from)
                  offset 0) s
           cross join lateral generate_series(greatest(p_from - s.first_offset, 0)::int4,
                                              (least(p_to - s.first_offset, s.count) - 1)::int4) as n) m
   where m.fragment <> '' and (p_acked is null or not p_acked @> m.at_offset);
  if v_offsets is null then
    return '[]';
  end if;

  begin
    return (select jsonb_agg(
                     ('{' || m.fragment || '}')::jsonb || p_more
                     || jsonb_build_object('id', queen.message_id(p_partition, m.at_offset), 'createdAt', m.created)
                     || case when p_data_text
                             then jsonb_build_object('dataText',
                                    substr(m.fragment, position(',"data":' in m.fragment) + 8)) else '{}' end
                     order by m.at_offset)
              from unnest(v_offsets, v_fragments, v_created) as m (at_offset, fragment, created));
  exception when data_exception or statement_too_complex then
    return (select jsonb_agg(
                     ('{' || left(m.fragment, m.cut - 1) || '}')::jsonb || p_more
                     || jsonb_build_object('id', queen.message_id(p_partition, m.at_offset), 'createdAt', m.created,
                                           'data', m.payload)
                     || case when p_data_text or m.payload is null
                             then jsonb_build_object('dataText', substr(m.fragment, m.cut + 8)) else '{}' end
                     order by m.at_offset)
              from (select m.at_offset, m.fragment, m.created, c.cut,
                           queen.sql_payload(substr(m.fragment, c.cut + 8)) as payload
                      from unnest(v_offsets, v_fragments, v_created) as m (at_offset, fragment, created)
                     cross join lateral (select position(',"data":' in m.fragment) as cut) c) m);
  end;
end
$$;

revoke execute on function queen.sql_messages(int8, int8, int8, int8multirange, bool, jsonb) from public;
