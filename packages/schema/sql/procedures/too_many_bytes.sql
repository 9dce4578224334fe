-- too_many_bytes: refuses, from inside of a query, a call whose messages have more bytes than it may read.
create or replace function queen.too_many_bytes(p_bytes int8)
returns bytea
language plpgsql
as $$
begin
  raise exception 'the messages have more than % bytes', p_bytes using errcode = 'QN413';
end
$$;
