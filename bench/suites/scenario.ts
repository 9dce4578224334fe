/**
 * A scenario is one question about speed, with the load that answers it and the figures to compare with.
 *
 * `upstream` is what the C++ server 0.15 does on two cores that it shares with generator and database; `trial` is
 * what the first sketch of this design did there; `goal` is what this broker wants to reach at least.
 */
import type { Load } from "../loads/index.ts";
import type { Topology } from "../processes/broker.ts";

/** At a low rate: so many messages that one in a hundred is several, after so long that code and caches have run in. */
export const SLOW_RATE = { secondsMin: 10, warmupSecondsMin: 10 } as const;

export interface Scenario {
  readonly id: string;
  /** The scenario's number; several rows of the table can share it. */
  readonly family: string;
  readonly asks: string;
  readonly correct: string;
  readonly load: Measured;
  /** What is compared: messages a second (more is better) or the median latency (less is better). */
  readonly compares: "rate" | "p50";
  readonly upstream?: number;
  readonly trial?: number;
  readonly goal: string;
  /** Only with --full: it takes minutes. */
  readonly isFull?: true;
  /** A slow rate needs a longer window for its percentiles, and a longer warm-up to run code and caches in. */
  readonly secondsMin?: number;
  readonly warmupSecondsMin?: number;
  /** Rows that are measured in the same run, as what this one is a share of: its floors, or the same on one broker. */
  readonly against?: readonly string[];
  /** Without it, one broker with the workers that the command line or the broker's default says. */
  readonly topology?: Topology;
  /** The point of a curve, in the suite of growth. */
  readonly point?: { readonly axis: string; readonly value: number };
}

/** What is measured: a load that a generator runs, or something about the machine or about starting. */
export type Measured = Load | FsyncRate | StartTime;

export interface FsyncRate {
  readonly kind: "fsync";
}

export interface StartTime {
  readonly kind: "start";
  /** Cold: PostgreSQL has no data folder yet. Warm: the folder of an earlier start. */
  readonly from: "cold" | "warm";
}

export type SuiteName = "scenarios" | "peers" | "growth" | "memory";

export interface Suite {
  readonly name: SuiteName;
  readonly scenarios: readonly Scenario[];
}

/** The rows that names ask for, by id or family, with what they are compared with; without names all of them. */
export function select(suite: Suite, names: readonly string[], isFull: boolean): Suite {
  const known = suite.scenarios;
  const isCalled = (text: string, name: string): boolean => text.toLowerCase() === name.toLowerCase();
  for (const name of names) {
    if (!known.some(({ id, family }) => isCalled(id, name) || isCalled(family, name))) {
      throw new Error(`there is no scenario "${name}" in ${suite.name}; --list shows them all`);
    }
  }
  const isWanted = ({ id, family, isFull: isLong }: Scenario): boolean => {
    if (names.some((name) => isCalled(id, name))) return true;
    if (names.length > 0 && !names.some((name) => isCalled(family, name))) return false;
    return isFull || !isLong;
  };
  const wanted = known.filter(isWanted);
  const compared = new Set(wanted.flatMap(({ against }) => against ?? []));
  return { ...suite, scenarios: known.filter((row) => wanted.includes(row) || compared.has(row.id)) };
}

/** The same with a tenth of the messages, to see that everything works. */
export function quickened(load: Measured): Measured {
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
      return load.retained === undefined
        ? { ...load, partitions: tenth(load.partitions) }
        : { ...load, partitions: tenth(load.partitions), retained: tenth(load.retained) };
    case "lanes":
      return { ...load, partitions: tenth(load.partitions) };
    case "peer":
      return load.messages === undefined ? load : { ...load, messages: tenth(load.messages) };
    case "push":
      return load.isMet ? { ...load, partitions: tenth(load.partitions) } : load;
    case "flow":
    case "idle":
    case "append":
    case "fsync":
    case "start":
      return load;
  }
}
