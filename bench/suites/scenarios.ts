/** The scenarios S1 to S14, and the floors that say how far the limit is. */
import type { Load } from "../loads/index.ts";
import { type Scenario, SLOW_RATE, type Suite } from "./scenario.ts";

const ONCE_IN_ORDER = "each message once, in order per partition, none missing";
const READ_BACK = `read back after the window: ${ONCE_IN_ORDER}`;

/** What bounds the scenarios from below: the disk, HTTP alone, PostgreSQL alone. */
export const FLOORS: readonly Scenario[] = [
  {
    id: "FSYNC",
    family: "floors",
    asks: "How often a second does the disk take a write for good?",
    correct: "every write is followed by a sync",
    load: { kind: "fsync" },
    compares: "rate",
    goal: "the limit of one commit after the other",
  },
  httpFloor(1),
  httpFloor(100),
  appendFloor(1, "row"),
  appendFloor(100, "row"),
  appendFloor(100, "log"),
];

const MEASURED: readonly Scenario[] = [
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
    against: ["FSYNC", "HTTP", "PG-1"],
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
    against: ["HTTP-100", "PG-100", "PG-log"],
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
    against: ["HTTP-100", "PG-log"],
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
    id: "S5-range",
    family: "S5",
    asks: "How fast is S5 where each delivery is acked by its first and its last message?",
    correct: ONCE_IN_ORDER,
    load: {
      kind: "drain",
      consumers: 32,
      batch: 100,
      partitions: 1_000,
      messagesPerPartition: 500,
      ack: "range",
      groups: 0,
    },
    compares: "rate",
    goal: "more than S5",
    against: ["S5"],
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
    ...SLOW_RATE,
    against: ["FSYNC"],
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
    ...SLOW_RATE,
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

/** S14: what several workers of one broker, and several brokers on one database, do with the same lanes. */
const SHARED: readonly Scenario[] = ["S1", "S3", "S5", "S8"].flatMap((id) => [
  shared(id, "workers"),
  shared(id, "brokers"),
]);

export const SCENARIOS: Suite = { name: "scenarios", scenarios: [...FLOORS, ...MEASURED, ...SHARED] };

function httpFloor(batch: number): Scenario {
  return {
    id: batch === 1 ? "HTTP" : `HTTP-${batch}`,
    family: "floors",
    asks: `How many pushes of ${batch} does a bare node:http server read and answer?`,
    correct: "every request is answered",
    load: { kind: "push", producers: 64, batch, partitions: 100, spread: "request", isFloor: true },
    compares: "rate",
    goal: batch === 1 ? "the limit of S1" : "the limit of S3",
  };
}

function appendFloor(batch: number, by: "row" | "log"): Scenario {
  return {
    id: by === "row" ? `PG-${batch}` : "PG-log",
    family: "floors",
    asks:
      by === "row"
        ? `How many messages does bare PostgreSQL take, ${batch} rows a statement, 64 connections?`
        : `How many messages does bare PostgreSQL take where ${batch} are one row, 64 connections?`,
    correct: "as many messages and bytes are stored as were sent",
    load: { kind: "append", senders: 64, batch, by },
    compares: "rate",
    goal:
      batch === 1
        ? "a commit for each message"
        : by === "row"
          ? "a row for each message"
          : "the limit of a log",
  };
}

function shared(id: string, what: "workers" | "brokers"): Scenario {
  const alone = MEASURED.find((scenario) => scenario.id === id)!;
  return {
    id: `S14-${id}-${what}`,
    family: "S14",
    asks: `${alone.asks.replace(/\?$/, "")}, with two ${what}?`,
    correct: alone.correct,
    load: alone.load,
    compares: "rate",
    goal: `no less than ${id}`,
    against: [id],
    topology: what === "workers" ? { brokers: 1, workers: 2 } : { brokers: 2, workers: 1 },
  };
}

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
    ...(isTransaction ? { against: ["S13-apart"] } : {}),
  };
}
