-- utc_seconds: a time as the wire shows the beginning of a stretch, 2026-11-15T19:00:00Z.
create or replace function queen.utc_seconds(p_at timestamptz) returns text
language sql immutable strict parallel safe
return to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');
