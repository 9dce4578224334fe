/**
 * The popper finds messages for pops, and pops for messages.
 *
 * Which lanes may have work comes from memory: from this worker's own appends, from other brokers' hints, from
 * leases that ended with a rest, from times that came, and from a scan where nothing is known yet. The
 * database decides when the lane is leased; a wrong hint costs one empty take. A parked pop asks nothing.
 *
 * A pop goes from the resolver, which looks for its lanes, by way of the ready lanes, where it may have to wait, to
 * the taker, which leases them. The popper is their common door: it hears of what happens to lanes and groups.
 */
import type { LaneName } from "../lanes/directory.ts";
import type { Lane } from "../lanes/lane.ts";
import type { Queue } from "../lanes/queue.ts";
import { board } from "./boarding.ts";
import type { Group } from "./group.ts";
import { GroupOpener, type GroupOpenerOptions } from "./group-opener.ts";
import { GroupScan, type GroupScanOptions } from "./group-scan.ts";
import { Groups } from "./groups.ts";
import { LivePops } from "./live-pops.ts";
import { Pop, type PopOutcome, type PopRequest, PopStateTimes } from "./pop.ts";
import { QueueWatch, type Watch } from "./queue-watch.ts";
import { ReadyLanes } from "./ready-lanes.ts";
import type { ReadyRingOptions } from "./ready-ring.ts";
import { Resolver } from "./resolver.ts";
import type { TakeOperation, TakeResult } from "./take-kind.ts";
import { Taker, type TakerOptions } from "./taker.ts";

export interface PopperOptions extends GroupScanOptions, GroupOpenerOptions, TakerOptions, ReadyRingOptions {
  /** The queues of a namespace and a task, the most urgent first. */
  readonly queuesOf: (namespace: string, task: string) => Promise<readonly string[]>;
  /** A pop of any lane found nothing. */
  readonly foundNothing: (group: Group) => void;
  /** Pop maintenance is on: every pop is answered at once, with nothing. */
  readonly isMaintenance: () => boolean;
}

// A consumer that pauses for so long between two pops still counts as one that reads.
const READS_MS = 30_000;

/** A pop under way; its client may hang up, or have got what it wanted otherwise. */
export interface PopHandle {
  hangUp(): void;
  /** Unlike after a hang-up, what it gets all the same is told, to be put back. */
  callOff(): void;
}

export class Popper {
  readonly times: PopStateTimes;
  readonly #options: PopperOptions;
  readonly #groups: Groups;
  readonly #live: LivePops;
  readonly #lanes: ReadyLanes;
  readonly #scan: GroupScan;
  readonly #resolver: Resolver;
  readonly #taker: Taker;
  readonly #watch: QueueWatch;
  #isStopping = false;

