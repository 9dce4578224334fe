/**
 * News of lanes: what other workers and brokers say by the bus reaches this worker's popper, and what an operator or
 * the database did to a lane reaches both.
 */
import { randomUUID } from "node:crypto";
import { Bus } from "../cluster/bus.ts";
import type { HintReader } from "../popping/hint-reader.ts";
import type { Popper } from "../popping/popper.ts";
import type { Log } from "../telemetry.ts";
import type { Connections } from "./connections.ts";
import type { Memory } from "./memory.ts";

// A consumer of another broker waits so much longer for a message, at most.
const GATHER_MS = 5;

export interface NewsOptions {
  readonly connect: Connections["connect"];
  readonly memory: Pick<Memory, "directory" | "rewritten">;
  readonly popper: () => Popper;
  readonly hints: () => HintReader;
  readonly now: () => number;
  readonly log: Log;
}

export interface News {
  readonly bus: Bus;
  /** Messages were appended, but not by this worker's pusher. */
  appendedElsewhere(partition: number, queue: number, nextOffset: number): void;
  /** A lane may have work that it did not have: here and elsewhere. */
  changed(partition: number): void;
  /** Somebody says that there is work: in a partition, or anywhere in the queue. */
  nudge(queue: string, partition: string | undefined): Promise<void>;
}

export function newsOf({ connect, memory, popper, hints, now, log }: NewsOptions): News {
  const { directory, rewritten } = memory;
  const failed = (error: unknown): void => log.warn({ error }, "hints.failed");
  const appendedElsewhere = (partition: number, queue: number, nextOffset: number): void => {
    const lane = directory.laneById(partition);
    if (lane) {
      lane.nextOffset = Math.max(lane.nextOffset, nextOffset);
      popper().appended(lane);
    } else if (popper().queueIds.includes(queue)) hints().look().catch(failed);
  };
  const bus = new Bus({
    id: randomUUID(),
    connect: () => connect("bus"),
    gatherMs: GATHER_MS,
    groupsRead: () => popper().groupsRead,
    now,
    log: (level, message) => log[level]({ message }, "bus"),
    listener: {
      appended: appendedElsewhere,
      released: (partition) => {
        const lane = directory.laneById(partition);
        if (lane) popper().hint(lane, true);
      },
      queuesChanged: (ids) => {
        hints().queuesChanged(ids).catch(failed);
      },
      rewritten: (partitions) => partitions.forEach(rewritten),
      stateChanged: () => {
        hints().look().catch(failed);
      },
      nudged: (queue) => popper().rescan(queue),
      reconnected: () => {
        hints().look().catch(failed);
      },
    },
  });
  return {
    bus,
    appendedElsewhere,
    changed: (partition) => {
      const lane = directory.laneById(partition);
      if (lane) popper().hint(lane, true);
      bus.released(partition);
    },
    nudge: async (queue, partition) => {
      const lane = partition === undefined ? undefined : await directory.open({ queue, partition }, false);
      if (lane) {
        popper().hint(lane, true);
        bus.released(lane.id);
      } else {
        popper().rescan(queue);
        bus.nudged(queue);
      }
    },
  };
}
