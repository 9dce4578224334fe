-- fitting: how far a reader gets in a lane with so many bytes.
--
-- in   p_partition, p_from, p_to   the offsets that it wants
--      p_bytes                     what it may read
--      p_one                       whether the first segment is read in any case
-- out  upto                        the end of the last segment that fits; null: none does
--      bytes                       what the segments up to there have
create or replace function queen.fitting(
  p_partition int8, p_from int8, p_to int8, p_bytes int8, p_one bool, out upto int8, out bytes int8)
language sql stable
set search_path = queen, pg_temp
as $$
  select max(s.first_offset + s.count), max(s.bytes)
    from (select g.first_offset, g.count, g.first_offset <= p_from as is_first,
                 sum(octet_length(g.body)) over (order by g.first_offset) as bytes
            from queen.segments g
           where g.partition_id = p_partition
             and g.first_offset < p_to
             and g.first_offset >= coalesce(
                   (select b.first_offset from queen.segments b
                     where b.partition_id = p_partition and b.first_offset <= p_from
                     order by b.first_offset desc limit 1), p_from)) s
   where s.bytes <= p_bytes or (p_one and s.is_first);
$$;
