/** `queen queues`, `queen queue …` and `queen partitions`. */
import type { Command } from "../command.ts";
import { OPTION } from "../command.ts";
import { confirm } from "../confirmation.ts";
import { path } from "../connection.ts";
import { parseExactly } from "../exact-json.ts";
import { UsageError } from "../exit-codes.ts";
import type { Column } from "../output/table.ts";
import { watchSeconds } from "../output/watch.ts";

interface Counts {
  readonly total: number;
  readonly pending: number;
  readonly processing: number;
  readonly completed: number;
  readonly deadLetter: number;
}

interface Queue {
  readonly name: string;
  readonly namespace: string;
  readonly task: string;
  readonly partitions: number;
  readonly messages: Counts;
  readonly createdAt: string;
}

interface Partition {
  readonly queue: string;
  readonly name: string;
  readonly messages: Counts;
  readonly oldestPending: string | null;
  readonly lastActivity: string | null;
}

const COUNT_COLUMNS: readonly Column<{ messages: Counts }>[] = [
  { title: "PENDING", value: ({ messages }) => messages.pending },
  { title: "PROCESSING", value: ({ messages }) => messages.processing },
  { title: "COMPLETED", value: ({ messages }) => messages.completed },
  { title: "DEAD", value: ({ messages }) => messages.deadLetter },
  { title: "TOTAL", value: ({ messages }) => messages.total },
];

export const queues: Command = {
  name: "queues",
  summary: "List queues with their figures, the newest first",
  options: [
    { flags: "--search <text>", summary: "Only queues with this in their name" },
    { flags: "--namespace <name>", summary: "Only queues of this namespace" },
    { flags: "--task <name>", summary: "Only queues of this task" },
    OPTION.limit(1_000, 10_000, "Queues"),
    OPTION.watch,
  ],
  examples: [
    { line: "queen queues", meaning: "All queues" },
    { line: "queen queues --search order --watch 5", meaning: "Look at some of them every five seconds" },
    {
      line: "queen queues -o json | jq -r '.[] | select(.messages.deadLetter > 0).name'",
      meaning: "Queues with dead letters",
    },
  ],
  async run(call) {
    await call.output.watch(watchSeconds(call), async () => {
      const { queues } = await call.api.request<{ queues: Queue[] }>("GET", "/api/v1/resources/queues", {
        query: {
          search: call.text("search"),
          namespace: call.text("namespace"),
          task: call.text("task"),
          limit: call.integer("limit"),
        },
      });
      await call.output.list(queues, [
        { title: "QUEUE", value: ({ name }) => name, isFlexible: true },
        { title: "PARTITIONS", value: ({ partitions }) => partitions },
        ...COUNT_COLUMNS.filter(({ title }) => title !== "COMPLETED" && title !== "DEAD"),
        { title: "CREATED", value: ({ createdAt }) => createdAt },
      ]);
    });
    return undefined;
  },
};

export const queueShow: Command = {
  name: "queue show",
  summary: "Show a queue: its options and its figures",
  arguments: [{ name: "queue", summary: "The queue" }],
  options: [OPTION.watch],
  examples: [{ line: "queen queue show orders", meaning: "Options and figures of a queue" }],
  async run(call) {
    await call.output.watch(watchSeconds(call), async () => {
      const { queue, totals, pagination } = await call.api.request<{
        queue: object;
        totals: { messages: object };
        pagination: { total: number };
      }>("GET", path`/api/v1/status/queues/${call.argument("queue")}`, { query: { limit: 1 } });
      await call.output.value({ ...queue, partitions: pagination.total, messages: totals.messages });
    });
    return undefined;
  },
};

