/** `queen groups …`, `queen seek` and `queen lag`: where consumer groups stand. */
import { type Command, OPTION } from "../command.ts";
import { confirm } from "../confirmation.ts";
import { path } from "../connection.ts";
import { UsageError } from "../exit-codes.ts";
import { watchSeconds } from "../output/watch.ts";

interface Group {
  readonly name: string;
  readonly queueName: string;
  readonly members: number;
  readonly partitionsWithLag: number;
  readonly totalLag: number;
  readonly maxTimeLag: number;
  readonly state: string;
  readonly subscriptionMode: string;
}

export interface Place {
  readonly partition: string;
  readonly totalConsumed: number;
  readonly offsetLag: number;
  readonly timeLagSeconds: number;
  readonly leaseActive: boolean;
  readonly lastConsumedAt: string | null;
}

interface LaggingLane {
  readonly consumer_group: string;
  readonly queue_name: string;
  readonly partition_name: string;
  readonly offset_lag: number;
  readonly time_lag_seconds: number;
  readonly oldest_unconsumed_at: string;
}

export const groupsList: Command = {
  name: "groups list",
  summary: "List consumer groups with their lag",
  arguments: [{ name: "queue", summary: "The queue; all of them without it", isOptional: true }],
  options: [OPTION.watch],
  examples: [
    { line: "queen groups list", meaning: "Every group of every queue" },
    { line: "queen groups list orders --watch", meaning: "Follow the groups of a queue" },
  ],
  async run(call) {
    await call.output.watch(watchSeconds(call), async () => {
      const groups = await call.api.request<Group[]>("GET", "/api/v1/consumer-groups", {
        query: { queue: call.optionalArgument("queue") },
      });
      await call.output.list(groups, [
        { title: "GROUP", value: ({ name }) => name, isFlexible: true },
        { title: "QUEUE", value: ({ queueName }) => queueName, isFlexible: true },
        { title: "STATE", value: ({ state }) => state },
        { title: "PARTITIONS", value: ({ members }) => members },
        { title: "BEHIND", value: ({ partitionsWithLag }) => partitionsWithLag },
        { title: "LAG", value: ({ totalLag }) => totalLag },
        { title: "LAG SECONDS", value: ({ maxTimeLag }) => maxTimeLag },
        { title: "STARTS", value: ({ subscriptionMode }) => subscriptionMode },
      ]);
    });
    return undefined;
  },
};

export const groupsShow: Command = {
  name: "groups show",
  summary: "Show a group's places, by queue and partition",
  arguments: [{ name: "group", summary: "The consumer group" }],
  options: [
    { flags: "--queue <name>", summary: "Only in this queue" },
    OPTION.limit(1_000, 10_000, "Partitions"),
    OPTION.watch,
  ],
  examples: [{ line: "queen groups show billing --queue orders", meaning: "Where billing stands in orders" }],
  async run(call) {
    await call.output.watch(watchSeconds(call), async () => {
      const byQueue = await call.api.request<Record<string, { partitions: Place[] }>>(
        "GET",
        path`/api/v1/consumer-groups/${call.argument("group")}`,
        { query: { queue: call.text("queue"), limit: call.integer("limit") } },
      );
      const places = Object.entries(byQueue).flatMap(([queue, { partitions }]) =>
        partitions.map((place) => ({ queue, ...place })),
      );
      await call.output.list(places, [
        { title: "QUEUE", value: ({ queue }) => queue, isFlexible: true },
        { title: "PARTITION", value: ({ partition }) => partition, isFlexible: true },
        { title: "FINISHED", value: ({ totalConsumed }) => totalConsumed },
        { title: "LAG", value: ({ offsetLag }) => offsetLag },
        { title: "LAG SECONDS", value: ({ timeLagSeconds }) => timeLagSeconds },
        { title: "LEASED", value: ({ leaseActive }) => (leaseActive ? "yes" : "no") },
        { title: "LAST CONSUMED", value: ({ lastConsumedAt }) => lastConsumedAt },
      ]);
    });
    return undefined;
  },
};

