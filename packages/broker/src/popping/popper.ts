/**
 * The popper finds messages for pops, and pops for messages.
 *
 * Which lanes may have work comes from memory: from this worker's own appends, from other brokers' hints, from
 * leases that ended with a rest, from times that came, and from a scan where nothing is known yet. The
 * database decides when the lane is leased; a wrong hint costs one empty take. A parked pop asks nothing.
 */

import { randomFillSync } from "node:crypto";
import { LEASE_TOKEN_LIMIT } from "@queen/protocol";
import type { Batcher } from "../batching/batcher.ts";
import type { Directory } from "../lanes/directory.ts";
import type { Lane } from "../lanes/lane.ts";
import type { Queue } from "../lanes/queue.ts";
import { isRolledBack, PostgresError } from "../postgres/errors.ts";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import { CursorOpener } from "./cursor-opener.ts";
import { DueList } from "./due-list.ts";
import { Group, GroupLane } from "./group.ts";
import { hasPaused, isPaused, isStopped, pausesChanged } from "./pausing.ts";
import { type EmptyReason, Pop, type PopOutcome, type PopRequest, PopStateTimes, type Taken } from "./pop.ts";
import { QueueWatch, type Watch } from "./queue-watch.ts";
import type { LaneResult, TakeOperation, TakeResult } from "./take-kind.ts";

const { TAKE } = statements;

export interface PopperOptions {
  readonly directory: Directory;
  readonly takes: Batcher<TakeOperation, TakeResult>;
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  /** The queues of a namespace and a task, the most urgent first. */
  readonly queuesOf: (namespace: string, task: string) => Promise<readonly string[]>;
  /** Looks in the database for what happened elsewhere, and hints at it here, before it resolves. */
  readonly look: () => Promise<void>;
  /** A pop of any lane found nothing. */
  readonly foundNothing: (group: Group) => void;
  /** Messages were leased to a pop that is gone: end the leases. */
  readonly giveBack: (taken: readonly Taken[], token: number) => void;
  /** Pop maintenance is on: every pop is answered at once, with nothing. */
  readonly isMaintenance: () => boolean;
  /** A message went to the dead letters because leases on it ran out. */
  readonly buried: (queue: Queue) => void;
  readonly now: () => number;
  readonly busyPauseMs: number;
  readonly log: (message: string, error: unknown) => void;
}

const SCAN_PAGE = 2_000;
const LANES_PER_SCAN_ROUND = 5_000;
const GROUP_IDLE_MS = 5 * 60_000;
// A consumer that asks again and again without waiting is looked after between two of its pops.
const GROUP_ACTIVE_MS = 5_000;
// Each attempt to make a cursor that somebody's transaction is making keeps a connection for a moment.
const CURSOR_BUSY_MS = 500;
// A lane whose first message is being buried is looked at again at the latest after this.
const BURY_MS_MAX = 5_000;

const BLOCKED_BY: Readonly<Record<number, EmptyReason>> = {
  [TAKE.leased]: "lease_held",
  [TAKE.delayed]: "delayed",
  [TAKE.window]: "window_buffer",
  [TAKE.retryDelay]: "retry_delay",
};

/** A pop under way; its client may hang up, or have got what it wanted otherwise. */
export interface PopHandle {
  hangUp(): void;
  /** Unlike after a hang-up, what it gets all the same is told, to be put back. */
  callOff(): void;
}

export class Popper {
  readonly times: PopStateTimes;
  readonly #options: PopperOptions;
  readonly #groups = new Map<string, Map<string, Group>>();
  readonly #due: DueList<GroupLane>;
  readonly #live = new Set<Pop>();
  readonly #cursors: CursorOpener;
  readonly #watch: QueueWatch;
  #idle: (() => void) | undefined;
  #isStopping = false;
  /** Groups to be served when all the lanes that were found together are ready; undefined: at once. */
  #served: Set<Group> | undefined;

