-- fragment_at: the bytes of one message, index from 0, out of a segment's body.
create or replace function queen.fragment_at(p_ends bytea, p_body bytea, p_index int4) returns bytea
language sql immutable strict parallel safe
return substring(p_body from queen.int4_at(p_ends, p_index - 1) + 1
                        for queen.int4_at(p_ends, p_index) - queen.int4_at(p_ends, p_index - 1));
