/** FIFO of ready lanes: the lane served last goes last. */
import type { GroupLane } from "./group-lane.ts";

export class ReadyRing {
  #lanes: (GroupLane | undefined)[] = [];
  #head = 0;

  push(lane: GroupLane): void {
    if (lane.inRing) return;
    lane.inRing = true;
    this.#lanes.push(lane);
  }

  /** The next lane that is still ready. */
  shift(): GroupLane | undefined {
    while (this.#head < this.#lanes.length) {
      const lane = this.#lanes[this.#head]!;
      this.#lanes[this.#head++] = undefined;
      if (this.#head === this.#lanes.length) {
        this.#lanes = [];
        this.#head = 0;
      } else if (this.#head > 1024 && this.#head * 2 > this.#lanes.length) {
        this.#lanes = this.#lanes.slice(this.#head);
        this.#head = 0;
      }
      lane.inRing = false;
      if (lane.state === "ready") return lane;
    }
    return undefined;
  }

  clear(): void {
    for (const lane of this.#lanes) if (lane) lane.inRing = false;
    this.#lanes = [];
    this.#head = 0;
  }
}
