-- lanes_freed: tells brokers, at the commit of the caller's transaction, that a group's place in these lanes is
-- free and may have work. The hint is what brokers look up, the notification what makes them look at once; none is
-- sent for more than 100 lanes.
create or replace function queen.lanes_freed(p_partition int8[]) returns void
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_lanes int8[] := array(select distinct l.id from unnest(p_partition) as l (id) order by l.id);
begin
  if v_lanes = '{}' then
    return;
  end if;
  insert into queen.hints (partition_ids) values (v_lanes);
  if cardinality(v_lanes) <= 100 then
    perform pg_notify('queen', json_build_object('released', v_lanes)::text);
  end if;
end
$$;
