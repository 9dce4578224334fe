/**
 * A lane as one consumer group has it. It is
 *   idle     nothing is known to deliver, or it is leased; a hint makes it ready
 *   ready    it may have work; it stands in the ring
 *   taking   a call that leases it is in flight; a hint meanwhile is remembered
 */
import type { Lane } from "../lanes/lane.ts";
import type { Due } from "./due-list.ts";
import type { EmptyReason } from "./empty-reason.ts";
import type { Group } from "./group.ts";
import type { Pop } from "./pop.ts";

export class GroupLane implements Due {
  readonly group: Group;
  readonly lane: Lane;
  state: "idle" | "ready" | "taking" = "idle";
  inRing = false;
  /** Since when it stands in the ring. */
  readyAtMs = 0;
  /** A hint came while the lane was being taken. */
  hinted = false;
  /** A pop of this worker holds the lease; hints need not try the lane before it is released. */
  leasedHere = false;
  cursorOpen: boolean;
  /** Up to this offset the group got what there is, as a take of this worker found. */
  takenTo = 0;
  /** Somebody's transaction is making the cursor. */
  cursorBusy = false;
  /** Pops that want this very lane, the longest waiting first. */
  readonly named: Pop[] = [];
  blockedBy: EmptyReason | undefined;
  dueAtMs: number | undefined = undefined;
  listedAtMs = Infinity;

  constructor(group: Group, lane: Lane) {
    this.group = group;
    this.lane = lane;
    this.cursorOpen = group.id !== undefined && lane.madeFor?.has(group.id) === true;
  }
}
