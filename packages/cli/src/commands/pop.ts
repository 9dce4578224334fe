/** `queen pop` and `queen ack`: consuming by hand. */
import type { Call, Command } from "../command.ts";
import { OPTION } from "../command.ts";
import { path } from "../connection.ts";
import { EXIT_CODES, ServerError, UsageError } from "../exit-codes.ts";
import { openInput, readLines } from "../input.ts";
import type { Column } from "../output/table.ts";

interface Message {
  readonly transactionId: string;
  readonly partitionId: string;
  readonly partition: string;
  readonly leaseId: string;
  readonly consumerGroup: string;
  readonly createdAt: string;
  readonly data: unknown;
}

interface AckResult {
  readonly transactionId: string;
  readonly success: boolean;
  readonly error: string | null;
  readonly leaseReleased: boolean;
  readonly dlq: boolean;
}

const MESSAGE_COLUMNS: readonly Column<Message>[] = [
  { title: "CREATED", value: ({ createdAt }) => createdAt },
  { title: "PARTITION", value: ({ partition }) => partition, isFlexible: true },
  { title: "TRANSACTION", value: ({ transactionId }) => transactionId, isFlexible: true },
  { title: "DATA", value: ({ data }) => data, isFlexible: true },
];
// The broker answers a long poll in time; what comes on top is the network's.
const ANSWER_EXTRA_MS = 10_000;
const ACK_BATCH = 1_000;

export const pop: Command = {
  name: "pop",
  summary: "Take messages under a lease, and print them",
  details:
    "A message that is not acknowledged comes back when its lease runs out. --ack acknowledges after printing, so a message " +
    "may be printed twice and is never lost; --auto-ack has the broker do it at delivery, so it may be lost and is never " +
    "printed twice. The exit code is 4 when there is no message.",
  arguments: [{ name: "queue", summary: "The queue" }],
  options: [
    { ...OPTION.partition, summary: "Only this partition; any of them without it" },
    OPTION.group,
    {
      flags: "-b, --batch <count>",
      summary: "Messages at most",
      fallback: 1,
      integer: { min: 1, max: 10_000 },
    },
    {
      flags: "--partitions <count>",
      summary: "Partitions at most, under one lease",
      fallback: 1,
      integer: { min: 1, max: 128 },
    },
    {
      flags: "--wait [seconds]",
      summary: "Wait for a message, 30 seconds unless said",
      integer: { min: 1, max: 3_600 },
    },
    { flags: "--from <start>", summary: "Where a new group starts: all, new, or a time", fallback: "all" },
    { flags: "--ack", summary: "Acknowledge the messages once they are printed" },
    { flags: "--auto-ack", summary: "Have the broker acknowledge them at delivery" },
  ],
  examples: [
    {
      line: "queen pop orders --group billing --batch 10",
      meaning: "Take ten messages; then acknowledge them with queen ack",
    },
    {
      line: "queen pop orders --wait 60 --ack -o json",
      meaning: "Wait up to a minute for one message, and finish it",
    },
  ],
  async run(call) {
    if (call.flag("ack") && call.flag("autoAck")) throw new UsageError("Say --ack or --auto-ack, not both");
    const messages = await take(call);
    if (messages.length === 0) return EXIT_CODES.empty;
    await call.output.list(messages, MESSAGE_COLUMNS);
    if (call.flag("ack")) await acknowledge(call, messages, "completed", undefined);
    else if (!call.flag("autoAck") && call.output.format === "table") {
      const group = call.text("group");
      call.output.note(
        `They come back when the lease runs out. To finish them:  queen ack --lease ${messages[0]!.leaseId}` +
          `${group === undefined ? "" : ` --group ${group}`} --partition-id ${messages[0]!.partitionId} <transactionId>…`,
      );
    }
    return undefined;
  },
};

async function take(call: Call): Promise<Message[]> {
  const waitSeconds = waitOf(call);
  const partition = call.text("partition");
  const queue = call.argument("queue");
  const answer = await call.api.answer<{ messages: Message[] } | null>(
    "GET",
    partition === undefined
      ? path`/api/v1/pop/queue/${queue}`
      : path`/api/v1/pop/queue/${queue}/partition/${partition}`,
    {
      query: {
        batch: call.integer("batch"),
        partitions: call.integer("partitions"),
        consumerGroup: call.text("group"),
        ...startOf(call.text("from")!),
        ...(call.flag("autoAck") ? { autoAck: true } : {}),
        ...(waitSeconds === undefined ? {} : { wait: true, timeout: waitSeconds * 1_000 }),
      },
      // A pop whose answer is lost has taken a lease: it is not sent again.
      repeatable: false,
      timeoutMillis: (waitSeconds ?? 20) * 1_000 + ANSWER_EXTRA_MS,
    },
  );
  if (answer.status === 204) {
    call.output.note(`No message: ${answer.headers.get("queen-empty-reason") ?? "nothing is there"}`);
    return [];
  }
  return answer.body?.messages ?? [];
}

