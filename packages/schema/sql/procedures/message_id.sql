-- message_id: the UUID under which clients know the message at an offset of a partition.
create or replace function queen.message_id(p_partition int8, p_offset int8) returns uuid
language sql immutable strict parallel safe
return (lpad(to_hex(p_partition), 12, '0') || '80018000' || lpad(to_hex(p_offset), 12, '0'))::uuid;
