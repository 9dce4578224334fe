-- bucket_minutes: how many minutes a point of a time series stands for, by the length of its range.
create or replace function queen.bucket_minutes(p_from timestamptz, p_to timestamptz) returns int4
language sql immutable parallel safe
return case when p_to - p_from <= interval '60 minutes' then 1
            when p_to - p_from <= interval '6 hours' then 5
            when p_to - p_from <= interval '24 hours' then 15
            when p_to - p_from <= interval '7 days' then 60
            else 360 end;
