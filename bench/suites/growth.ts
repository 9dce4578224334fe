/**
 * Growth: what one operation costs while something else grows. Each axis is a curve, each point a run. Nothing may
 * grow faster than the work itself; most curves should be flat.
 */
import type { Load } from "../loads/index.ts";
import type { Scenario, Suite } from "./scenario.ts";

export interface Axis {
  readonly name: string;
  readonly asks: string;
  readonly unit: string;
  readonly sizes: readonly number[];
  /** Whether the work itself grows along the axis, so that the cost may, too. */
  readonly isWork: boolean;
  readonly load: (size: number) => Load;
}

// A history is spread over so many partitions.
const PARTITIONS_OF_HISTORY = 1_000;

export const AXES: readonly Axis[] = [
  {
    name: "partitions",
    asks: "one push and one wildcard pop, where 1 of so many partitions has work",
    unit: "partitions",
    sizes: [1, 100, 10_000, 1_000_000],
    isWork: false,
    load: (partitions) => ({ kind: "sparse", partitions }),
  },
  {
    name: "lanes",
    asks: "one push, 64 producers, to so many partitions at random, of a queue that is read",
    unit: "partitions",
    sizes: [100, 10_000, 100_000, 1_000_000],
    isWork: false,
    load: (partitions) => ({
      kind: "push",
      producers: 64,
      batch: 1,
      partitions,
      spread: "request",
      isMet: true,
    }),
  },
  {
    name: "groups",
    asks: "one delivery with its ack, 100 consumers, to so many groups that each read everything",
    unit: "consumer groups",
    sizes: [1, 10, 100],
    isWork: false,
    load: (groups) => ({
      kind: "drain",
      consumers: Math.max(100, groups),
      batch: 100,
      partitions: 100,
      // Full pops for every number of groups, and fewer of them for many groups.
      messagesPerPartition: 100 * Math.max(1, Math.round(10 / Math.sqrt(groups))),
      ack: "batch",
      groups,
    }),
  },
  {
    name: "retained",
    asks: "one push and one wildcard pop, where so many messages of yesterday are kept",
    unit: "retained messages",
    sizes: [10_000, 1_000_000, 10_000_000, 50_000_000],
    isWork: false,
    load: (retained) => ({ kind: "sparse", partitions: PARTITIONS_OF_HISTORY, retained }),
  },
  {
    name: "parked",
    asks: "waking all of so many consumers that wait on a tenth as many queues",
    unit: "parked consumers",
    sizes: [1, 10, 100, 1_000, 10_000],
    isWork: true,
    load: (consumers) => ({ kind: "parked", consumers, queues: Math.max(1, Math.round(consumers / 10)) }),
  },
  {
    name: "payload",
    asks: "one push, 16 producers, with a payload of so many bytes",
    unit: "payload bytes",
    sizes: [10, 100, 1_000, 10_000, 100_000, 1_000_000],
    isWork: true,
    load: (payloadBytes) => ({
      kind: "push",
      producers: 16,
      batch: 1,
      partitions: 16,
      spread: "producer",
      payloadBytes,
    }),
  },
];

/** The points of every axis, at other sizes than its own if they are given. */
export const growth = (sizes: readonly number[] | null): Suite => ({
  name: "growth",
  scenarios: AXES.flatMap((axis) => (sizes ?? axis.sizes).map((size) => point(axis, size))),
});

function point(axis: Axis, size: number): Scenario {
  return {
    id: `${axis.name}-${size}`,
    family: axis.name,
    asks: `What does it cost: ${axis.asks} (${size.toLocaleString("en")})?`,
    correct: "each message once, in order per partition, none missing",
    load: axis.load(size),
    compares: "p50",
    goal: axis.isWork ? "no faster than the work" : "flat",
    point: { axis: axis.name, value: size },
  };
}