export const queueConfigure: Command = {
  name: "queue configure",
  summary: "Make or configure a queue; options that are not named stay as they are",
  details:
    "The options are those of POST /api/v1/configure, see docs/http-api.md: leaseTime, retryLimit, retentionSeconds, …",
  arguments: [
    { name: "queue", summary: "The queue" },
    { name: "setting", summary: "Options as name=value", isOptional: true, isVariadic: true },
  ],
  options: [
    { flags: "--namespace <name>", summary: "The queue's namespace" },
    { flags: "--task <name>", summary: "The queue's task" },
    { flags: "--replace", summary: "Options that are not named return to their defaults" },
  ],
  examples: [
    { line: "queen queue configure orders leaseTime=60 retryLimit=5", meaning: "Change two options" },
    { line: "queen queue configure orders --replace", meaning: "Back to the defaults" },
  ],
  async run(call) {
    const options = Object.fromEntries(call.variadicArgument("setting").map(setting));
    const answer = await call.api.request<{ unknownOptions?: string[] }>("POST", "/api/v1/configure", {
      repeatable: true,
      body: {
        queue: call.argument("queue"),
        namespace: call.text("namespace"),
        task: call.text("task"),
        options,
        mode: call.flag("replace") ? "replace" : "merge",
      },
    });
    await call.output.value(answer);
    if (answer.unknownOptions !== undefined) {
      throw new UsageError(`The broker does not know ${answer.unknownOptions.join(", ")}; the rest is done`);
    }
    return undefined;
  },
};

function setting(text: string): [string, unknown] {
  const [, name, value] = /^(\w+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) {
    throw new UsageError(`"${text}" is no setting: write name=value, as in leaseTime=60`);
  }
  try {
    return [name, parseExactly(value)];
  } catch {
    return [name, value];
  }
}

export const queueClear: Command = {
  name: "queue clear",
  summary: "Remove all messages of a queue or of one partition; every group ends up behind them",
  arguments: [{ name: "queue", summary: "The queue" }],
  options: [
    OPTION.partition,
    { flags: "--dead-letters", summary: "Remove the dead letters, too" },
    OPTION.yes,
  ],
  examples: [{ line: "queen queue clear orders --partition customer-42 --yes", meaning: "Empty one lane" }],
  async run(call) {
    const queue = call.argument("queue");
    const partition = call.text("partition");
    const what = partition === undefined ? `queue ${queue}` : `partition ${partition} of queue ${queue}`;
    await confirm(call, `All messages of ${what} will be removed, for every group`);
    await call.output.value(
      await call.api.request<object>("DELETE", path`/api/v1/queues/${queue}/clear`, {
        query: { partition, deadLetters: call.flag("deadLetters") || undefined },
      }),
    );
    return undefined;
  },
};

export const queueDelete: Command = {
  name: "queue delete",
  summary: "Delete a queue with everything in it",
  arguments: [{ name: "queue", summary: "The queue" }],
  options: [OPTION.yes],
  examples: [{ line: "queen queue delete orders --yes", meaning: "Delete without asking" }],
  async run(call) {
    const queue = call.argument("queue");
    await confirm(call, `Queue ${queue} will be deleted, with its messages, groups and dead letters`);
    await call.output.value(
      await call.api.request<object>("DELETE", path`/api/v1/resources/queues/${queue}`),
    );
    return undefined;
  },
};

export const partitions: Command = {
  name: "partitions",
  summary: "List the partitions of a queue, or of all",
  arguments: [{ name: "queue", summary: "The queue; all of them without it", isOptional: true }],
  options: [
    { flags: "--search <text>", summary: "Only partitions with this in their name" },
    {
      flags: "--sort <order>",
      summary: "By name, by unfinished messages, or by the oldest unfinished message",
      choices: ["name", "depth", "age"],
      fallback: "name",
    },
    OPTION.limit(100, 10_000, "Partitions"),
    OPTION.watch,
  ],
  examples: [
    { line: "queen partitions orders --sort depth -n 10", meaning: "The ten fullest lanes" },
    {
      line: "queen partitions orders --sort age --watch",
      meaning: "Where the oldest message waits, again and again",
    },
  ],
  async run(call) {
    await call.output.watch(watchSeconds(call), async () => {
      const { partitions, total } = await call.api.request<{ partitions: Partition[]; total: number }>(
        "GET",
        "/api/v1/resources/partitions",
        {
          query: {
            queue: call.optionalArgument("queue"),
            search: call.text("search"),
            sort: call.text("sort"),
            limit: call.integer("limit"),
          },
        },
      );
      await call.output.list(partitions, [
        { title: "QUEUE", value: ({ queue }) => queue, isFlexible: true },
        { title: "PARTITION", value: ({ name }) => name, isFlexible: true },
        ...COUNT_COLUMNS,
        { title: "OLDEST PENDING", value: ({ oldestPending }) => oldestPending },
      ]);
      if (partitions.length < total)
        call.output.note(`${partitions.length} of ${total} partitions; see --limit`);
    });
    return undefined;
  },
};
