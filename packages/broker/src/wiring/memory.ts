/** What a worker remembers of the database, to spare questions: names, recent segments, recent keys, leases. */
import { getHeapStatistics } from "node:v8";
import type { Config } from "../config.ts";
import { Directory, type DirectoryOptions } from "../lanes/directory.ts";
import { SegmentCache } from "../lanes/segment-cache.ts";
import { WindowStore } from "../lanes/window-store.ts";
import type { Meter } from "../metering/meter.ts";
import { DeliveredLeases } from "../settling/delivered.ts";
import type { Use } from "./connections.ts";

export interface MemoryOptions {
  readonly config: Config;
  readonly use: Use;
  readonly meter: Meter;
  /** Whether this worker knows of all that was rewritten. */
  readonly isCurrent: () => boolean;
  readonly waitingFor: DirectoryOptions["waitingFor"];
}

export interface Memory {
  readonly directory: Directory;
  readonly cache: SegmentCache;
  readonly windows: WindowStore;
  readonly leases: DeliveredLeases;
  /** Segments of this partition are not what they were. */
  readonly rewritten: (partition: number) => void;
  readonly queueOfPartition: (partition: number) => Promise<string | undefined>;
}

const DELIVERED_BYTES_MAX = 64 * 1024 * 1024;
const MEGABYTE = 1024 * 1024;
// A lane takes 600 bytes, its window some 300 until it has many keys, and what one group knows of it 200: four kilobytes have
// room for a dozen groups.
const HEAP_BYTES_PER_LANE = 4096;
const LANES_MIN = 10_000;
// Code, and what is under way.
const HEAP_BYTES_OF_REST = 40 * MEGABYTE;
// What lives for long is not in the young generation, which is three times its setting (see cluster/supervisor.ts).
const YOUNG_GENERATION_BYTES = 3 * 64 * MEGABYTE;

export function memoryOf(options: MemoryOptions): Memory {
  const { config, use, meter, isCurrent, waitingFor } = options;
  const segmentBytesMax = config.segmentCacheMb * MEGABYTE;
  const lanesMax = lanesThatFit(getHeapStatistics().heap_size_limit, segmentBytesMax);
  const directory = new Directory(use, { lanesMax, waitingFor });
  directory.onQueueGone((queue) => meter.queueGone(queue.id));
  const cache = new SegmentCache(segmentBytesMax, isCurrent);
  const windows = new WindowStore(use, config.dedupMemoryMb * MEGABYTE);
  directory.onLaneGone((lane) => {
    windows.forget(lane);
    cache.drop(lane);
  });
  return {
    directory,
    cache,
    windows,
    leases: new DeliveredLeases(DELIVERED_BYTES_MAX),
    rewritten: (partition) => {
      const lane = directory.laneById(partition);
      if (lane) cache.invalidate(lane);
    },
    queueOfPartition: async (partition) => (await directory.openById(partition))?.queue.name,
  };
}

/** How many lanes a heap of this size holds beside what else is remembered. */
export function lanesThatFit(heapBytes: number, segmentBytesMax: number): number {
  const others = YOUNG_GENERATION_BYTES + HEAP_BYTES_OF_REST + DELIVERED_BYTES_MAX + segmentBytesMax;
  return Math.max(LANES_MIN, Math.floor((heapBytes - others) / HEAP_BYTES_PER_LANE));
}
