/** What a worker remembers of the database, to spare questions: names, recent segments, recent keys, leases. */
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
  readonly now: () => number;
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
const LANES_MAX = 1_000_000;
const MEGABYTE = 1024 * 1024;

export function memoryOf(options: MemoryOptions): Memory {
  const { config, use, meter, isCurrent, waitingFor, now } = options;
  const directory = new Directory(use, { lanesMax: LANES_MAX, waitingFor, now });
  directory.onQueueGone((queue) => meter.queueGone(queue.id));
  const cache = new SegmentCache(config.segmentCacheMb * MEGABYTE, isCurrent);
  return {
    directory,
    cache,
    windows: new WindowStore(use, config.dedupMemoryMb * MEGABYTE),
    leases: new DeliveredLeases(DELIVERED_BYTES_MAX),
    rewritten: (partition) => {
      const lane = directory.laneById(partition);
      if (lane) cache.invalidate(lane);
    },
    queueOfPartition: async (partition) => (await directory.openById(partition))?.queue.name,
  };
}