  constructor(options: PopperOptions) {
    this.#options = options;
    this.#cursors = new CursorOpener(options.use);
    this.times = new PopStateTimes(options.now);
    this.#watch = new QueueWatch(options.queuesOf, options.log);
    this.#due = new DueList(options.now, (groupLane) => {
      groupLane.leasedHere = false;
      this.#ready(groupLane);
    });
    options.directory.onQueueGone((queue) => this.#queueGone(queue));
    options.directory.onQueueRead((queue) => this.#queueRead(queue));
    options.directory.onLaneGone((lane) => this.#laneGone(lane));
  }

  get liveCount(): number {
    return this.#live.size;
  }

  get parkedCount(): number {
    let parked = this.#watch.aloneCount;
    for (const pop of this.#live) if (pop.state === "PARKED") parked++;
    return parked;
  }

  /** How many pops are parked, by the id of their queue. */
  parkedByQueue(): Map<number, number> {
    const parked = new Map<number, number>();
    for (const { state, group } of this.#live) {
      if (state === "PARKED" && group.queue)
        parked.set(group.queue.id, (parked.get(group.queue.id) ?? 0) + 1);
    }
    return parked;
  }

  /** The ids of the queues that somebody reads here. */
  get queueIds(): number[] {
    return [...this.#allGroups()].flatMap((group) => (group.queue ? [group.queue.id] : []));
  }

  /** Somebody waits for a queue that does not exist yet. */
  get waitsForQueue(): boolean {
    for (const group of this.#allGroups()) if (group.id === undefined && group.pops > 0) return true;
    return false;
  }

  get hasWaiters(): boolean {
    return this.#live.size > 0 || this.#watch.size > 0;
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

  pop(asked: PopRequest, done: (outcome: PopOutcome | Error) => void): PopHandle {
    const request = this.#isStopping ? { ...asked, waitMs: 0 } : asked;
    const group = this.#group(request.queue, request.group);
    group.usedAtMs = this.#options.now();
    const pop = new Pop(request, group, this.times, (outcome) => {
      this.#end(pop);
      done(outcome);
    });
    this.#live.add(pop);
    group.pops++;
    pop.move("accepted");
    if (this.#options.isMaintenance()) {
      this.#refuse(pop);
      return this.#handleOf(pop);
    }
    if (request.waitMs > 0) pop.deadline = setTimeout(() => this.#deadline(pop), request.waitMs);
    this.#begin(pop);
    return this.#handleOf(pop);
  }

  #handleOf(pop: Pop): PopHandle {
    return {
      hangUp: () => this.#hangUp(pop),
      callOff: () => {
        // What is finished at delivery and on its way could not be given back by its lease.
        if (!(pop.request.autoAck && pop.state === "LEASING")) this.#hangUp(pop);
      },
    };
  }

  /** This lane may have work. `force`: the database said so just now, whatever is believed here. */
  hint(lane: Lane, force = false): void {
    const groups = this.#groups.get(lane.queue.name);
    if (!groups) return;
    for (const group of groups.values()) {
      if (group.queue === lane.queue) {
        const groupLane = this.#groupLane(group, lane);
        if (force) groupLane.leasedHere = false;
        this.#ready(groupLane, force);
      } else if (group.pops > 0) this.#queueAppeared(group);
    }
  }

  /** This worker appended to the lane. Groups whose takes went with the append know of nothing new. */
  appended(lane: Lane): void {
    for (const group of this.#groups.get(lane.queue.name)?.values() ?? []) {
      if (group.queue === lane.queue) {
        const groupLane = this.#groupLane(group, lane);
        if (groupLane.takenTo < lane.nextOffset) this.#ready(groupLane);
      } else if (group.pops > 0) this.#queueAppeared(group);
    }
  }

  /** The takes of parked pops that wait for nothing but an append to these lanes. They are under way from now on. */
  board(lanes: readonly Lane[]): TakeOperation[] {
    const operations = new Map<Pop, { pop: Pop; token: number; lanes: GroupLane[] }>();
    const boarding = new Map<Group, Pop>();
    for (const lane of lanes) {
      for (const group of this.#groups.get(lane.queue.name)?.values() ?? []) {
        const groupLane = group.lanes.get(lane.id);
        if (groupLane?.lane !== lane || !mayBoard(groupLane)) continue;
        let pop = groupLane.named.shift() ?? boarding.get(group);
        if (!pop) {
          pop = group.waitingFirst[0] ?? firstOf(group.waiting);
          if (!pop) continue;
          this.#leave(pop);
          boarding.set(group, pop);
        }
        const operation = operations.get(pop) ?? { pop, token: newToken(), lanes: [] };
        operations.set(pop, operation);
        operation.lanes.push(groupLane);
        if (operation.lanes.length === pop.request.partitions) boarding.delete(group);
        groupLane.state = "taking";
        groupLane.hinted = false;
      }
    }
    for (const { pop } of operations.values()) {
      if (pop.state === "PARKED") pop.move("woken");
      pop.move("lanes");
    }
    return [...operations.values()];
  }

  /** The append that a take went with failed: the pop looks for itself. */
  missed(operation: TakeOperation, error: Error): void {
    if (!(error instanceof PostgresError)) this.#giveBackUnknown(operation);
    const nothing = { status: TAKE.notTried, dueMs: 0, nextOffset: 0, taken: undefined, vanished: undefined };
    this.taken(
      operation,
      operation.lanes.map((groupLane) => ({ groupLane, ...nothing })),
    );
  }

  /** Hints at lanes that were found together, so that one pop may get several of them. */
  hintAll(lanes: readonly Lane[]): void {
    this.#together(() => {
      for (const lane of lanes) this.hint(lane);
    });
  }

  /** The lease ended: the lane is free, and may have a rest to deliver now or after a pause. */
  released(leased: Lane, groupId: number, committed: number, pauseMs: number): void {
    // A lease may be older than what is remembered of its lane.
    const lane = leased.gone ? this.#options.directory.laneById(leased.id) : leased;
    for (const group of this.#groups.get(leased.queue.name)?.values() ?? []) {
      if (group.id !== groupId) continue;
      if (!lane || group.queue !== lane.queue) {
        this.#rescan(group);
        continue;
      }
      const groupLane = this.#groupLane(group, lane);
      groupLane.leasedHere = false;
      this.#due.clear(groupLane);
      if (pauseMs > 0 && groupLane.state === "idle") {
        groupLane.blockedBy = "retry_delay";
        this.#due.set(groupLane, pauseMs);
      } else if (lane.nextOffset > committed || groupLane.named.length > 0) this.#ready(groupLane);
    }
  }

  /** The lease lasts longer than was thought. */
  extended(laneId: number, leaseMs: number): void {
    const lane = this.#options.directory.laneById(laneId);
    for (const group of lane ? (this.#groups.get(lane.queue.name)?.values() ?? []) : []) {
      const groupLane = group.lanes.get(laneId);
      if (groupLane?.leasedHere && groupLane.dueAtMs !== undefined) this.#due.set(groupLane, leaseMs);
    }
  }

  /** An operator moved or deleted a group: leases and delays are over, and any lane may have work. */
  moved(queueName: string, name: string): void {
    const group = this.#groups.get(queueName)?.get(name);
    if (!group) return;
    for (const groupLane of group.lanes.values()) {
      groupLane.leasedHere = false;
      groupLane.blockedBy = undefined;
      this.#due.clear(groupLane);
    }
    this.#rescan(group);
  }

  /** Pop maintenance was switched on: nobody waits any longer. */
  refuseAll(): void {
    for (const pop of [...this.#live]) this.#deadline(pop, "paused");
    this.#watch.endAll("paused");
  }

  /** Any lane of the queue may have work. */
  rescan(queueName: string): void {
    for (const group of this.#groups.get(queueName)?.values() ?? []) this.#rescan(group);
  }

  #rescan(group: Group): void {
    group.warm = false;
    if (group.pops > 0) this.#queueAppeared(group);
  }

  /** A queue that did not exist may exist now. */
  queueChanged(name: string): void {
    for (const group of this.#groups.get(name)?.values() ?? []) {
      if (group.id === undefined && group.pops > 0) this.#queueAppeared(group);
    }
  }

  /** Hints may have been lost: nothing that is believed about lanes counts. */
  forgetAll(): void {
    for (const group of this.#allGroups()) {
      this.#forget(group);
      if (group.pops > 0) this.#queueAppeared(group);
    }
    this.#watch.changed();
  }

  /** Looks at a page of lanes of every group that pops or has just popped, for work that no hint told of. */
  async scanRound(): Promise<void> {
    const nowMs = this.#options.now();
    this.#watch.retry();
    const active: Group[] = [];
    for (const group of [...this.#allGroups()]) {
      const idleMs = group.pops > 0 ? 0 : nowMs - group.usedAtMs;
      if (idleMs < GROUP_ACTIVE_MS) {
        if (group.id !== undefined && group.warm) active.push(group);
        else if (group.id !== undefined || group.openFailed) this.#queueAppeared(group);
      } else if (idleMs > GROUP_IDLE_MS && !group.opening && !group.scanning) this.#drop(group);
    }
    if (active.length === 0) return;
    const page = Math.max(50, Math.floor(LANES_PER_SCAN_ROUND / active.length));
    await this.#scan(active, page);
  }

  /** Answers every pop that waits, and lets none wait any more. Resolves when calls in flight are back: their leases may be to give back. */
  stop(): Promise<void> {
    this.#isStopping = true;
    for (const pop of [...this.#live]) this.#deadline(pop);
    this.#watch.endAll("timeout");
    this.#due.stop();
    return new Promise((resolve) => {
      this.#idle = resolve;
      if (this.#live.size === 0) resolve();
    });
  }

  // ---------------------------------------------------------------------------------------------- groups

  *#allGroups(): Generator<Group> {
    for (const groups of this.#groups.values()) yield* groups.values();
  }

  #group(queueName: string, name: string): Group {
    const groups = this.#groups.get(queueName) ?? new Map<string, Group>();
    const group = groups.get(name) ?? new Group(queueName, name);
    this.#groups.set(queueName, groups.set(name, group));
    return group;
  }

  #drop(group: Group): void {
    group.forget();
    const groups = this.#groups.get(group.queueName);
    groups?.delete(group.name);
    if (groups?.size === 0) {
      this.#groups.delete(group.queueName);
      if (group.queue) group.queue.hasReaders = false;
    }
  }

  /** Finds the group in the database, where its first pop records it with its subscription. */
  #openGroup(group: Group, request: PopRequest | undefined): Promise<void> {
    group.opening ??= (async () => {
      const { mode, from } = request?.subscription ?? { mode: "all", from: null };
      const [row] = await this.#options
        .use((session) => session.run(statements.openGroup, [group.queueName, group.name, mode, from]))
        .catch((error: unknown) => {
          // Somebody's transaction is making the group: until that ends, there is nothing to deliver. Where this
          // pop says how the group begins, nobody else can record it.
          if (!isRolledBack(error) || mode !== "all") throw error;
          group.openFailed = true;
          return [];
        });
      if (row?.queueId == null || row.groupId === null) return;
      const queue = await this.#options.directory.queueById(row.queueId);
      if (!queue) return;
      if (group.queue !== queue) this.#forget(group);
      group.id = row.groupId;
      group.queue = queue;
      queue.hasReaders = true;
    })().finally(() => {
      group.opening = undefined;
    });
    return group.opening;
  }

  #queueGone(queue: Queue): void {
    for (const group of this.#groups.get(queue.name)?.values() ?? []) {
      if (group.queue !== queue) continue;
      this.#forget(group);
      group.id = undefined;
      group.queue = undefined;
    }
  }

  /** Its pauses may have changed. */
  #queueRead(queue: Queue): void {
    for (const group of this.#groups.get(queue.name)?.values() ?? []) {
      if (group.queue !== queue) continue;
      const { paused, resumed } = pausesChanged(group);
      for (const groupLane of paused) this.#hold(groupLane);
      this.#together(() => {
        for (const groupLane of resumed) {
          group.held.delete(groupLane);
          this.#ready(groupLane, true);
        }
      });
    }
  }

  /** Pops that are parked for this very lane wait for the next one with its name; others look for that at once. */
  #laneGone(lane: Lane): void {
    for (const group of this.#groups.get(lane.queue.name)?.values() ?? []) {
      const groupLane = group.lanes.get(lane.id);
      if (groupLane?.lane !== lane) continue;
      group.drop(groupLane);
      for (const pop of groupLane.named.splice(0)) {
        if (pop.state === "PARKED") this.#waitForPartition(pop);
        else setImmediate(() => this.#begin(pop));
      }
    }
  }

  /** What is known about the group's lanes is no longer true. Pops that were on their way begin again. */
  #forget(group: Group): void {
    group.forget();
    for (const pop of [...group.waitingForPartition.values()].flat()) {
      if (pop.state !== "RESOLVING") continue;
      this.#leave(pop);
      setImmediate(() => this.#begin(pop)); // when the group is what it will be
    }
  }

  #queueAppeared(group: Group): void {
    group.openFailed = false;
    this.#openAndWarmUp(group).catch((error) => {
      group.openFailed = true;
      this.#options.log("pop.group_failed", error);
    });
  }

  async #openAndWarmUp(group: Group): Promise<void> {
    if (group.id === undefined && group.opening) await group.opening; // it may have looked too early
    if (group.id === undefined) await this.#openGroup(group, undefined);
    if (group.id !== undefined) await this.#warmUp(group);
  }

  #groupLane(group: Group, lane: Lane): GroupLane {
    let groupLane = group.lanes.get(lane.id);
    if (!groupLane) {
      groupLane = new GroupLane(group, lane);
      group.lanes.set(lane.id, groupLane);
      const named = group.waitingForPartition.get(lane.name);
      if (named) {
        group.waitingForPartition.delete(lane.name);
        groupLane.named.push(...named);
      }
    }
    return groupLane;
  }

  // ------------------------------------------------------------------------------------------- resolving

  #begin(pop: Pop): void {
    if (pop.group.id !== undefined) {
      this.#resolve(pop);
      return;
    }
    this.#openGroup(pop.group, pop.request).then(
      () => this.#resolve(pop),
      (error) => pop.fail(error as Error),
    );
  }

  /** A group that starts at a point in time is recorded all the same: what is pushed from now on is for it. */
  #refuse(pop: Pop): void {
    const { group, request } = pop;
    const end = (): void => {
      if (pop.isLive) this.#deadline(pop, "paused");
    };
    if (group.id !== undefined || request.subscription.mode === "all") end();
    else this.#openGroup(group, request).then(end, end);
  }

  #resolve(pop: Pop): void {
    if (pop.state !== "RESOLVING") return;
    const { group, request } = pop;
    if (group.id === undefined) {
      if (request.partition === undefined) group.waiting.add(pop);
      else this.#waitForPartition(pop);
      this.#parkOrEnd(pop);
    } else if (request.partition !== undefined) this.#resolveNamed(pop, request.partition);
    else {
      group.waiting.add(pop);
      this.#serve(group);
      if (pop.state === "RESOLVING") this.#resolveAny(pop);
    }
  }

  /** Memory knows of no lane for this pop. */
  #resolveAny(pop: Pop): void {
    const { group } = pop;
    if (group.id === undefined) {
      this.#parkOrEnd(pop); // the queue was deleted meanwhile
      return;
    }
    if (isStopped(group) && pop.request.waitMs === 0) {
      this.#parkOrEnd(pop);
      return;
    }
    const looked = group.warm && pop.request.waitMs > 0 ? undefined : this.#lookFor(group);
    if (pop.request.waitMs > 0) this.#parkOrEnd(pop);
    looked?.then(
      () => {
        if (pop.state === "RESOLVING") this.#parkOrEnd(pop);
      },
      (error) => this.#failWaiting(pop, error as Error),
    );
  }

  /** Resolves when everything that was committed before the call was offered to the group's pops. */
  async #lookFor(group: Group): Promise<void> {
    if (group.warm) await this.#options.look();
    // Nothing was known yet, or the look found that hints were lost.
    if (!group.warm) await this.#warmUp(group);
  }

  #resolveNamed(pop: Pop, partition: string): void {
    const lane = this.#options.directory.lane(pop.request.queue, partition);
    if (lane && !lane.gone) {
      this.#enqueueNamed(pop, lane);
      return;
    }
    this.#options.directory.open({ queue: pop.request.queue, partition }, false).then(
      (found) => {
        if (pop.state !== "RESOLVING") return;
        if (found) this.#enqueueNamed(pop, found);
        else {
          this.#waitForPartition(pop);
          this.#parkOrEnd(pop);
        }
      },
      (error) => pop.fail(error as Error),
    );
  }

  #enqueueNamed(pop: Pop, lane: Lane): void {
    if (pop.group.queue !== lane.queue) {
      // The queue was deleted and made again while this pop was on its way.
      pop.group.id = undefined;
      this.#openGroup(pop.group, pop.request).then(
        () => {
          if (pop.state !== "RESOLVING") return;
          if (pop.group.queue === lane.queue) this.#enqueueNamed(pop, lane);
          else this.#resolve(pop);
        },
        (error) => pop.fail(error as Error),
      );
      return;
    }
    const groupLane = this.#groupLane(pop.group, lane);
    groupLane.named.push(pop);
    if (isPaused(groupLane)) this.#hold(groupLane);
    else this.#serveNamed(groupLane);
  }

  #waitForPartition(pop: Pop): void {
    const { waitingForPartition } = pop.group;
    const name = pop.request.partition!;
    waitingForPartition.set(name, [...(waitingForPartition.get(name) ?? []), pop]);
  }

  /** Nothing for this pop now: it waits, or it is answered. */
  #parkOrEnd(pop: Pop): void {
    if (pop.request.partition === undefined) {
      this.#options.foundNothing(pop.group);
      pop.reason = this.#blockedBy(pop.group) ?? "no_available_partition";
    }
    if (pop.request.waitMs > 0) pop.move("park");
    else {
      this.#leave(pop);
      pop.move("nothing");
    }
  }

  /** Why lanes that have something are not delivered, where it is worth knowing. */
  #blockedBy(group: Group): EmptyReason | undefined {
    if (hasPaused(group)) return "paused";
    let looked = 0;
    for (const lane of group.lanes.values()) {
      if (lane.dueAtMs !== undefined && lane.blockedBy && lane.blockedBy !== "lease_held")
        return lane.blockedBy;
      if (++looked > 100) return undefined;
    }
    return undefined;
  }

  /** A group's first look at the whole queue, page by page; pops are served while it goes on. */
  #warmUp(group: Group): Promise<void> {
    group.scanning ??= (async () => {
      await this.#options.look();
      let id: number | undefined;
      do {
        if (group.id === undefined) await this.#openGroup(group, undefined); // the look forgot it
        if (group.id === undefined) return;
        if (group.id !== id) group.scanAfter = 0; // also where the queue was deleted and made anew meanwhile
        id = group.id;
        await this.#scan([group], SCAN_PAGE);
      } while (group.id !== id || group.scanAfter > 0);
      group.warm = true;
    })().finally(() => {
      group.scanning = undefined;
    });
    return group.scanning;
  }

  async #scan(groups: readonly Group[], page: number): Promise<void> {
    // Read now: while the call waits for a slot, a queue may go.
    const ids = groups.map((group) => group.id!);
    const queueIds = groups.map((group) => group.queue!.id);
    const after = groups.map((group) => group.scanAfter);
    const rows = await this.#options.use((session) =>
      session.run(statements.scanReady, [queueIds, ids, after, page]),
    );
    this.#together(() => {
      for (const row of rows) {
        const group = groups[row.scan]!;
        if (group.id !== ids[row.scan]) continue;
        if (row.partitionId === null) {
          group.scanAfter = row.last ?? 0;
          continue;
        }
        const lane = this.#options.directory.meet(
          row.partitionId,
          group.queue!.id,
          row.name!,
          row.nextOffset!,
        );
        if (!lane) continue;
        const groupLane = this.#groupLane(group, lane);
        groupLane.leasedHere = false;
        this.#ready(groupLane, true);
      }
    });
  }

  // --------------------------------------------------------------------------------------------- serving

  #ready(groupLane: GroupLane, force = false): void {
    if (groupLane.state === "taking") {
      groupLane.hinted = true;
      return;
    }
    if (groupLane.leasedHere || groupLane.state === "ready" || groupLane.lane.gone) return;
    // A lane with a time to come is tried then, unless the database says that it is time.
    if (groupLane.dueAtMs !== undefined && !force && groupLane.blockedBy !== "lease_held") return;
    this.#due.clear(groupLane);
    groupLane.blockedBy = undefined;
    if (isPaused(groupLane)) {
      this.#hold(groupLane);
      return;
    }
    if (groupLane.named.length > 0) {
      this.#serveNamed(groupLane);
      return;
    }
    groupLane.state = "ready";
    groupLane.group.ring.push(groupLane);
    this.#serve(groupLane.group);
  }

  /** The lane is paused; it is looked at again when it no longer is. */
  #hold(groupLane: GroupLane): void {
    if (groupLane.state === "taking") return; // after that
    groupLane.state = "idle";
    groupLane.group.held.add(groupLane);
    for (const pop of groupLane.named.filter((each) => each.state === "RESOLVING")) {
      pop.reason = "paused";
      this.#parkOrEnd(pop);
    }
  }

  #together(makeReady: () => void): void {
    const served = new Set<Group>();
    this.#served = served;
    try {
      makeReady();
    } finally {
      this.#served = undefined;
    }
    for (const group of served) this.#serve(group);
  }

  #serve(group: Group): void {
    if (this.#served) {
      this.#served.add(group);
      return;
    }
    while (group.waitingFirst.length > 0 || group.waiting.size > 0) {
      const pop = group.waitingFirst[0] ?? firstOf(group.waiting)!;
      const lanes: GroupLane[] = [];
      while (lanes.length < pop.request.partitions) {
        const groupLane = group.ring.shift();
        if (!groupLane) break;
        groupLane.state = "taking";
        lanes.push(groupLane);
      }
      if (lanes.length === 0) return;
      this.#leave(pop);
      this.#take(pop, lanes);
    }
  }

  #serveNamed(groupLane: GroupLane): void {
    if (groupLane.state === "taking") return;
    const pop = groupLane.named.shift();
    if (!pop) return;
    groupLane.state = "taking";
    this.#take(pop, [groupLane]);
  }

  #take(pop: Pop, lanes: readonly GroupLane[]): void {
    if (pop.state === "PARKED") pop.move("woken");
    pop.move("lanes");
    for (const groupLane of lanes) groupLane.hinted = false;
    const operation: TakeOperation = { pop, token: newToken(), lanes };
    const taking = lanes.every((groupLane) => groupLane.cursorOpen)
      ? this.#options.takes.submit(operation)
      : this.#openCursors(pop, lanes).then(() => this.#options.takes.submit(operation));
    taking.then(
      (results) => this.taken(operation, results),
      (error) => this.#takeFailed(operation, error as Error),
    );
  }

  async #openCursors(pop: Pop, lanes: readonly GroupLane[]): Promise<void> {
    await Promise.all(
      lanes.map(async (groupLane) => {
        if (groupLane.cursorOpen) return;
        const { group } = groupLane;
        const { id } = group;
        let found = await this.#cursors.open(groupLane);
        if (found === "no group") {
          // It was deleted while it was known here. This pop records it anew, as a first pop does.
          if (group.id === id) group.id = undefined;
          if (group.id === undefined) await this.#openGroup(group, pop.request);
          found = await this.#cursors.open(groupLane);
        }
        groupLane.cursorOpen = found === "open";
        groupLane.cursorBusy = found === "busy";
        if (found === "no partition") this.#options.directory.forget(groupLane.lane);
      }),
    );
  }

  /** A call that was to lease lanes is back. */
  taken(operation: TakeOperation, results: TakeResult): void {
    const { pop, token } = operation;
    const taken: Taken[] = [];
    const again: GroupLane[] = [];
    for (const result of results) {
      const { groupLane } = result;
      groupLane.state = "idle";
      if (result.taken) taken.push(result.taken);
      if (result.vanished && !pop.request.autoAck) this.#options.giveBack([result.vanished], token);
      if (this.#after(result, pop)) again.push(groupLane);
    }
    if (taken.length > 0) {
      if (pop.move("leased") === "FETCHING") {
        pop.deliver({ status: "messages", taken, token, group: pop.group });
        pop.move("assembled");
      } else {
        this.#end(pop);
        if (!pop.request.autoAck) this.#options.giveBack(taken, token);
      }
    } else this.#tookNothing(pop, results);
    for (const groupLane of again) this.#ready(groupLane);
    for (const { groupLane } of results)
      if (groupLane.named.length > 0 && groupLane.state === "idle") this.#retryNamed(groupLane);
  }

  /** Notes what a take told about its lane; returns whether the lane is to be tried again at once. */
  #after(result: LaneResult, pop: Pop): boolean {
    const { groupLane, status, dueMs } = result;
    const { lane } = groupLane;
    groupLane.blockedBy = undefined;
    this.#due.clear(groupLane); // whatever was waited for before, this is newer
    lane.usedAtMs = this.#options.now();
    switch (status) {
      case TAKE.taken:
        lane.nextOffset = Math.max(lane.nextOffset, result.nextOffset);
        groupLane.takenTo = result.taken!.to;
        if (pop.request.autoAck) return lane.nextOffset > result.taken!.to || groupLane.hinted;
        groupLane.leasedHere = true;
        groupLane.blockedBy = "lease_held";
        this.#due.set(groupLane, lane.queue.options.leaseSeconds * 1000);
        return false;
      case TAKE.notTried:
        return true;
      case TAKE.empty:
        pop.reason = pop.request.partition === undefined ? pop.reason : "no_available_partition";
        return groupLane.hinted;
      case TAKE.missing:
        groupLane.cursorOpen = false;
        if (groupLane.cursorBusy) this.#due.set(groupLane, CURSOR_BUSY_MS);
        return !lane.gone && !groupLane.cursorBusy;
      case TAKE.exhausted:
        this.#due.set(groupLane, BURY_MS_MAX);
        this.#bury(groupLane);
        return false;
      case TAKE.busy:
        this.#due.set(groupLane, this.#options.busyPauseMs);
        return false;
      default:
        groupLane.blockedBy = BLOCKED_BY[status];
        pop.reason = groupLane.blockedBy ?? pop.reason;
        this.#due.set(groupLane, dueMs);
        return groupLane.hinted && status === TAKE.leased;
    }
  }

  #tookNothing(pop: Pop, results: TakeResult): void {
    if (pop.move("nothing") !== "RESOLVING") {
      this.#end(pop);
      return;
    }
    const { group, request } = pop;
    if (request.partition === undefined) {
      group.waitingFirst.push(pop);
      this.#serve(group);
      if (pop.state === "RESOLVING") this.#resolveAny(pop);
      return;
    }
    const { groupLane, status } = results[0]!;
    if (groupLane.lane.gone || group.id === undefined) {
      pop.reason = "partition_not_found";
      setImmediate(() => this.#begin(pop)); // there may be another by its name already
    } else if (status === TAKE.busy || status === TAKE.missing || status === TAKE.exhausted) {
      groupLane.named.unshift(pop); // not an answer: it is tried again in a moment
    } else {
      if (request.waitMs > 0) groupLane.named.unshift(pop);
      this.#parkOrEnd(pop);
    }
  }

  /** Pops that want this very lane and came while it was being taken. */
  #retryNamed(groupLane: GroupLane): void {
    const fresh = groupLane.named.findIndex((pop) => pop.state === "RESOLVING");
    if (fresh < 0 || groupLane.state !== "idle") return;
    if (groupLane.dueAtMs !== undefined && groupLane.blockedBy === undefined) return; // busy: its time comes
    if (isPaused(groupLane)) {
      this.#hold(groupLane);
      return;
    }
    const [pop] = groupLane.named.splice(fresh, 1);
    groupLane.state = "taking";
    this.#take(pop!, [groupLane]);
  }

  #takeFailed(operation: TakeOperation, error: Error): void {
    const { pop, lanes } = operation;
    pop.fail(error);
    this.#end(pop);
    this.#giveBackUnknown(operation);
    for (const groupLane of lanes) {
      groupLane.state = "idle";
      this.#due.set(groupLane, this.#options.busyPauseMs);
    }
  }

  /** A call that failed may have leased the lanes all the same: whatever has its token is given back. */
  #giveBackUnknown({ pop, lanes, token }: TakeOperation): void {
    if (pop.request.autoAck) return;
    this.#options.giveBack(
      lanes.map((groupLane) => ({
        groupLane,
        groupId: groupLane.group.id ?? 0,
        from: 0,
        to: 0,
        acked: [],
        segments: [],
      })),
      token,
    );
  }

  #bury(groupLane: GroupLane): void {
    const { lane, group } = groupLane;
    this.#options
      .use((session) =>
        session.run(statements.buryExpired, [lane.id, group.id ?? 0, lane.queue.options.retryLimit]),
      )
      .then(([status]) => {
        if (status === statements.BURY.buried) this.#options.buried(lane.queue);
      })
      .catch((error) => this.#options.log("pop.bury_failed", error))
      .finally(() => this.#due.set(groupLane, 0));
  }

  // ---------------------------------------------------------------------------------------------- ending

  #leave(pop: Pop): void {
    const { group } = pop;
    group.waiting.delete(pop);
    const first = group.waitingFirst.indexOf(pop);
    if (first >= 0) group.waitingFirst.splice(first, 1);
    const { partition } = pop.request;
    if (partition === undefined) return;
    const waiting = group.waitingForPartition.get(partition)?.filter((other) => other !== pop);
    if (waiting?.length === 0) group.waitingForPartition.delete(partition);
    else if (waiting) group.waitingForPartition.set(partition, waiting);
    const lane = group.queue?.lanes.get(partition);
    const named = lane && group.lanes.get(lane.id)?.named;
    const at = named?.indexOf(pop) ?? -1;
    if (named && at >= 0) named.splice(at, 1);
  }

  #deadline(pop: Pop, reason: EmptyReason = this.#reasonNow(pop)): void {
    if (!pop.isLive) return;
    this.#leave(pop);
    pop.reason = reason;
    pop.move("deadline");
  }

  /** Why a pop that has waited long enough got nothing. */
  #reasonNow({ group, request, reason }: Pop): EmptyReason {
    const lane = request.partition === undefined ? undefined : group.queue?.lanes.get(request.partition);
    const groupLane = lane && group.lanes.get(lane.id);
    const paused = groupLane
      ? isPaused(groupLane)
      : request.partition === undefined
        ? hasPaused(group)
        : isStopped(group);
    if (paused) return "paused";
    return reason === "no_available_partition" || reason === "paused" ? "timeout" : reason;
  }

  #hangUp(pop: Pop): void {
    if (!pop.isLive || pop.state === "FETCHING") return;
    this.#leave(pop);
    if (pop.move("hang-up") === "ABANDONED") this.#end(pop);
  }

  #end(pop: Pop): void {
    if (this.#live.delete(pop)) pop.group.pops--;
    if (this.#live.size === 0) this.#idle?.();
  }

  /** What a pop waited for failed. If it was served meanwhile, that is no longer its matter. */
  #failWaiting(pop: Pop, error: Error): void {
    if (pop.state !== "RESOLVING" && pop.state !== "PARKED") return;
    this.#leave(pop);
    pop.fail(error);
  }
}

/** Nothing but a message is missing: the lane's cursor is there, and nothing holds the lane up. */
function mayBoard(groupLane: GroupLane): boolean {
  const { delaySeconds, windowSeconds } = groupLane.lane.queue.options;
  return (
    groupLane.state === "idle" &&
    groupLane.cursorOpen &&
    !groupLane.leasedHere &&
    groupLane.dueAtMs === undefined &&
    delaySeconds === 0 &&
    windowSeconds === 0 &&
    !isPaused(groupLane)
  );
}

const firstOf = <T>(set: ReadonlySet<T>): T | undefined => set.values().next().value;

const randomPool = new Uint32Array(512);
let randomAt = randomPool.length;

function newToken(): number {
  if (randomAt >= randomPool.length) {
    randomFillSync(randomPool);
    randomAt = 0;
  }
  const high = randomPool[randomAt++]!;
  const low = randomPool[randomAt++]!;
  return (high * 2 ** 20 + (low & 0xfffff)) % LEASE_TOKEN_LIMIT;
}
