/**
 * The segment cache keeps recent segments of lanes that are being read, so that small pops need not read a
 * whole segment again and again. A lane's cached segments are neighbours. Segments change only when an operator
 * deletes a message: the lane is then invalidated by a hint, and while hints are not being read nothing is
 * taken from the cache. Bounded in bytes; the lane used longest ago goes first.
 */
import { LinkedList } from "../linked-list.ts";
import type { Segment } from "../operations/segment.ts";
import type { Lane } from "./lane.ts";

const BYTES_PER_LANE_MAX = 512 * 1024;
const OVERHEAD_BYTES = 120;

export class SegmentCache {
  readonly #bytesMax: number;
  readonly #lanes = new LinkedList<Lane>(); // in the order of their last use
  readonly #isCurrent: () => boolean;
  #bytes = 0;

  /** `isCurrent`: whether what others did to segments is known here. */
  constructor(bytesMax: number, isCurrent: () => boolean) {
    this.#bytesMax = bytesMax;
    this.#isCurrent = isCurrent;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** What the cache holds of a lane now: neighbours, and the list stays as it is when the cache changes. */
  hold(lane: Lane): readonly Segment[] {
    return this.#isCurrent() ? lane.cached.slice() : [];
  }

  /** Adds the next segments of a lane; what does not join on replaces what was there. */
  keep(lane: Lane, segments: readonly Segment[]): void {
    if (lane.gone || this.#bytesMax === 0) return;
    for (const segment of segments) {
      if (lane.cached.length > 0) {
        const to = endOf(lane.cached);
        if (segment.firstOffset < to) continue;
        if (segment.firstOffset > to) this.drop(lane);
      }
      lane.cached.push(segment);
      this.#count(lane, sizeOf(segment));
    }
    while (lane.cachedBytes > BYTES_PER_LANE_MAX && lane.cached.length > 1) {
      this.#count(lane, -sizeOf(lane.cached.shift()!));
    }
    if (lane.cacheLink) this.#lanes.moveToEnd(lane.cacheLink);
    else lane.cacheLink = this.#lanes.push(lane);
    while (this.#bytes > this.#bytesMax) this.drop(this.#lanes.first!);
  }

  /** A segment of the lane was written anew. What was read before must not be kept, either. */
  invalidate(lane: Lane): void {
    lane.rewrites++;
    this.drop(lane);
  }

  drop(lane: Lane): void {
    this.#count(lane, -lane.cachedBytes);
    lane.cached = [];
    if (lane.cacheLink) this.#lanes.remove(lane.cacheLink);
    lane.cacheLink = undefined;
  }

  #count(lane: Lane, bytes: number): void {
    lane.cachedBytes += bytes;
    this.#bytes += bytes;
  }
}

/** The offsets that neighbouring segments hold: [startOf, endOf). */
export const startOf = (segments: readonly Segment[]): number => segments[0]?.firstOffset ?? 0;
export const endOf = (segments: readonly Segment[]): number => {
  const last = segments[segments.length - 1];
  return last === undefined ? 0 : last.firstOffset + last.count;
};

const sizeOf = (segment: Segment): number => segment.body.length + segment.ends.length + OVERHEAD_BYTES;
