/**
 * A scenario is one question about speed, with the load that answers it and the figures to compare with.
 *
 * `upstream` is what the C++ server 0.15 does on two cores that it shares with generator and database; `trial` is
 * what the first sketch of this design did there; `goal` is what this broker wants to reach at least.
 */
import type { Load } from "./loads/index.ts";

export interface Scenario {
  readonly id: string;
  /** The scenario's number; several rows of the table can share it. */
  readonly family: string;
  readonly asks: string;
  readonly correct: string;
  readonly load: Load;
  /** What is compared: messages a second (more is better) or the median latency (less is better). */
  readonly compares: "rate" | "p50";
  readonly upstream?: number;
  readonly trial?: number;
  readonly goal: string;
  /** Only with --full: it takes minutes. */
  readonly isFull?: true;
  /** A slow rate needs a longer window for its percentiles. */
  readonly secondsMin?: number;
}

const ONCE_IN_ORDER = "each message once, in order per partition, none missing";
const READ_BACK = `read back after the window: ${ONCE_IN_ORDER}`;

/** The floor of S1: what `node:http` does with the same requests when it only reads and answers them. */
export const FLOOR: Scenario = {
  id: "HTTP",
  family: "HTTP",
  asks: "How many S1 requests does a bare node:http server read and answer?",
  correct: "every request is answered",
  load: { kind: "push", producers: 64, batch: 1, partitions: 100, spread: "request", isFloor: true },
  compares: "rate",
  goal: "the limit of S1",
};

export const SCENARIOS: readonly Scenario[] = [
  {
    id: "S1",
    family: "S1",
    asks: "How fast are single pushes: batch 1, 64 connections, 100 partitions?",
    correct: READ_BACK,
    load: { kind: "push", producers: 64, batch: 1, partitions: 100, spread: "request" },
    compares: "rate",
    upstream: 2_900,
    trial: 12_200,
    goal: "6 x, 80 % of bare HTTP",
  },
  {
    id: "S2",
    family: "S2",
    asks: "How fast are pushes of 10, one of 100 partitions per request?",
    correct: READ_BACK,
    load: { kind: "push", producers: 64, batch: 10, partitions: 100, spread: "request" },
    compares: "rate",
    upstream: 12_500,
    trial: 84_000,
    goal: "7 x",
  },
  {
    id: "S2i",
    family: "S2i",
    asks: "How fast are pushes of 10, one of 100 partitions per message?",
    correct: READ_BACK,
    load: { kind: "push", producers: 64, batch: 10, partitions: 100, spread: "message" },
    compares: "rate",
    upstream: 11_200,
    trial: 57_000,
    goal: "6 x",
  },
  {
    id: "S3",
    family: "S3",
    asks: "How fast are pushes of 100, one of 1,000 partitions per request?",
    correct: READ_BACK,
    load: { kind: "push", producers: 64, batch: 100, partitions: 1_000, spread: "request" },
    compares: "rate",
    upstream: 15_900,
    trial: 281_000,
    goal: "18 x",
  },
  {
    id: "S4",
    family: "S4",
    asks: "How fast are pushes of 100 to one single partition?",
    correct: READ_BACK,
    load: { kind: "push", producers: 64, batch: 100, partitions: 1, spread: "request" },
    compares: "rate",
    upstream: 16_800,
    trial: 267_000,
    goal: "16 x",
  },
  {
    id: "S5",
    family: "S5",
    asks: "How fast do 32 consumers pop 100 and ack them, wildcard, 500,000 messages in 1,000 partitions?",
    correct: ONCE_IN_ORDER,
    load: {
      kind: "drain",
      consumers: 32,
      batch: 100,
      partitions: 1_000,
      messagesPerPartition: 500,
      ack: "batch",
      groups: 0,
    },
    compares: "rate",
    upstream: 6_400,
    trial: 120_000,
    goal: "18 x",
  },
  {
    id: "S6",
    family: "S6",
    asks: "How fast is S5 with auto-ack?",
    correct: ONCE_IN_ORDER,
    load: {
      kind: "drain",
      consumers: 32,
      batch: 100,
      partitions: 1_000,
      messagesPerPartition: 500,
      ack: "auto",
      groups: 0,
    },
    compares: "rate",
    upstream: 24_100,
    trial: 239_000,
    goal: "10 x",
  },
  namedPops(50, "auto", 1_540, 8_900),
  namedPops(500, "auto", 1_740),
  namedPops(50, "batch", 1_130),
  namedPops(500, "batch", 1_490),
  {
    id: "S7b",
    family: "S7b",
    asks: "How long do 500 pops take that are sent at once, one per partition, 100 messages each waiting?",
    correct: ONCE_IN_ORDER,
    load: { kind: "burst", partitions: 500, messagesPerPartition: 100, batch: 10 },
    compares: "p50",
    trial: 49,
    goal: "< 60 ms warm, < 120 ms the first time",
  },
  {
    id: "S8",
    family: "S8",
    asks: "How much flows from 16 producers (batch 10) to 16 long-polling consumers (batch 100, acks)?",
    correct: ONCE_IN_ORDER,
    load: flow(16, 10, 16, null),
    compares: "rate",
    upstream: 1_930,
    trial: 26_300,
    goal: "15 x, balanced",
  },
  {
    id: "S8-2000",
    family: "S8",
    asks: "How long is a message on its way in S8 at a fixed 2,000 a second?",
    correct: ONCE_IN_ORDER,
    load: flow(16, 10, 16, 2_000),
    compares: "p50",
    upstream: 56,
    trial: 2.4,
    goal: "p50 <= 3 ms, p99 <= 20 ms",
  },
  {
    id: "S9-50",
    family: "S9",
    asks: "How long is a message on its way at 50 a second to one long-polling consumer?",
    correct: ONCE_IN_ORDER,
    load: flow(1, 1, 1, 50),
    compares: "p50",
    upstream: 55,
    trial: 3.1,
    goal: "p50 <= 2 ms, p99 <= 5 ms",
  },
  {
    id: "S9-1",
    family: "S9",
    asks: "How long is a message on its way at 1 a second to one long-polling consumer?",
    correct: ONCE_IN_ORDER,
    load: flow(1, 1, 1, 1),
    compares: "p50",
    upstream: 375,
    goal: "p50 <= 2 ms, p99 <= 5 ms",
    secondsMin: 20,
  },
  {
    id: "S10",
    family: "S10",
    asks: "How fast do 10 consumer groups read the same 100,000 messages, in sum?",
    correct: `in every group ${ONCE_IN_ORDER}`,
    load: {
      kind: "drain",
      consumers: 40,
      batch: 100,
      partitions: 100,
      messagesPerPartition: 1_000,
      ack: "batch",
      groups: 10,
    },
    compares: "rate",
    upstream: 6_200,
    goal: "20 x",
  },
  sparse(1),
  sparse(100),
  sparse(10_000),
  { ...sparse(1_000_000), isFull: true },
  parked(1_000, 100),
  { ...parked(10_000, 1_000), isFull: true },
  pipe("transaction"),
  pipe("ack and push"),
];

