-- int4_at: the big-endian int4 at an index (from 0) of a packed list; 0 before its start.
create or replace function queen.int4_at(p_list bytea, p_index int4) returns int4
language sql immutable strict parallel safe
return case when p_index < 0 then 0
            else (get_byte(p_list, p_index * 4) << 24) | (get_byte(p_list, p_index * 4 + 1) << 16)
               | (get_byte(p_list, p_index * 4 + 2) << 8) | get_byte(p_list, p_index * 4 + 3) end;
