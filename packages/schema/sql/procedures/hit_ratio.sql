-- hit_ratio: the percentage of blocks that were found in the cache; 0 where none was asked for.
create or replace function queen.hit_ratio(p_reads int8, p_hits int8) returns numeric
language sql immutable parallel safe
return coalesce(round(100.0 * p_hits / nullif(p_reads + p_hits, 0), 2), 0);
