-- What operators ask for: dead letters by filter, the newest failure first, and messages deleted one by one.

create index dead_letters_by_time on queen.dead_letters (failed_at, id);
create index dead_letters_by_queue_time on queen.dead_letters (queue_id, failed_at, id);
create index dead_letters_by_group on queen.dead_letters (queue_id, consumer_group, failed_at, id);
create index dead_letters_by_partition on queen.dead_letters (queue_id, partition_name, failed_at, id);
create index dead_letters_by_message on queen.dead_letters (partition_id, message_offset);
drop index queen.dead_letters_by_queue;

-- Lanes of which a segment was written anew because a message was deleted: what brokers hold of it is void.
alter table queen.hints add column rewritten_partition_ids int8[];
