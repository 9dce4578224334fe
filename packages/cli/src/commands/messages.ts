/** `queen messages …`: what is in the log, and single messages. */
import { type Call, type Command, OPTION } from "../command.ts";
import { confirm } from "../confirmation.ts";
import { path } from "../connection.ts";
import type { Column } from "../output/table.ts";
import { watchSeconds } from "../output/watch.ts";

export interface ListedMessage {
  readonly id: string;
  readonly transactionId: string;
  readonly partitionId: string;
  readonly queue: string;
  readonly partition: string;
  readonly status: string;
  readonly createdAt: string;
}

const LISTED_COLUMNS: readonly Column<ListedMessage>[] = [
  { title: "CREATED", value: ({ createdAt }) => createdAt },
  { title: "QUEUE", value: ({ queue }) => queue, isFlexible: true },
  { title: "PARTITION", value: ({ partition }) => partition, isFlexible: true },
  { title: "TRANSACTION", value: ({ transactionId }) => transactionId, isFlexible: true },
  { title: "STATUS", value: ({ status }) => status },
  { title: "PARTITION ID", value: ({ partitionId }) => partitionId },
];

// Before anything that this software can have stored.
const EVER = "1970-01-01T00:00:00Z";

export const messagesList: Command = {
  name: "messages list",
  summary: "List messages without payloads, the newest first",
  arguments: [{ name: "queue", summary: "The queue; all of them without it", isOptional: true }],
  options: [
    OPTION.partition,
    {
      flags: "--status <status>",
      summary: "In this state",
      choices: ["pending", "processing", "completed", "dead_letter"],
    },
    { flags: "--from <time>", summary: "Stored then or later; ever without it" },
    { flags: "--to <time>", summary: "Stored then or earlier" },
    OPTION.limit(50, 1_000, "Messages"),
    OPTION.watch,
  ],
  examples: [
    { line: "queen messages list orders --status pending -n 20", meaning: "The newest unfinished messages" },
    {
      line: "queen messages list orders -p customer-42 --from 2026-11-15T00:00:00Z",
      meaning: "A lane since midnight",
    },
  ],
  async run(call) {
    await call.output.watch(watchSeconds(call), async () => {
      const { messages } = await call.api.request<{ messages: ListedMessage[] }>("GET", "/api/v1/messages", {
        query: {
          queue: call.optionalArgument("queue"),
          partition: call.text("partition"),
          status: call.text("status"),
          from: call.text("from") ?? EVER,
          to: call.text("to"),
          limit: call.integer("limit"),
        },
      });
      await call.output.list(messages, LISTED_COLUMNS);
    });
    return undefined;
  },
};

const WHICH = [
  { name: "partitionId", summary: "The partition's id, as lists show it" },
  { name: "transactionId", summary: "The message's transactionId" },
];
const ID = { flags: "--id <uuid>", summary: "The message's id, where several have the transactionId" };
const EXAMPLE_ID = "00000000-0001-8002-8000-000000000000";

const messagePath = (call: Call): string =>
  path`/api/v1/messages/${call.argument("partitionId")}/${call.argument("transactionId")}`;

export const messagesShow: Command = {
  name: "messages show",
  summary: "Show a message with its payload and its state for each group",
  arguments: WHICH,
  options: [ID],
  examples: [{ line: `queen messages show ${EXAMPLE_ID} order-1001`, meaning: "One message" }],
  async run(call) {
    await call.output.value(
      await call.api.request<object>("GET", messagePath(call), { query: { id: call.text("id") } }),
    );
    return undefined;
  },
};

export const messagesDelete: Command = {
  name: "messages delete",
  summary: "Take a message out of the log, for everybody",
  arguments: WHICH,
  options: [ID, OPTION.yes],
  examples: [
    { line: `queen messages delete ${EXAMPLE_ID} order-1001 --yes`, meaning: "Delete without asking" },
  ],
  async run(call) {
    await confirm(call, `Message ${call.argument("transactionId")} will be deleted, for every group`);
    await call.output.value(
      await call.api.request<object>("DELETE", messagePath(call), { query: { id: call.text("id") } }),
    );
    return undefined;
  },
};

export const messagesRetry: Command = {
  name: "messages retry",
  summary: "Have a group get a message again",
  arguments: WHICH,
  options: [ID, OPTION.group],
  examples: [
    { line: `queen messages retry ${EXAMPLE_ID} order-1001 --group billing`, meaning: "Deliver it again" },
  ],
  async run(call) {
    await act(call, "retry", {});
    return undefined;
  },
};

export const messagesBury: Command = {
  name: "messages dlq",
  summary: "Move a message to a group's dead letters",
  arguments: WHICH,
  options: [ID, OPTION.group, { flags: "--error <text>", summary: "Why" }],
  examples: [
    {
      line: `queen messages dlq ${EXAMPLE_ID} order-1001 --error 'no such customer'`,
      meaning: "Let the lane go on without it",
    },
  ],
  async run(call) {
    await act(call, "dlq", { error: call.text("error") });
    return undefined;
  },
};

async function act(call: Call, what: string, body: object): Promise<void> {
  await call.output.value(
    await call.api.request<object>("POST", `${messagePath(call)}/${what}`, {
      query: { id: call.text("id") },
      body: { consumerGroup: call.text("group"), ...body },
    }),
  );
}
