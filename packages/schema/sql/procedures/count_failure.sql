-- count_failure: one more failed delivery of the message at an offset, in a cursor's `failures`.
--
-- The last ten failures are kept as the message's history.
create or replace function queen.count_failure(p_failures jsonb, p_offset int8, p_error text, p_at timestamptz)
returns jsonb
language sql immutable parallel safe
return coalesce(p_failures, '{}') || jsonb_build_object(p_offset::text, jsonb_build_object(
  'n', coalesce((p_failures -> p_offset::text ->> 'n')::int4, 0) + 1,
  'history', (select jsonb_agg(entry order by place)
                from (select entry, place
                        from jsonb_array_elements(
                               coalesce(p_failures -> p_offset::text -> 'history', '[]')
                               || jsonb_build_array(jsonb_build_object('at', p_at, 'error', p_error)))
                             with ordinality as h (entry, place)
                       order by place desc limit 10) last)));