function namedPops(connections: number, ack: "auto" | "batch", upstream: number, trial?: number): Scenario {
  return {
    id: `S7-${connections}-${ack === "auto" ? "auto" : "ack"}`,
    family: "S7",
    asks: `How fast are pops of 1 from named partitions, ${connections} at a time, ${
      ack === "auto" ? "auto-acked" : "each acked"
    }?`,
    correct: ONCE_IN_ORDER,
    load: { kind: "named-pops", connections, partitions: 500, messagesPerPartition: 100, ack },
    compares: "rate",
    upstream,
    ...(trial === undefined ? {} : { trial }),
    goal: "6 x",
  };
}

function flow(
  producers: number,
  pushBatch: number,
  consumers: number,
  messagesPerSecond: number | null,
): Load {
  return { kind: "flow", producers, pushBatch, consumers, popBatch: 100, partitions: 100, messagesPerSecond };
}

function sparse(partitions: number): Scenario {
  return {
    id: `S11-${partitions}`,
    family: "S11",
    asks: `What does a wildcard pop cost where 1 of ${partitions.toLocaleString("en")} partitions has work?`,
    correct: `a pop sent after the push was answered finds the message; ${ONCE_IN_ORDER}`,
    load: { kind: "sparse", partitions },
    compares: "p50",
    goal: "1,000,000 costs <= 2 x what 100 cost",
  };
}

function parked(consumers: number, queues: number): Scenario {
  return {
    id: `S12-${consumers}`,
    family: "S12",
    asks: `How soon are ${consumers.toLocaleString("en")} consumers woken that wait on ${queues.toLocaleString("en")} queues, and what do they cost while they wait?`,
    correct: "each consumer gets one message, each message once",
    load: { kind: "parked", consumers, queues },
    compares: "p50",
    goal: "p99 <= 500 ms, <= 20 KB each, no polling",
  };
}

function pipe(by: "transaction" | "ack and push"): Scenario {
  const isTransaction = by === "transaction";
  return {
    id: isTransaction ? "S13" : "S13-apart",
    family: "S13",
    asks: `How fast do 32 workers move messages, one ${isTransaction ? "transaction (ack 1 + push 1)" : "ack and one push"} each?`,
    correct: `source and target: ${ONCE_IN_ORDER}`,
    load: { kind: "pipe", workers: 32, partitions: 1_000, messagesPerPartition: 250, by },
    compares: "rate",
    goal: isTransaction ? "within 3 x of S13-apart" : "what S13 is compared with",
  };
}

/** The rows that names ask for, by id or family; without names all of them, the full ones only if wanted. */
export function selectScenarios(names: readonly string[], isFull: boolean): Scenario[] {
  const known = [FLOOR, ...SCENARIOS];
  const matches = (scenario: Scenario, name: string): boolean =>
    scenario.id.toLowerCase() === name.toLowerCase() || scenario.family.toLowerCase() === name.toLowerCase();
  for (const name of names) {
    if (!known.some((scenario) => matches(scenario, name))) {
      throw new Error(`there is no scenario "${name}"; --list shows them all`);
    }
  }
  const selected = known.filter(
    (scenario) => names.length === 0 || names.some((name) => matches(scenario, name)),
  );
  const isNamed = (scenario: Scenario): boolean =>
    names.some((name) => name.toLowerCase() === scenario.id.toLowerCase());
  const affordable = selected.filter((scenario) => isFull || !scenario.isFull || isNamed(scenario));
  // S1 means little without its floor in the same run.
  const needsFloor = affordable.some((scenario) => scenario.id === "S1") && !affordable.includes(FLOOR);
  return needsFloor ? [FLOOR, ...affordable] : affordable;
}

/** The same load with a tenth of the messages, to see that everything works. */
export function quickened(load: Load): Load {
  const tenth = (count: number): number => Math.max(1, Math.round(count / 10));
  switch (load.kind) {
    case "drain":
    case "named-pops":
    case "pipe":
      return { ...load, messagesPerPartition: tenth(load.messagesPerPartition) };
    case "burst":
      return { ...load, messagesPerPartition: load.batch * 3 };
    case "parked":
      return { ...load, consumers: tenth(load.consumers), queues: tenth(load.queues) };
    case "sparse":
      return { ...load, partitions: tenth(load.partitions) };
    case "push":
    case "flow":
      return load;
  }
}
