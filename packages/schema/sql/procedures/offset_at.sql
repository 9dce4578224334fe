-- offset_at: the first offset of a partition whose message was stored at a time or later.
--
-- Within a partition created_at never goes back, so the segments can be halved: one index probe per step.
create or replace function queen.offset_at(p_partition int8, p_at timestamptz) returns int8
language plpgsql stable
set search_path = queen, pg_temp
as $$
declare
  v_low  int8;                              -- everything below is older
  v_high int8;                              -- everything from here on is as young or not there yet
  v_middle queen.segments.first_offset%type;
  v_first int8;
  v_count int4;
  v_at   timestamptz;
begin
  select start_offset, next_offset into v_low, v_high from queen.partitions where id = p_partition;
  while v_low < v_high loop
    v_middle := (v_low + v_high) / 2;
    select s.first_offset, s.count, s.created_at into v_first, v_count, v_at
      from queen.segments s
     where s.partition_id = p_partition and s.first_offset <= v_middle
     order by s.first_offset desc limit 1;
    if not found or v_at < p_at then
      v_low := case when found then v_first + v_count else v_middle + 1 end;
    else
      v_high := greatest(v_first, v_low);
    end if;
  end loop;
  return v_high;
end
$$;
