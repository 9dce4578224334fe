-- sql_wake: tells brokers, at the commit of the caller's transaction, which lanes have work. Part of the SQL
-- interface's inside.
--
-- in   p_appended  lanes with new messages; append has written their hint
--      p_released  lanes whose lease ended
--
-- The hint is a row that brokers find within a second while somebody waits. The notification, delivered at
-- commit, makes that milliseconds. Its commit takes a lock on the whole instance until it is on disk, so that
-- commits that notify follow one another: none is sent for more than 16 lanes, nor where the setting
-- queen.notify is off, in the session, the transaction, the role or the database.
create or replace function queen.sql_wake(p_appended int8[], p_released int8[]) returns void
language plpgsql
set search_path = queen, pg_temp
as $$
begin
  if cardinality(p_released) > 0 then
    insert into queen.hints (partition_ids) values (p_released);
  end if;
  if cardinality(p_appended) + cardinality(p_released) between 1 and 16
     and coalesce(current_setting('queen.notify', true), '') not in ('off', 'false', 'no', '0')
  then
    perform pg_notify('queen', json_build_object(
      'lanes', (select coalesce(json_agg(json_build_array(p.id, p.queue_id, p.next_offset) order by p.id), '[]')
                  from queen.partitions p where p.id = any (p_appended)),
      'released', to_json(p_released))::text);
  end if;
end
$$;

revoke execute on function queen.sql_wake(int8[], int8[]) from public;