  constructor(options: PopperOptions) {
    const { directory, now } = options;
    this.#options = options;
    this.#groups = new Groups(options);
    this.times = new PopStateTimes(now);
    this.#watch = new QueueWatch(options.queuesOf, options.log);
    const live = new LivePops(options.foundNothing);
    const lanes = new ReadyLanes(now, live, (pop, taken) => this.#taker.take(pop, taken));
    const opener = new GroupOpener(options, (group) => this.#resolver.forget(group));
    this.#live = live;
    this.#lanes = lanes;
    this.#scan = new GroupScan(options, this.#groups, opener, lanes);
    this.#resolver = new Resolver(directory, opener, this.#scan, lanes, live);
    this.#taker = new Taker(options, opener, lanes, live, this.#resolver);
    directory.onQueueGone((queue) => this.#queueGone(queue));
    directory.onQueueRead((queue) => this.#queueRead(queue));
    directory.onLaneGone((lane) => this.#laneGone(lane));
  }

  // ------------------------------------------------------------------------------------------------ pops

  get liveCount(): number {
    return this.#live.size;
  }

  get parkedCount(): number {
    return this.#watch.aloneCount + this.#live.parkedCount;
  }

  /** How many pops are parked, by the id of their queue. */
  parkedByQueue(): Map<number, number> {
    return this.#live.parkedByQueue();
  }

  get hasWaiters(): boolean {
    return this.#live.size > 0 || this.#watch.size > 0;
  }

  /** The ids of the groups that pop here, or did a moment ago. */
  get groupsRead(): number[] {
    const sinceMs = this.#options.now() - READS_MS;
    const ids: number[] = [];
    for (const { id, pops, usedAtMs } of this.#groups.all())
      if (id !== undefined && (pops > 0 || usedAtMs >= sinceMs)) ids.push(id);
    return ids;
  }

  pop(asked: PopRequest, done: (outcome: PopOutcome | Error) => void): PopHandle {
    const request = this.#isStopping ? { ...asked, waitMs: 0 } : asked;
    const group = this.#groups.meet(request.queue, request.group);
    group.usedAtMs = this.#options.now();
    const pop = new Pop(request, group, this.times, (outcome) => {
      this.#live.end(pop);
      done(outcome);
    });
    this.#live.add(pop);
    pop.move("accepted");
    if (this.#options.isMaintenance()) {
      this.#resolver.refuse(pop);
      return this.#handleOf(pop);
    }
    if (request.waitMs > 0) pop.deadline = setTimeout(() => this.#live.deadline(pop), request.waitMs);
    this.#resolver.begin(pop);
    return this.#handleOf(pop);
  }

  #handleOf(pop: Pop): PopHandle {
    return {
      hangUp: () => this.#live.hangUp(pop),
      callOff: () => {
        // What is finished at delivery and on its way could not be given back by its lease.
        if (!(pop.request.autoAck && pop.state === "LEASING")) this.#live.hangUp(pop);
      },
    };
  }

  /** Pop maintenance was switched on: nobody waits any longer. */
  refuseAll(): void {
    this.#live.deadlineOfAll("paused");
    this.#watch.endAll("paused");
  }

  /** Answers every pop that waits, and lets none wait any more. Resolves when calls in flight are back: their leases may be to give back. */
  stop(): Promise<void> {
    this.#isStopping = true;
    this.#live.deadlineOfAll();
    this.#watch.endAll("timeout");
    this.#lanes.stop();
    return this.#live.allEnded();
  }

  // ----------------------------------------------------------------------------------------------- lanes

  /** This lane may have work. `force`: the database said so just now, whatever is believed here. */
  hint(lane: Lane, force = false): void {
    for (const group of this.#groups.of(lane.queue.name)) {
      if (group.queue === lane.queue) {
        const groupLane = group.meet(lane);
        if (force) this.#lanes.found(groupLane);
        else this.#lanes.ready(groupLane);
      } else if (group.pops > 0) this.#scan.start(group);
    }
  }

  /**
   * Hints at lanes that were found together, so that one pop may get several of them: those that were appended to, and
   * those of which more may have changed.
   */
  hintAll(appended: readonly Lane[], changed: readonly Lane[]): void {
    this.#lanes.together(() => {
      for (const lane of appended) this.appended(lane);
      for (const lane of changed) this.hint(lane);
    });
  }

  /** The ids of the groups that wait for a message of a lane that is to be made. */
  waitingFor({ queue, partition }: LaneName): number[] {
    const ids: number[] = [];
    for (const group of this.#groups.of(queue))
      if (group.id !== undefined && group.waitsFor(partition)) ids.push(group.id);
    return ids;
  }

  /** The lane is new here, and about to be appended to: cursors of groups that wait for a message are opened meanwhile. */
  expect(lane: Lane): void {
    for (const group of this.#groups.of(lane.queue.name)) {
      if (group.queue !== lane.queue) continue;
      const groupLane = group.meet(lane);
      if (group.firstWaiting || groupLane.named.length > 0) this.#taker.openAhead(groupLane);
    }
  }

  /** The takes of parked pops that wait for nothing but an append to these lanes. They are under way from now on. */
  board(lanes: readonly Lane[]): TakeOperation[] {
    return board(this.#groups, lanes);
  }

  /** A take that went with an append is back. */
  taken(operation: TakeOperation, results: TakeResult): void {
    this.#taker.taken(operation, results);
  }

  /** The append that a take went with failed: the pop looks for itself. */
  missed(operation: TakeOperation, error: Error): void {
    this.#taker.missed(operation, error);
  }

  /**
   * The lane was appended to, here or elsewhere. A group that has got what it holds has nothing to look for: its take went
   * with the append, or the news of it is old.
   */
  appended(lane: Lane): void {
    for (const group of this.#groups.of(lane.queue.name)) {
      if (group.queue === lane.queue) {
        const groupLane = group.meet(lane);
        if (groupLane.takenTo < lane.nextOffset) this.#lanes.ready(groupLane);
      } else if (group.pops > 0) this.#scan.start(group);
    }
  }

  /** The lease ended: the lane is free, and may have a rest to deliver now or after a pause. */
  released(leased: Lane, groupId: number, committed: number, pauseMs: number): void {
    // A lease may be older than what is remembered of its lane.
    const lane = leased.gone ? this.#options.directory.laneById(leased.id) : leased;
    for (const group of this.#groups.of(leased.queue.name)) {
      if (group.id !== groupId) continue;
      if (!lane || group.queue !== lane.queue) this.#rescan(group);
      else this.#lanes.released(group.meet(lane), lane.nextOffset > committed, pauseMs);
    }
  }

  /** The lease lasts longer than was thought. */
  extended(laneId: number, leaseMs: number): void {
    const lane = this.#options.directory.laneById(laneId);
    if (!lane) return;
    for (const group of this.#groups.of(lane.queue.name)) {
      const groupLane = group.lanes.get(laneId);
      if (groupLane?.leasedHere && groupLane.dueAtMs !== undefined) this.#lanes.readyIn(groupLane, leaseMs);
    }
  }

  #laneGone(lane: Lane): void {
    for (const group of this.#groups.of(lane.queue.name)) {
      const groupLane = group.lanes.get(lane.id);
      if (groupLane?.lane === lane) this.#resolver.forgetLane(groupLane);
    }
  }

  // ----------------------------------------------------------------------------------- groups and queues

  /** The ids of the queues that somebody reads here. */
  get queueIds(): number[] {
    return this.#groups.queueIds;
  }

  /** Somebody waits for a queue that does not exist yet. */
  get waitsForQueue(): boolean {
    return this.#groups.waitForQueue;
  }

  /** Queues that come to match while a pop waits are told to it. */
  watchQueues(namespace: string, task: string): Watch {
    const watch = this.#watch.open(namespace, task);
    if (this.#isStopping) watch.end("timeout");
    return watch;
  }

  /** Queues were made or changed. */
  queuesChanged(): void {
    this.#watch.changed();
  }

  /** A queue that did not exist may exist now. */
  queueChanged(name: string): void {
    for (const group of this.#groups.of(name)) {
      if (group.id === undefined && group.pops > 0) this.#scan.start(group);
    }
  }

  /** An operator moved or deleted a group: leases and delays are over, and any lane may have work. */
  moved(queueName: string, name: string): void {
    const group = this.#groups.get(queueName, name);
    if (!group) return;
    this.#lanes.unblock(group);
    this.#rescan(group);
  }

  /** Any lane of the queue may have work. */
  rescan(queueName: string): void {
    for (const group of this.#groups.of(queueName)) this.#rescan(group);
  }

  #rescan(group: Group): void {
    group.warm = false;
    if (group.pops > 0) this.#scan.start(group);
  }

  /** Looks at a page of lanes of every group that pops or has just popped, for work that no hint told of. */
  scanRound(): Promise<void> {
    this.#watch.retry();
    return this.#scan.round();
  }

  /** Hints may have been lost: nothing that is believed about lanes counts. */
  forgetAll(): void {
    for (const group of this.#groups.all()) {
      this.#resolver.forget(group);
      if (group.pops > 0) this.#scan.start(group);
    }
    this.#watch.changed();
  }

  #queueGone(queue: Queue): void {
    for (const group of this.#groups.of(queue.name)) {
      if (group.queue !== queue) continue;
      this.#resolver.forget(group);
      group.id = undefined;
      group.queue = undefined;
    }
  }

  /** Its pauses may have changed. */
  #queueRead(queue: Queue): void {
    for (const group of this.#groups.of(queue.name)) {
      if (group.queue === queue) this.#lanes.pausesChanged(group);
    }
  }
}
