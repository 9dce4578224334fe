-- parse_partition_uuid: the partition that a partition's UUID names; null for any other text.
create or replace function queen.parse_partition_uuid(p_id text) returns int8
language sql immutable strict parallel safe
return case when p_id ~* '^[0-9a-f]{8}-[0-9a-f]{4}-8002-8000-0{12}$'
            then ('x' || lpad(left(replace(p_id, '-', ''), 12), 16, '0'))::bit(64)::int8 end;
