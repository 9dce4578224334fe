-- unfinished_failures: what stays of a cursor's `failures` when messages were finished; null: nothing.
create or replace function queen.unfinished_failures(p_failures jsonb, p_committed int8, p_acked int8multirange)
returns jsonb
language sql immutable parallel safe
return (select jsonb_object_agg(key, value)
          from jsonb_each(p_failures)
         where key::int8 >= p_committed and not coalesce(p_acked, '{}') @> key::int8);
