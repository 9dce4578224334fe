-- What consumers note about messages while they work, and the names under which it is found again.
-- No foreign key to partitions, as in the log: a trigger on partitions removes traces.
create table queen.message_traces (
  id             int8 generated always as identity primary key,
  partition_id   int8 not null,
  message_offset int8 not null,
  transaction_id text not null,
  consumer_group text not null,
  event_type     text not null,
  data           json not null,              -- json, not jsonb: the text stays what the consumer sent
  worker_id      text not null,
  created_at     timestamptz not null default clock_timestamp()
);

-- Serves the listing of a message's traces.
create index message_traces_by_transaction on queen.message_traces (partition_id, transaction_id, id);
-- Serves the removal of traces with their messages.
create index message_traces_by_message on queen.message_traces (partition_id, message_offset);

-- The primary key serves the listings by name and of names.
create table queen.message_trace_names (
  trace_name text not null,
  trace_id   int8 not null references queen.message_traces on delete cascade,
  primary key (trace_name, trace_id)
);

create index message_trace_names_by_trace on queen.message_trace_names (trace_id);
