/** `queen traces …`: what consumers noted about messages. */
import { type Command, OPTION } from "../command.ts";
import { path } from "../connection.ts";
import type { Column } from "../output/table.ts";

interface Trace {
  readonly created_at: string;
  readonly event_type: string;
  readonly consumer_group: string;
  readonly trace_names: readonly string[];
  readonly data: unknown;
}

interface NamedTrace extends Trace {
  readonly queue_name: string;
  readonly partition_name: string;
  readonly transaction_id: string;
}

interface TraceName {
  readonly trace_name: string;
  readonly trace_count: number;
  readonly message_count: number;
  readonly last_seen: string;
}

const TRACE_COLUMNS: readonly Column<Trace>[] = [
  { title: "EVENT", value: ({ event_type }) => event_type },
  { title: "GROUP", value: ({ consumer_group }) => consumer_group, isFlexible: true },
  { title: "DATA", value: ({ data }) => data, isFlexible: true },
];
const AT: Column<Trace> = { title: "AT", value: ({ created_at }) => created_at };

export const tracesNames: Command = {
  name: "traces names",
  summary: "List the names of traces, the one used last first",
  options: [OPTION.limit(50, 1_000, "Names")],
  examples: [{ line: "queen traces names", meaning: "Under which names traces are found" }],
  async run(call) {
    const { trace_names } = await call.api.request<{ trace_names: TraceName[] }>(
      "GET",
      "/api/v1/traces/names",
      {
        query: { limit: call.integer("limit") },
      },
    );
    await call.output.list(trace_names, [
      { title: "NAME", value: ({ trace_name }) => trace_name, isFlexible: true },
      { title: "TRACES", value: ({ trace_count }) => trace_count },
      { title: "MESSAGES", value: ({ message_count }) => message_count },
      { title: "LAST SEEN", value: ({ last_seen }) => last_seen },
    ]);
    return undefined;
  },
};

export const tracesNamed: Command = {
  name: "traces named",
  summary: "List the traces with a name, of all messages, the oldest first",
  arguments: [{ name: "name", summary: "The name" }],
  options: [OPTION.limit(100, 1_000, "Traces")],
  examples: [{ line: "queen traces named checkout-1001", meaning: "Follow a checkout through its queues" }],
  async run(call) {
    const { traces } = await call.api.request<{ traces: NamedTrace[] }>(
      "GET",
      path`/api/v1/traces/by-name/${call.argument("name")}`,
      { query: { limit: call.integer("limit") } },
    );
    await call.output.list(traces, [
      AT,
      { title: "QUEUE", value: ({ queue_name }) => queue_name, isFlexible: true },
      { title: "TRANSACTION", value: ({ transaction_id }) => transaction_id, isFlexible: true },
      ...TRACE_COLUMNS,
    ]);
    return undefined;
  },
};

export const tracesShow: Command = {
  name: "traces show",
  summary: "List the traces of a message, the oldest first",
  arguments: [
    { name: "partitionId", summary: "The partition's id, as lists show it" },
    { name: "transactionId", summary: "The message's transactionId" },
  ],
  options: [OPTION.limit(1_000, 1_000, "Traces")],
  examples: [
    {
      line: "queen traces show 00000000-0001-8002-8000-000000000000 order-1001",
      meaning: "What was noted about it",
    },
  ],
  async run(call) {
    const { traces } = await call.api.request<{ traces: Trace[] }>(
      "GET",
      path`/api/v1/traces/${call.argument("partitionId")}/${call.argument("transactionId")}`,
      { query: { limit: call.integer("limit") } },
    );
    await call.output.list(traces, [AT, ...TRACE_COLUMNS]);
    return undefined;
  },
};
