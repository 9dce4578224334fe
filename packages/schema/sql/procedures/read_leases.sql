-- read_leases: the leases on these cursors and the segments they hold.
--
-- in   p_partition, p_group
-- out  cursor       index from 0
--      token        null: not leased
--      committed, next_offset, acked, lease_until
--      first_offset, count, created_at, ends, body    a segment of the leased range; null: none
--
-- A cursor that does not exist has no row.
create or replace function queen.read_leases(p_partition int8[], p_group int4[])
returns table (cursor int4, token int8, committed int8, next_offset int8, acked text, lease_until int8,
               first_offset int8, count int4, created_at timestamptz, ends bytea, body bytea)
language sql
set search_path = queen, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
begin atomic
  select (l.ordinality - 1)::int4, c.lease_token, c.committed, p.next_offset, c.acked::text, c.lease_until,
         s.first_offset, s.count, s.created_at, s.ends, s.body
    from unnest(p_partition, p_group) with ordinality as l (partition_id, group_id, ordinality)
    join queen.partition_consumers c on c.partition_id = l.partition_id and c.group_id = l.group_id
    join queen.partitions p on p.id = l.partition_id
    left join lateral (
      select s.first_offset, s.count, s.created_at, s.ends, s.body
        from queen.segments s
       where c.lease_until is not null and s.partition_id = l.partition_id
         and s.first_offset < c.lease_until
         and s.first_offset >= coalesce(
               (select b.first_offset from queen.segments b
                 where b.partition_id = l.partition_id and b.first_offset <= c.committed
                 order by b.first_offset desc limit 1), c.committed)
       order by s.first_offset) s on true
   order by l.ordinality, s.first_offset;
end;
