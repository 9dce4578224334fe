-- add_counts: the sum of two jsonb objects of counts, by key.
create or replace function queen.add_counts(p_one jsonb, p_other jsonb) returns jsonb
language sql immutable parallel safe
return (select coalesce(jsonb_object_agg(key, total), '{}')
          from (select key, sum(value::int8)::int8 as total
                  from (select * from jsonb_each_text(p_one) union all select * from jsonb_each_text(p_other)) as counts
                 group by key) as sums);