export const groupsDelete: Command = {
  name: "groups delete",
  summary: "Forget a group, in one queue or in all; its dead letters stay",
  arguments: [{ name: "group", summary: "The consumer group" }],
  options: [
    { flags: "--queue <name>", summary: "Only in this queue" },
    { flags: "--keep-subscription", summary: "Keep where it starts anew" },
    OPTION.yes,
  ],
  examples: [
    { line: "queen groups delete billing --queue orders --yes", meaning: "Forget a group in one queue" },
  ],
  async run(call) {
    const group = call.argument("group");
    const queue = call.text("queue");
    await confirm(
      call,
      `Group ${group} will forget its places in ${queue === undefined ? "all queues" : `queue ${queue}`}`,
    );
    await call.output.value(
      await call.api.request<object>(
        "DELETE",
        queue === undefined
          ? path`/api/v1/consumer-groups/${group}`
          : path`/api/v1/consumer-groups/${group}/queues/${queue}`,
        { query: { deleteMetadata: call.flag("keepSubscription") ? false : undefined } },
      ),
    );
    return undefined;
  },
};

export const groupsSubscribe: Command = {
  name: "groups subscribe",
  summary: "Say where a group starts in partitions that it has not met",
  arguments: [
    { name: "group", summary: "The consumer group" },
    { name: "time", summary: "The first message stored then or later is its first" },
  ],
  examples: [{ line: "queen groups subscribe billing 2026-11-15T00:00:00Z", meaning: "Start with that day" }],
  async run(call) {
    await call.output.value(
      await call.api.request<object>(
        "POST",
        path`/api/v1/consumer-groups/${call.argument("group")}/subscription`,
        {
          body: { subscriptionTimestamp: call.argument("time") },
        },
      ),
    );
    return undefined;
  },
};

export const seek: Command = {
  name: "seek",
  summary: "Move a group to the end of a queue or to a time; its leases end",
  arguments: [
    { name: "group", summary: "The consumer group; __QUEUE_MODE__ is queue mode" },
    { name: "queue", summary: "The queue" },
  ],
  options: [
    { flags: "--to <time>", summary: "The first message stored then or later is the next one" },
    { flags: "--to-end", summary: "Behind everything" },
    OPTION.partition,
    OPTION.yes,
  ],
  examples: [
    {
      line: "queen seek billing orders --to 2026-11-15T08:00:00Z",
      meaning: "Read again from eight o'clock on",
    },
    {
      line: "queen seek billing orders --to-end --partition customer-42 --yes",
      meaning: "Skip what is in one lane",
    },
  ],
  async run(call) {
    const to = call.text("to");
    if ((to === undefined) !== call.flag("toEnd")) throw new UsageError("Say --to <time> or --to-end");
    const group = call.argument("group");
    const queue = call.argument("queue");
    const partition = call.text("partition");
    const where = partition === undefined ? `queue ${queue}` : `partition ${partition} of queue ${queue}`;
    await confirm(
      call,
      `Group ${group} will be moved ${to === undefined ? "to the end" : `to ${to}`} in ${where}, and its leases there end`,
    );
    const base = path`/api/v1/consumer-groups/${group}/queues/${queue}`;
    await call.output.value(
      await call.api.request<object>(
        "POST",
        partition === undefined ? `${base}/seek` : `${base}${path`/partitions/${partition}/seek`}`,
        { repeatable: true, body: to === undefined ? { toEnd: true } : { timestamp: to } },
      ),
    );
    return undefined;
  },
};

export const lag: Command = {
  name: "lag",
  summary: "List partitions whose oldest unfinished message waits longest",
  options: [
    {
      flags: "--min-seconds <seconds>",
      summary: "Only those that wait at least so long",
      fallback: 0,
      integer: { min: 0, max: Number.MAX_SAFE_INTEGER },
    },
    OPTION.limit(50, 10_000, "Partitions"),
    OPTION.watch,
  ],
  examples: [
    { line: "queen lag --min-seconds 300", meaning: "Who is more than five minutes behind" },
    { line: "queen lag --watch", meaning: "Follow it" },
  ],
  async run(call) {
    await call.output.watch(watchSeconds(call), async () => {
      const lanes = await call.api.request<LaggingLane[]>("GET", "/api/v1/consumer-groups/lagging", {
        query: { minLagSeconds: call.integer("minSeconds"), limit: call.integer("limit") },
      });
      await call.output.list(lanes, [
        { title: "GROUP", value: ({ consumer_group }) => consumer_group, isFlexible: true },
        { title: "QUEUE", value: ({ queue_name }) => queue_name, isFlexible: true },
        { title: "PARTITION", value: ({ partition_name }) => partition_name, isFlexible: true },
        { title: "LAG", value: ({ offset_lag }) => offset_lag },
        { title: "LAG SECONDS", value: ({ time_lag_seconds }) => time_lag_seconds },
        { title: "OLDEST", value: ({ oldest_unconsumed_at }) => oldest_unconsumed_at },
      ]);
    });
    return undefined;
  },
};
