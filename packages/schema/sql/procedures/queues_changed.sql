-- queues_changed: tells every broker that queues were made, changed or deleted (trigger).
--
-- The hint is what brokers look up, the notification what makes them look at once.
create or replace function queen.queues_changed() returns trigger
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_ids int8[];
  v_names text[];
begin
  select array_agg(id), array_agg(name) into v_ids, v_names from changed;
  if v_ids is null then
    return null;
  end if;
  insert into queen.hints (queue_ids) values (v_ids);
  if tg_op = 'DELETE' then
    delete from queen.consumer_watermarks where queue_name = any (v_names);
  end if;
  if cardinality(v_ids) <= 100 then
    perform pg_notify('queen', json_build_object('queues', v_ids)::text);
  end if;
  return null;
end
$$;

create or replace trigger queues_inserted after insert on queen.queues
  referencing new table as changed for each statement execute function queen.queues_changed();
create or replace trigger queues_updated after update on queen.queues
  referencing new table as changed for each statement execute function queen.queues_changed();
create or replace trigger queues_deleted after delete on queen.queues
  referencing old table as changed for each statement execute function queen.queues_changed();
