/** `queen dlq …`: dead letters. */
import { type Call, type Command, OPTION, type Option } from "../command.ts";
import { confirm } from "../confirmation.ts";
import { UsageError } from "../exit-codes.ts";
import { Progress } from "../output/progress.ts";
import { watchSeconds } from "../output/watch.ts";

interface Letter {
  readonly deadLetterId: string;
  readonly transactionId: string;
  readonly queue: string;
  readonly partition: string;
  readonly consumerGroup: string;
  readonly errorMessage: string;
  readonly retryCount: number;
  readonly failedAt: string;
}

interface Page {
  readonly messages: Letter[];
  readonly total: number;
  readonly nextPage: string | null;
}

// What one request does; progress is shown between requests.
const LETTERS_PER_REQUEST = 500;

const FILTER: readonly Option[] = [
  { flags: "--queue <name>", summary: "Of this queue" },
  { ...OPTION.group, summary: "Of this consumer group" },
  OPTION.partition,
  { flags: "--from <time>", summary: "Failed then or later" },
  { flags: "--to <time>", summary: "Failed then or earlier" },
];

const filterOf = (call: Call) => ({
  queue: call.text("queue"),
  consumerGroup: call.text("group"),
  partition: call.text("partition"),
  from: call.text("from"),
  to: call.text("to"),
});

export const dlqList: Command = {
  name: "dlq list",
  summary: "List dead letters, the newest failure first",
  options: [...FILTER, OPTION.limit(50, 1_000, "Letters"), OPTION.watch],
  examples: [
    { line: "queen dlq list --queue orders --group billing", meaning: "What billing has given up" },
    {
      line: "queen dlq list -o ndjson | jq .errorMessage | sort | uniq -c",
      meaning: "Count failures by their error",
    },
  ],
  async run(call) {
    await call.output.watch(watchSeconds(call), async () => {
      const { messages, total } = await call.api.request<Page>("GET", "/api/v1/dlq", {
        query: { ...filterOf(call), limit: call.integer("limit") },
      });
      await call.output.list(messages, [
        { title: "FAILED", value: ({ failedAt }) => failedAt },
        { title: "QUEUE", value: ({ queue }) => queue, isFlexible: true },
        { title: "PARTITION", value: ({ partition }) => partition, isFlexible: true },
        { title: "GROUP", value: ({ consumerGroup }) => consumerGroup, isFlexible: true },
        { title: "TRANSACTION", value: ({ transactionId }) => transactionId, isFlexible: true },
        { title: "RETRIES", value: ({ retryCount }) => retryCount },
        { title: "ERROR", value: ({ errorMessage }) => errorMessage, isFlexible: true },
        { title: "ID", value: ({ deadLetterId }) => deadLetterId },
      ]);
      if (messages.length < total)
        call.output.note(`${messages.length} of ${total} dead letters; see --limit`);
    });
    return undefined;
  },
};

const CHOICE = {
  arguments: [
    { name: "id", summary: "Letters, by the id that lists show", isOptional: true, isVariadic: true },
  ],
  options: [...FILTER, { flags: "--all", summary: "All of them, in all queues" }, OPTION.yes],
} as const;

export const dlqRequeue: Command = {
  name: "dlq requeue",
  summary:
    "Make dead letters messages again, at the end of their partitions, for the group that gave them up",
  details:
    "Letters that fail again meanwhile are left alone: only those that are there when it begins are meant.",
  ...CHOICE,
  examples: [
    {
      line: "queen dlq requeue --queue orders --group billing",
      meaning: "Try everything again that billing gave up",
    },
    { line: "queen dlq requeue --all --yes", meaning: "In a script" },
  ],
  async run(call) {
    await empty(call, "requeue", "requeued", (count) => `${count} dead letters will be messages again`);
    return undefined;
  },
};

export const dlqPurge: Command = {
  name: "dlq purge",
  summary: "Delete dead letters",
  ...CHOICE,
  examples: [
    {
      line: "queen dlq purge --queue orders --to 2026-11-01T00:00:00Z",
      meaning: "Delete those of last month",
    },
    { line: "queen dlq purge --all --yes", meaning: "In a script" },
  ],
  async run(call) {
    await empty(call, "purge", "purged", (count) => `${count} dead letters will be deleted`);
    return undefined;
  },
};

/** Does the letters that were chosen, request by request, with progress. */
async function empty(
  call: Call,
  act: "requeue" | "purge",
  counted: "requeued" | "purged",
  question: (count: number) => string,
): Promise<void> {
  const ids = call.variadicArgument("id");
  const filter = filterOf(call);
  const hasFilter = Object.values(filter).some((value) => value !== undefined);
  if ([ids.length > 0, hasFilter, call.flag("all")].filter(Boolean).length !== 1) {
    throw new UsageError("Say which letters: ids, or a filter such as --queue, or --all");
  }
  // A letter that fails once more while this runs is not done again and again.
  const upTo = { ...filter, to: filter.to ?? new Date().toISOString() };
  const total =
    ids.length > 0
      ? ids.length
      : (await call.api.request<Page>("GET", "/api/v1/dlq", { query: { ...upTo, limit: 1 } })).total;
  if (total > 0) await confirm(call, question(total));
  const progress = new Progress({ label: act, unit: "dead letters", total });
  let done = 0;
  for (let remaining = total; remaining > 0; ) {
    const chosen =
      ids.length > 0 ? { ids: ids.slice(total - remaining, total - remaining + LETTERS_PER_REQUEST) } : upTo;
    const answer = await call.api.request<Record<typeof counted | "remaining", number>>(
      "POST",
      `/api/v1/dlq/${act}`,
      { body: { ...chosen, limit: LETTERS_PER_REQUEST }, repeatable: true },
    );
    done += answer[counted];
    remaining =
      ids.length > 0 ? remaining - LETTERS_PER_REQUEST : answer[counted] === 0 ? 0 : answer.remaining;
    progress.to(done);
  }
  progress.finish();
  await call.output.value({ [counted]: done, chosen: total });
}
