-- parse_lease_id: the token and the partitions that a lease's id names; both null for any other text.
create or replace function queen.parse_lease_id(p_id text, out token int8, out partitions int8[])
language plpgsql immutable strict parallel safe
set search_path = queen, pg_temp
as $$
declare
  v_parts     text[] := regexp_match(p_id,
    '^([0-9a-f]{8})-([0-9a-f]{4})-8([0-9a-f]{3})-8([0-9a-f]{3})-([0-9a-f]{7})00000((?:\.[0-9a-z]{1,10})*)$');
  v_partition int8;
  v_distance  int8;
  v_digits    text;
begin
  if v_parts is null then
    return;
  end if;
  token := ('x' || lpad(v_parts[3] || v_parts[4] || v_parts[5], 16, '0'))::bit(64)::int8;
  v_partition := ('x' || lpad(v_parts[1] || v_parts[2], 16, '0'))::bit(64)::int8;
  partitions := array[v_partition];
  if v_parts[6] <> '' then
    foreach v_digits in array string_to_array(substr(v_parts[6], 2), '.') loop
      v_distance := 0;
      for i in 1 .. length(v_digits) loop
        v_distance := v_distance * 36
          + position(substr(v_digits, i, 1) in '0123456789abcdefghijklmnopqrstuvwxyz') - 1;
      end loop;
      v_partition := v_partition + v_distance;
      partitions := partitions || v_partition;
    end loop;
  end if;
end
$$;
