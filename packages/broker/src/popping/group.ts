/**
 * A consumer group of a queue as this worker knows it: the lanes that may have work for it, in the order in
 * which they are served, and the pops that wait.
 *
 * A lane of a group is
 *   idle     nothing is known to deliver, or it is leased; a hint makes it ready
 *   ready    it may have work; it stands in the ring
 *   taking   a call that leases it is in flight; a hint meanwhile is remembered
 */
import type { Lane } from "../lanes/lane.ts";
import type { Queue } from "../lanes/queue.ts";
import { encodeString } from "../operations/json-scanner.ts";
import type { Due } from "./due-list.ts";
import type { EmptyReason, Pop } from "./pop.ts";

export class GroupLane implements Due {
  readonly group: Group;
  readonly lane: Lane;
  state: "idle" | "ready" | "taking" = "idle";
  inRing = false;
  /** A hint came while the lane was being taken. */
  hinted = false;
  /** A pop of this worker holds the lease; hints need not try the lane before it is released. */
  leasedHere = false;
  cursorOpen = false;
  /** Up to this offset the group got what there is, by a pop of this worker. */
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
  }
}

/** FIFO of ready lanes: the lane served last goes last. */
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

export class Group {
  readonly queueName: string;
  readonly name: string;
  readonly nameJson: string;
  /** Undefined: the queue does not exist, as far as is known. */
  id: number | undefined;
  queue: Queue | undefined;
  opening: Promise<void> | undefined;
  /** It could not be found out whether the queue exists by now; the next round tries again. */
  openFailed = false;
  readonly lanes = new Map<number, GroupLane>();
  readonly ring = new ReadyRing();
  /** Lanes that may have work and are paused. */
  readonly held = new Set<GroupLane>();
  /** Pops of any lane, the longest waiting first; those that were served in vain come before all others. */
  readonly waiting = new Set<Pop>();
  readonly waitingFirst: Pop[] = [];
  /** Pops of a partition that does not exist yet. */
  readonly waitingForPartition = new Map<string, Pop[]>();
  /** Pops under way. */
  pops = 0;
  /** The whole queue was looked at once, and what happened since then came by hints. */
  warm = false;
  scanning: Promise<void> | undefined;
  /** Where the scan that looks for what hints missed goes on. */
  scanAfter = 0;
  usedAtMs = 0;
  emptyNotedAtMs = -Infinity;

  constructor(queueName: string, name: string) {
    this.queueName = queueName;
    this.name = name;
    this.nameJson = encodeString(name);
  }

  /** The lane is not what it was; if it is met again, it is as a new one. */
  drop(lane: GroupLane): void {
    lane.dueAtMs = undefined;
    if (lane.state === "ready") lane.state = "idle";
    this.held.delete(lane);
    this.lanes.delete(lane.lane.id);
  }

  /** What is known about lanes is no longer true. */
  forget(): void {
    for (const lane of this.lanes.values()) {
      lane.dueAtMs = undefined;
      if (lane.state === "ready") lane.state = "idle";
      for (const pop of lane.named.splice(0)) {
        const name = lane.lane.name;
        this.waitingForPartition.set(name, [...(this.waitingForPartition.get(name) ?? []), pop]);
      }
    }
    this.lanes.clear();
    this.ring.clear();
    this.held.clear();
    this.warm = false;
    this.scanAfter = 0;
  }
}
