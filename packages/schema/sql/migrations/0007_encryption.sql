-- Encryption at rest. A lane repeats whether its queue is encrypted, so that append reads it in the row that it
-- locks anyway; the trigger queues_encryption keeps it true.

alter table queen.partitions add column encryption_required bool not null default false;

update queen.partitions p set encryption_required = true
  from queen.queues q
 where q.id = p.queue_id and q.encryption_enabled;

-- They get a parameter; a broker that does not know it goes on calling them, and sends plain text.
drop function if exists queen.append(int8[], int8[], int4[], int4[], int4[], int4[], bytea[], bytea[], bytea[]);
drop function if exists queen.transact(int8[], int8[], int4[], int4[], int4[], int4[], bytea[], bytea[], bytea[],
                                       jsonb, int8[], int8[]);
