/**
 * A consumer group of a queue as this worker knows it: the lanes that may have work for it, in the order in
 * which they are served, and the pops that wait.
 */
import type { Lane } from "../lanes/lane.ts";
import type { Queue } from "../lanes/queue.ts";
import { LinkedList } from "../linked-list.ts";
import { encodeString } from "../operations/json-scanner.ts";
import { GroupLane } from "./group-lane.ts";
import type { Pop } from "./pop.ts";
import type { ReadyRing } from "./ready-ring.ts";

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
  readonly ring: ReadyRing;
  /** Lanes that may have work and are paused. */
  readonly held = new Set<GroupLane>();
  /** Pops of any lane, the longest waiting first; those that were served in vain come before all others. */
  readonly #waiting = new LinkedList<Pop>();
  readonly #waitingFirst: Pop[] = [];
  /** Pops of a partition that does not exist yet. */
  readonly #waitingForPartition = new Map<string, Pop[]>();
  /** Pops under way. */
  pops = 0;
  /** The whole queue was looked at once, and what happened since then came by hints. */
  warm = false;
  scanning: Promise<void> | undefined;
  /**
   * Nothing but hints is known yet, and the first page is being looked at: until then nobody is served, so that a first
   * pop of several lanes gets more than those of which the broker happened to hear.
   */
  isBlind = false;
  /** Where the scan that looks for what hints missed goes on. */
  scanAfter = 0;
  usedAtMs = 0;
  emptyNotedAtMs = -Infinity;

  constructor(queueName: string, name: string, ring: ReadyRing) {
    this.queueName = queueName;
    this.name = name;
    this.ring = ring;
    this.nameJson = encodeString(name);
  }

  /** The pop of any lane that is to be served next. */
  get firstWaiting(): Pop | undefined {
    return this.#waitingFirst[0] ?? this.#waiting.first;
  }

  /** Whether a pop waits for a message of this partition, which does not exist yet, or of any. */
  waitsFor(partition: string): boolean {
    return this.firstWaiting !== undefined || this.#waitingForPartition.has(partition);
  }

  get waitingForPartitions(): Pop[] {
    return [...this.#waitingForPartition.values()].flat();
  }

  wait(pop: Pop): void {
    pop.waiting ??= this.#waiting.push(pop);
  }

  /** It was served in vain. */
  waitFirst(pop: Pop): void {
    this.#waitingFirst.push(pop);
  }

  waitForPartition(name: string, pop: Pop): void {
    this.#waitingForPartition.set(name, [...(this.#waitingForPartition.get(name) ?? []), pop]);
  }

  /** The pop waits for nothing any more, wherever it stood. */
  leave(pop: Pop): void {
    if (pop.waiting) this.#waiting.remove(pop.waiting);
    pop.waiting = undefined;
    const first = this.#waitingFirst.indexOf(pop);
    if (first >= 0) this.#waitingFirst.splice(first, 1);
    const { partition } = pop.request;
    if (partition === undefined) return;
    const waiting = this.#waitingForPartition.get(partition)?.filter((other) => other !== pop);
    if (waiting?.length === 0) this.#waitingForPartition.delete(partition);
    else if (waiting) this.#waitingForPartition.set(partition, waiting);
    const named = this.laneNamed(partition)?.named;
    const at = named?.indexOf(pop) ?? -1;
    if (named && at >= 0) named.splice(at, 1);
  }

  laneNamed(partition: string): GroupLane | undefined {
    const lane = this.queue?.lanes.get(partition);
    return lane && this.lanes.get(lane.id);
  }

  /** What the group has of this lane. Pops that waited for a partition of its name wait for it from now on. */
  meet(lane: Lane): GroupLane {
    let groupLane = this.lanes.get(lane.id);
    if (!groupLane) {
      groupLane = new GroupLane(this, lane);
      this.lanes.set(lane.id, groupLane);
      const named = this.#waitingForPartition.get(lane.name);
      if (named) {
        this.#waitingForPartition.delete(lane.name);
        groupLane.named.push(...named);
      }
    }
    return groupLane;
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
      for (const pop of lane.named.splice(0)) this.waitForPartition(lane.lane.name, pop);
    }
    this.lanes.clear();
    this.ring.clear();
    this.held.clear();
    this.warm = false;
    this.scanAfter = 0;
  }
}
