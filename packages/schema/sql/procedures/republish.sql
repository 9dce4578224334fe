-- republish: appends messages to a lane again, each for one group only; returns the offset of the first.
--
-- in   p_fragment, p_transaction_id   one element per message, in their order
--      p_group                        who gets it; all other groups of the queue count it as finished
--
-- The transactionIds are kept and not compared: the same ids may stand in the log already. Groups without a
-- cursor in the lane get one where their subscription says. Fragments stay as they are: what was stored before
-- its queue was encrypted is not encrypted by being moved. Locks: the partition, then its cursors by group,
-- waiting. Null: there is no such partition.
create or replace function queen.republish(
  p_partition int8, p_fragment bytea[], p_transaction_id text[], p_group int4[])
returns int8
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_next    int8;
  v_count   int4 := cardinality(p_fragment);
  v_groups  int4[];
  v_at      int8;
  v_status  int2;
  v_group   int4;
  s         record;
begin
  select array_agg(g.id order by g.id) into v_groups
    from queen.consumer_groups g
   where g.queue_id = (select p.queue_id from queen.partitions p where p.id = p_partition);
  if v_groups is not null then
    perform queen.open_cursors(array_fill(p_partition, array[cardinality(v_groups)]), v_groups);
  end if;
  select next_offset into v_next from queen.partitions where id = p_partition for no key update;
  if not found then
    return null;
  end if;

  select array_agg(c.relative order by c.relative) as relative, array_agg(c.messages order by c.relative) as messages,
         array_agg(c.keys order by c.relative) as keys, array_agg(c.ends order by c.relative) as ends,
         array_agg(c.body order by c.relative) as body
    into s
    from (select (min(m.place) - 1)::int4 as relative, count(*)::int4 as messages,
                 string_agg(int8send(hashtextextended(m.transaction_id, 0)), '' order by m.place) as keys,
                 string_agg(int4send(m.end_at::int4), '' order by m.place) as ends,
                 string_agg(m.fragment, '' order by m.place) as body
            from (select b.*, sum(length(b.fragment)) over (partition by b.by_count, b.by_bytes
                                                            order by b.place) as end_at
                    from (select f.*, (f.place - 1) / 128 as by_count,
                                 (sum(length(f.fragment)) over (order by f.place) - length(f.fragment)) / 65536
                                   as by_bytes
                            from unnest(p_fragment, p_transaction_id) with ordinality
                                 as f (fragment, transaction_id, place)) b) m
           group by m.by_count, m.by_bytes) c;
  select a.status, a.at_offset into v_status, v_at
    from queen.append(array[p_partition], array[v_next], array[v_count],
                      array_fill(1, array[cardinality(s.relative)]), s.relative, s.messages, s.keys, s.ends,
                      s.body, array[true]) a;
  if v_status <> 0 then
    raise exception 'partition % could not be appended to under its lock', p_partition using errcode = 'QN409';
  end if;

  foreach v_group in array coalesce(v_groups, '{}') loop
    perform queen.finish(p_partition, array[v_group], range_agg(int8range(v_at + m.place - 1, v_at + m.place)))
       from unnest(p_group) with ordinality as m (group_id, place)
      where m.group_id is distinct from v_group
     having count(*) > 0;
  end loop;
  return v_at;
end
$$;
