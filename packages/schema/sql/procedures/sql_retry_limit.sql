-- sql_retry_limit: how often a message of a queue is retried; -1: until it succeeds. Part of the SQL
-- interface's inside.
create or replace function queen.sql_retry_limit(p_queue queen.queues) returns int4
language sql immutable
return case when coalesce(p_queue.dlq_after_max_retries, p_queue.dead_letter_queue, true)
            then greatest(0, p_queue.retry_limit) else -1 end;

revoke execute on function queen.sql_retry_limit(queen.queues) from public;
