-- sql_token: a new lease's token: 52 random bits. Part of the SQL interface's inside.
create or replace function queen.sql_token() returns int8
language sql volatile
return ('x' || lpad(right(gen_random_uuid()::text, 12) || left(gen_random_uuid()::text, 1), 16, '0'))::bit(64)::int8;

revoke execute on function queen.sql_token() from public;
