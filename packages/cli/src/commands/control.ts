/** `queen pause`, `resume`, `maintenance`: what operators stop and start again. */
import { type Command, OPTION } from "../command.ts";
import { path } from "../connection.ts";

interface Pause {
  readonly partition: string | null;
  readonly consumerGroup: string | null;
  readonly reason: string | null;
  readonly pausedBy: string;
  readonly pausedAt: string;
}

const WHAT = [
  { ...OPTION.partition, summary: "Only this partition; all of them without it" },
  { ...OPTION.group, summary: "Only for this group; for all without it" },
] as const;

export const pause: Command = {
  name: "pause",
  summary: "Stop the delivery of a queue, of a partition, or to a group; pushes and acks go on",
  arguments: [{ name: "queue", summary: "The queue" }],
  options: [
    ...WHAT,
    { flags: "--reason <text>", summary: "Why, for those who wonder" },
    { flags: "--list", summary: "Only show what is paused, by whom and why" },
  ],
  examples: [
    { line: "queen pause orders --group billing --reason 'invoices are wrong'", meaning: "Stop one group" },
    { line: "queen pause orders --list", meaning: "What is paused" },
  ],
  async run(call) {
    const queue = call.argument("queue");
    if (call.flag("list")) {
      const { pauses } = await call.api.request<{ pauses: Pause[] }>(
        "GET",
        path`/api/v1/queues/${queue}/pauses`,
      );
      await call.output.list(pauses, [
        { title: "PARTITION", value: ({ partition }) => partition ?? "all", isFlexible: true },
        { title: "GROUP", value: ({ consumerGroup }) => consumerGroup ?? "all", isFlexible: true },
        { title: "SINCE", value: ({ pausedAt }) => pausedAt },
        { title: "BY", value: ({ pausedBy }) => pausedBy, isFlexible: true },
        { title: "REASON", value: ({ reason }) => reason, isFlexible: true },
      ]);
      return undefined;
    }
    await call.output.value(
      await call.api.request<object>("POST", path`/api/v1/queues/${queue}/pause`, {
        repeatable: true,
        body: {
          partition: call.text("partition"),
          consumerGroup: call.text("group"),
          reason: call.text("reason"),
        },
      }),
    );
    return undefined;
  },
};

export const resume: Command = {
  name: "resume",
  summary: "End the pause of exactly what is named",
  arguments: [{ name: "queue", summary: "The queue" }],
  options: WHAT,
  examples: [{ line: "queen resume orders --group billing", meaning: "Let the group go on" }],
  async run(call) {
    await call.output.value(
      await call.api.request<object>("POST", path`/api/v1/queues/${call.argument("queue")}/resume`, {
        repeatable: true,
        body: { partition: call.text("partition"), consumerGroup: call.text("group") },
      }),
    );
    return undefined;
  },
};

const MODE = [
  { flags: "--pop", summary: "Pop maintenance: every pop is answered at once, with nothing" },
] as const;

export const maintenanceStatus: Command = {
  name: "maintenance status",
  summary: "Show which modes of maintenance are on, and what waits on the broker's disk",
  examples: [{ line: "queen maintenance status", meaning: "Both modes" }],
  async run(call) {
    await call.output.value(await call.api.request<object>("GET", "/api/v1/system/maintenance"));
    return undefined;
  },
};

const switchMode = (name: "on" | "off", summary: string, example: string): Command => ({
  name: `maintenance ${name}`,
  summary,
  options: MODE,
  examples: [
    { line: `queen maintenance ${name}`, meaning: example },
    { line: `queen maintenance ${name} --pop`, meaning: `Pop maintenance ${name}` },
  ],
  async run(call) {
    const where = call.flag("pop") ? "/api/v1/system/maintenance/pop" : "/api/v1/system/maintenance";
    await call.output.value(
      await call.api.request<object>("POST", where, { repeatable: true, body: { enabled: name === "on" } }),
    );
    return undefined;
  },
});

export const maintenanceOn = switchMode(
  "on",
  "Switch push maintenance on: pushes wait on the brokers' disks",
  "Before work on the database",
);
export const maintenanceOff = switchMode(
  "off",
  "Switch push maintenance off: what waits is stored, in order",
  "When the work is done",
);
