-- search_messages: one step of a search for a transactionId in many lanes.
--
-- in   p_queue, p_partition   only these; null: any
--      p_transaction, p_key   the transactionId and the 8 bytes of its key
--      p_band                 1: the newest messages of each lane, 2: older ones, 3: all others
--      p_at_queue, p_at_partition   lanes up to this one are done in the band; 0, 0: none is
--      p_below                of this one, everything from this offset on is; null: all of it
--      p_limit                messages to find at most
--      p_ms                   so long a step may take, or one look at 5,000 messages of a lane
-- out  band, at_queue, at_partition, below   as above, for the next step; a band of null: everything was looked at
--      searched               messages that were looked at
--      places                 jsonb array of [partition, offset]; the caller compares the transactionId, of which a key
--                             is only a hash
--
-- Nothing knows in which lane a transactionId is, so the keys of all are walked: first the last 1,000 of every lane, then
-- the last 50,000, then the rest, each lane from its end. Lanes go by queue and id. A lane that grows meanwhile is looked
-- at twice at the edge of a band, and never not at all. What is gone from the log and is a dead letter is found when
-- its lane's beginning is reached. Locks nothing.
create or replace function queen.search_messages(
  p_queue int8, p_partition int8, p_transaction text, p_key bytea, p_band int4, p_at_queue int8, p_at_partition int8,
  p_below int8, p_limit int4, p_ms int4,
  out band int4, out at_queue int8, out at_partition int8, out below int8, out searched int8, out places jsonb)
language plpgsql stable
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_until  timestamptz := clock_timestamp() + p_ms * interval '1 millisecond';
  v_edges  constant int8[] := array[0, 1000, 50000];   -- where bands begin, counted from a lane's end
  v_look   constant int8 := 5000;
  v_max    constant int8 := 9223372036854775807;
  v_lanes  int4;
  v_from   int8;
  v_low    int8;
  v_offset int8;
  l        record;
begin
  band := p_band;
  at_queue := greatest(p_at_queue, coalesce(p_queue, 0));
  at_partition := greatest(p_at_partition, coalesce(p_partition, 0) - 1);
  below := p_below;
  searched := 0;
  places := '[]';
  loop
    v_lanes := 0;
    for l in
      select p.queue_id, p.id, p.start_offset, p.next_offset
        from queen.partitions p
       where (p.queue_id, p.id) > (at_queue, at_partition - (below is not null)::int4)
         and (p.queue_id, p.id) <= (coalesce(p_queue, v_max), coalesce(p_partition, v_max))
       order by p.queue_id, p.id limit 1000
    loop
      v_lanes := v_lanes + 1;
      if l.id <> at_partition then
        below := null;                      -- the lane that was under way is gone
      end if;
      at_queue := l.queue_id;
      at_partition := l.id;
      v_low := greatest(l.start_offset, case when band = 3 then 0 else l.next_offset - v_edges[band + 1] end);
      below := least(coalesce(below, l.next_offset), l.next_offset - v_edges[band]);
      loop
        exit when below <= v_low;
        v_from := greatest(v_low, below - v_look);
        for v_offset in
          -- find_in_lane, with a plan that is made once for all lanes.
          select s.first_offset + i
            from queen.segments s
           cross join lateral generate_series(0, s.count - 1) as i
           where s.partition_id = l.id and s.first_offset < below
             and s.first_offset >= coalesce((select b.first_offset from queen.segments b
                                              where b.partition_id = l.id and b.first_offset <= v_from
                                              order by b.first_offset desc limit 1), 0)
             and position(p_key in s.keys) > 0
             and substring(s.keys from i * 8 + 1 for 8) = p_key
             and s.first_offset + i >= v_from and s.first_offset + i < below
           order by s.first_offset desc, i desc
        loop
          places := places || jsonb_build_array(jsonb_build_array(l.id, v_offset));
          if jsonb_array_length(places) >= p_limit then
            searched := searched + below - v_offset;
            below := v_offset;
            return;
          end if;
        end loop;
        searched := searched + below - v_from;
        below := v_from;
        if clock_timestamp() >= v_until then
          return;
        end if;
      end loop;
      -- The band in which the lane's beginning is reached is where its letters are looked at.
      if v_low = l.start_offset and (band = 1 or l.next_offset - l.start_offset > v_edges[band]) then
        places := places || (
          select coalesce(jsonb_agg(jsonb_build_array(l.id, d.message_offset) order by d.message_offset desc), '[]')
            from (select distinct d.message_offset from queen.dead_letters d
                   where d.partition_id = l.id and d.transaction_id = p_transaction) d
           where not exists (select 1 from queen.find_in_lane(l.id, p_key, d.message_offset, d.message_offset + 1)));
      end if;
      below := null;
      if clock_timestamp() >= v_until or jsonb_array_length(places) >= p_limit then
        return;
      end if;
    end loop;
    if v_lanes = 0 then
      band := band + 1;
      at_queue := coalesce(p_queue, 0);
      at_partition := coalesce(p_partition, 0) - 1;
      below := null;
      if band > 3 then
        band := null;
        return;
      end if;
    end if;
  end loop;
end
$$;
