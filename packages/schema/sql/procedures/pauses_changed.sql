-- pauses_changed: tells every broker whose pauses were made or ended, also by hand (trigger).
create or replace function queen.pauses_changed() returns trigger
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_ids int8[];
begin
  select array_agg(distinct queue_id) into v_ids from changed;
  if v_ids is null then
    return null;
  end if;
  insert into queen.hints (queue_ids) values (v_ids);
  if cardinality(v_ids) <= 100 then
    perform pg_notify('queen', json_build_object('queues', v_ids)::text);
  end if;
  return null;
end
$$;

create or replace trigger pauses_inserted after insert on queen.pauses
  referencing new table as changed for each statement execute function queen.pauses_changed();
create or replace trigger pauses_updated after update on queen.pauses
  referencing new table as changed for each statement execute function queen.pauses_changed();
create or replace trigger pauses_deleted after delete on queen.pauses
  referencing old table as changed for each statement execute function queen.pauses_changed();
