-- require_encryption: tells the lanes of a queue whether its messages must be encrypted (trigger).
--
-- When the statement that switched it on has committed, no plain text is stored any more: an append that read
-- the lane's row before is waited for, every later one reads the new value in the row that it locks. Who makes
-- a lane holds a lock of the queue that conflicts with an update, so that no lane is made meanwhile.
--
-- Locks: all partitions of the queues by id, waiting.
create or replace function queen.require_encryption() returns trigger
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_queues int8[];
begin
  select array_agg(c.id) into v_queues
    from changed c join before b on b.id = c.id
   where b.encryption_enabled <> c.encryption_enabled;
  if v_queues is null then
    return null;
  end if;
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception 'encryption can be switched only in READ COMMITTED, where the newest lanes are seen'
      using errcode = '0A000';
  end if;
  perform 1 from queen.partitions p where p.queue_id = any (v_queues) order by p.id for no key update;
  update queen.partitions p set encryption_required = q.encryption_enabled
    from queen.queues q
   where q.id = p.queue_id and q.id = any (v_queues);
  return null;
end
$$;

create or replace trigger queues_encryption after update on queen.queues
  referencing old table as before new table as changed for each statement
  execute function queen.require_encryption();
