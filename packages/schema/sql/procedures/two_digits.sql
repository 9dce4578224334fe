-- two_digits: a number with at most two digits after its point.
create or replace function queen.two_digits(p_value float8) returns numeric
language sql immutable strict parallel safe
return round(p_value::numeric, 2);
