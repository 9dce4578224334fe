/** The calls about traces. Texts that go into an answer beside payloads are read as bytes. */
import type { Statement } from "../session.ts";
import type { FoundInLaneRow } from "./messages.ts";

/** Messages that a group holds under a lease, by the key of their transactionId. */
export const findLeased: Statement<FoundInLaneRow> = {
  name: "queen_find_leased",
  text: `select f.at_offset, f.fragment
           from queen.partition_consumers c
           join queen.consumer_groups g on g.id = c.group_id and g.name = $2
          cross join lateral queen.find_in_lane(c.partition_id, $3, c.committed, c.lease_until) f
          where c.partition_id = $1 and c.lease_until is not null`,
  parameters: ["int8", "text", "bytea"],
  read: (row) => ({ offset: row.int8(0), fragment: row.latin1(1) }),
};

/** The trace's id; null: the partition is gone. */
export const addTrace: Statement<number | null> = {
  name: "queen_add_trace",
  text: "select queen.add_trace($1, $2, $3, $4, $5, $6::json, $7, $8)",
  parameters: ["int8", "int8", "text", "text", "text", "text", "text", "text[]"],
  read: (row) => row.int8OrNull(0),
};

export interface TraceRow {
  readonly id: number;
  readonly eventType: string;
  /** JSON, one character per byte. */
  readonly data: string;
  readonly consumerGroup: string;
  readonly workerId: string;
  readonly createdAtUs: number;
  /** A JSON array, one character per byte. */
  readonly names: string;
}

export const listTraces: Statement<TraceRow> = {
  name: "queen_list_traces",
  text: `select trace_id, event_type, data::text, consumer_group, worker_id, created_at, to_json(names)::text
           from queen.list_traces($1, $2, $3, $4)`,
  parameters: ["int8", "text", "int4", "int8"],
  read: (row) => ({
    id: row.int8(0),
    eventType: row.text(1),
    data: row.latin1(2),
    consumerGroup: row.text(3),
    workerId: row.text(4),
    createdAtUs: row.int8(5),
    names: row.latin1(6),
  }),
};

export interface NamedTraceRow extends TraceRow {
  readonly partitionId: number;
  readonly queue: string;
  readonly partition: string;
  readonly transactionId: string;
  /** The message as it is stored; null: it is gone. */
  readonly fragment: string | null;
}

export interface NamedTracePageRow {
  readonly total: number;
  /** Null: the page is empty. */
  readonly trace: NamedTraceRow | null;
}

export const listNamedTraces: Statement<NamedTracePageRow> = {
  name: "queen_list_named_traces",
  text: `select total, trace_id, event_type, data::text, consumer_group, worker_id, created_at, to_json(names)::text,
                partition_id, queue_name, partition_name, transaction_id, fragment
           from queen.list_named_traces($1, $2, $3)`,
  parameters: ["text", "int4", "int8"],
  read: (row) => ({
    total: row.int8(0),
    trace: row.isNull(1)
      ? null
      : {
          id: row.int8(1),
          eventType: row.text(2),
          data: row.latin1(3),
          consumerGroup: row.text(4),
          workerId: row.text(5),
          createdAtUs: row.int8(6),
          names: row.latin1(7),
          partitionId: row.int8(8),
          queue: row.text(9),
          partition: row.text(10),
          transactionId: row.text(11),
          fragment: row.latin1OrNull(12),
        },
  }),
};

export interface TraceNameRow {
  readonly name: string;
  readonly traces: number;
  readonly messages: number;
  readonly lastSeenUs: number;
}

export interface TraceNamePageRow {
  readonly total: number;
  /** Null: the page is empty. */
  readonly name: TraceNameRow | null;
}

export const listTraceNames: Statement<TraceNamePageRow> = {
  name: "queen_list_trace_names",
  text: "select total, trace_name, traces, messages, last_seen from queen.list_trace_names($1, $2)",
  parameters: ["int4", "int8"],
  read: (row) => ({
    total: row.int8(0),
    name: row.isNull(1)
      ? null
      : { name: row.text(1), traces: row.int8(2), messages: row.int8(3), lastSeenUs: row.int8(4) },
  }),
};