function waitOf(call: Call): number | undefined {
  if (call.flag("wait")) return 30;
  return call.optionalInteger("wait");
}

function startOf(from: string): Record<string, string> {
  if (from === "all") return {};
  return from === "new" ? { subscriptionMode: "new" } : { subscriptionFrom: from };
}

export const ack: Command = {
  name: "ack",
  summary: "Acknowledge messages: those named, or those that come as lines of JSON",
  details:
    "Without transactionIds, messages are read from standard input as `queen pop -o ndjson` prints them. Without --lease the " +
    "ack counts for whoever holds the message now.",
  arguments: [
    { name: "transactionId", summary: "Messages, by transactionId", isOptional: true, isVariadic: true },
  ],
  options: [
    { flags: "--partition-id <uuid>", summary: "The partition of the messages, as the pop names it" },
    { flags: "--lease <leaseId>", summary: "The lease, as the pop names it" },
    OPTION.group,
    {
      flags: "-s, --status <status>",
      summary: "What became of them",
      choices: ["completed", "failed", "retry", "dlq"],
      fallback: "completed",
    },
    { flags: "--error <text>", summary: "Why it failed" },
  ],
  examples: [
    {
      line: "queen ack order-1001 --partition-id 00000000-0001-8002-8000-000000000000 --lease 0123abcd",
      meaning: "Finish one message",
    },
    {
      line: "queen pop orders -b 100 -o ndjson | tee popped.ndjson | queen ack --status failed --error 'not today'",
      meaning: "Give messages back as failed",
    },
  ],
  async run(call) {
    const status = call.text("status")!;
    const error = call.text("error");
    const named = call.variadicArgument("transactionId");
    if (named.length > 0) {
      const partitionId = call.text("partitionId");
      if (partitionId === undefined)
        throw new UsageError("--partition-id is missing: the pop shows it as partitionId");
      const leaseId = call.text("lease");
      const messages = named.map((transactionId) => ({
        transactionId,
        partitionId,
        ...(leaseId ? { leaseId } : {}),
      }));
      await acknowledge(call, messages, status, error, { isShown: true });
      return undefined;
    }
    let batch: Acked[] = [];
    let count = 0;
    for await (const { value, number } of readLines(openInput(undefined))) {
      const message = ackedIn(value, number);
      const isOther = batch.length > 0 && batch[0]!.consumerGroup !== message.consumerGroup;
      if (batch.length === ACK_BATCH || isOther) {
        await acknowledge(call, batch, status, error, { isShown: true });
        batch = [];
      }
      batch.push(message);
      count += 1;
    }
    await acknowledge(call, batch, status, error, { isShown: true });
    return count === 0 ? EXIT_CODES.empty : undefined;
  },
};

interface Acked {
  readonly transactionId: string;
  readonly partitionId: string;
  readonly leaseId?: string;
  readonly consumerGroup?: string;
}

function ackedIn(value: unknown, number: number): Acked {
  const { transactionId, partitionId, leaseId, consumerGroup } = (value ?? {}) as Partial<Acked>;
  if (typeof transactionId !== "string" || typeof partitionId !== "string") {
    throw new UsageError(
      `Line ${number} has no transactionId and partitionId: it must be a message as pop prints it`,
    );
  }
  return {
    transactionId,
    partitionId,
    ...(typeof leaseId === "string" && leaseId !== "" ? { leaseId } : {}),
    ...(typeof consumerGroup === "string" ? { consumerGroup } : {}),
  };
}

async function acknowledge(
  call: Call,
  messages: readonly Acked[],
  status: string,
  error: string | undefined,
  { isShown = false } = {},
): Promise<void> {
  if (messages.length === 0) return;
  const results = await call.api.request<AckResult[]>("POST", "/api/v1/ack/batch", {
    repeatable: true, // acking twice is a success
    body: {
      consumerGroup: call.text("group") ?? messages[0]!.consumerGroup,
      acknowledgments: messages.map(({ transactionId, partitionId, leaseId }) => ({
        transactionId,
        partitionId,
        status,
        ...(leaseId === undefined ? {} : { leaseId }),
        ...(error === undefined ? {} : { error }),
      })),
    },
  });
  if (isShown) {
    await call.output.list(results, [
      { title: "TRANSACTION", value: ({ transactionId }) => transactionId, isFlexible: true },
      { title: "DONE", value: ({ success }) => (success ? "yes" : "no") },
      { title: "LEASE", value: ({ leaseReleased }) => (leaseReleased ? "ended" : "held") },
      { title: "DLQ", value: ({ dlq }) => (dlq ? "yes" : "no") },
      { title: "ERROR", value: (result) => result.error, isFlexible: true },
    ]);
  }
  const refused = results.filter(({ success }) => !success);
  if (refused.length > 0) {
    throw new ServerError(`${refused.length} of ${results.length} acks were refused: ${refused[0]!.error}`);
  }
}
