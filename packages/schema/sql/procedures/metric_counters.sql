-- metric_counters: the columns of worker_minutes that count, and that queen.metric_totals sums up.
create or replace function queen.metric_counters() returns text[]
language sql immutable parallel safe
return array['ack_failed', 'ack_messages', 'ack_requests', 'ack_success', 'database_errors', 'dead_lettered',
             'pop_empty', 'pop_messages', 'pop_requests', 'push_messages', 'push_requests', 'transactions'];
