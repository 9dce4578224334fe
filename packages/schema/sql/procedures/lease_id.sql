-- lease_id: the text under which clients know a lease: a UUID made of the token and the first partition,
-- then the distances to the further partitions in base 36, each behind a dot.
create or replace function queen.lease_id(p_token int8, p_partitions int8[]) returns text
language plpgsql immutable strict parallel safe
set search_path = queen, pg_temp
as $$
declare
  v_token     text := lpad(to_hex(p_token), 13, '0');
  v_head      text;
  v_id        text;
  v_last      int8;
  v_partition int8;
  v_distance  int8;
  v_digits    text;
begin
  for v_partition in select p from unnest(p_partitions) as p order by p loop
    if v_last is null then
      v_head := lpad(to_hex(v_partition), 12, '0');
      v_id := left(v_head, 8) || '-' || right(v_head, 4) || '-8' || left(v_token, 3) || '-8'
              || substr(v_token, 4, 3) || '-' || right(v_token, 7) || '00000';
    else
      v_distance := v_partition - v_last;
      v_digits := '';
      loop
        v_digits := substr('0123456789abcdefghijklmnopqrstuvwxyz', (v_distance % 36)::int4 + 1, 1) || v_digits;
        v_distance := v_distance / 36;
        exit when v_distance = 0;
      end loop;
      v_id := v_id || '.' || v_digits;
    end if;
    v_last := v_partition;
  end loop;
  return v_id;
end
$$;
