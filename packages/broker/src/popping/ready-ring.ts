/**
 * The ready lanes of a group: the lane served last goes last. Where several workers read for the group, those that are at home
 * here come before those that are another's to look at first: two workers that go through the same lanes in the same order
 * try each lane twice. A lane of another is looked at once nothing at home is ready, or when it has waited so much longer that
 * its home seems to have no time for it.
 */
import { Fifo } from "../fifo.ts";
import type { GroupLane } from "./group-lane.ts";

export interface ReadyRingOptions {
  /** Whether of all workers that read for its group this one looks at the lane first. */
  readonly isHome: (lane: GroupLane) => boolean;
  readonly now: () => number;
}

// A lane that its home serves is tried in vain once in so long, while there is work at home; one whose home has no time
// for it waits so much longer than others.
const AWAY_MS = 1_000;

export class ReadyRing {
  readonly #options: ReadyRingOptions;
  readonly #home = new Fifo<GroupLane>();
  readonly #away = new Fifo<GroupLane>();

  constructor(options: ReadyRingOptions) {
    this.#options = options;
  }

  push(lane: GroupLane): void {
    if (lane.inRing) return;
    lane.inRing = true;
    lane.readyAtMs = this.#options.now();
    if (this.#options.isHome(lane)) this.#home.push(lane);
    else this.#away.push(lane);
  }

  /** The next lane that is still ready. */
  shift(): GroupLane | undefined {
    for (let lane = this.#next(); lane; lane = this.#next()) {
      lane.inRing = false;
      if (lane.state === "ready") return lane;
    }
    return undefined;
  }

  clear(): void {
    for (let lane = this.#next(); lane; lane = this.#next()) lane.inRing = false;
  }

  #next(): GroupLane | undefined {
    const home = this.#home.first;
    const away = this.#away.first;
    const isAwayFirst = !home || (away && away.readyAtMs + AWAY_MS < home.readyAtMs);
    return isAwayFirst ? this.#away.shift() : this.#home.shift();
  }
}
