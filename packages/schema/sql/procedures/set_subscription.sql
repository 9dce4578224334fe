-- set_subscription: changes where a consumer group starts in lanes that it has not met; returns in how many
-- queues. Cursors stay where they are.
--
-- Locks: the groups' rows by id, so that no cursor is opened meanwhile by the old subscription.
create or replace function queen.set_subscription(p_group text, p_from timestamptz) returns int4
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_rows int4;
begin
  perform 1 from queen.consumer_groups where name = p_group order by id for update;
  update queen.consumer_groups set subscription_mode = 'timestamp', subscription_from = p_from where name = p_group;
  get diagnostics v_rows = row_count;
  delete from queen.consumer_watermarks where consumer_group = p_group;
  return v_rows;
end
$$;
