-- messages: the log as one row per message, so that users read their queues with SQL.
--
-- The header and the payload part at the first «,"data":», which no JSON string before it can contain. The
-- payload of an encrypted message is {"encrypted", "iv", "authTag"}; only a broker with the key can read it.
create or replace view queen.messages as
select queen.message_id(s.partition_id, s.first_offset + i)    as id,
       s.partition_id,
       s.first_offset + i                                      as message_offset,
       h.header ->> 'transactionId'                            as transaction_id,
       (h.header ->> 'traceId')::uuid                          as trace_id,
       substring(f.fragment from f.cut + 8)::json              as payload,
       s.created_at,
       h.header ->> 'isEncrypted' is not null                  as is_encrypted,
       h.header ->> 'producerSub'                              as producer_sub
  from queen.segments s
 cross join lateral generate_series(0, s.count - 1) as i
 cross join lateral (select convert_from(queen.fragment_at(s.ends, s.body, i), 'UTF8') as fragment) raw
 cross join lateral (select raw.fragment, position(',"data":' in raw.fragment) as cut) f
 cross join lateral (select ('{' || left(f.fragment, f.cut - 1) || '}')::json as header) h
 where f.fragment <> '';
