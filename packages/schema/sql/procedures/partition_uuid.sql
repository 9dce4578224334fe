-- partition_uuid: the UUID under which clients know a partition.
create or replace function queen.partition_uuid(p_partition int8) returns uuid
language sql immutable strict parallel safe
return (lpad(to_hex(p_partition), 12, '0') || '80028000000000000000')::uuid;
