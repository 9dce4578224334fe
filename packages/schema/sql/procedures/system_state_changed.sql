-- system_state_changed: tells every broker that a mode of maintenance was switched, also by hand (trigger).
--
-- The hint is what brokers look up, the notification what makes them look at once.
create or replace function queen.system_state_changed() returns trigger
language plpgsql
set search_path = queen, pg_temp
as $$
begin
  if exists (select 1 from changed where key in ('maintenance_mode', 'pop_maintenance_mode')) then
    insert into queen.hints (state_changed) values (true);
    perform pg_notify('queen', '{"state":true}');
  end if;
  return null;
end
$$;

create or replace trigger system_state_inserted after insert on queen.system_state
  referencing new table as changed for each statement execute function queen.system_state_changed();
create or replace trigger system_state_updated after update on queen.system_state
  referencing new table as changed for each statement execute function queen.system_state_changed();
create or replace trigger system_state_deleted after delete on queen.system_state
  referencing old table as changed for each statement execute function queen.system_state_changed();
