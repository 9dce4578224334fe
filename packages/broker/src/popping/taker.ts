/** The taker leases lanes for pops, delivers what they hold, and notes what the database said about them. */
import type { Batcher } from "../batching/batcher.ts";
import type { Directory } from "../lanes/directory.ts";
import type { Queue } from "../lanes/queue.ts";
import { PostgresError } from "../postgres/errors.ts";
import type { Session } from "../postgres/session.ts";
import { BURY, buryExpired, TAKE } from "../postgres/statements.ts";
import { CursorOpener } from "./cursor-opener.ts";
import { BLOCKED_BY } from "./empty-reason.ts";
import type { GroupLane } from "./group-lane.ts";
import type { GroupOpener } from "./group-opener.ts";
import { newToken } from "./lease-token.ts";
import type { LivePops } from "./live-pops.ts";
import type { Pop, Taken } from "./pop.ts";
import type { ReadyLanes } from "./ready-lanes.ts";
import type { Resolver } from "./resolver.ts";
import type { LaneResult, TakeOperation, TakeResult } from "./take-kind.ts";

export interface TakerOptions {
  readonly directory: Directory;
  readonly takes: Batcher<TakeOperation, TakeResult>;
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  /** Messages were leased to a pop that is gone: end the leases. */
  readonly giveBack: (taken: readonly Taken[], token: number) => void;
  /** A message went to the dead letters because leases on it ran out. */
  readonly buried: (queue: Queue) => void;
  readonly busyPauseMs: number;
  readonly log: (message: string, error: unknown) => void;
}

// Each attempt to make a cursor that somebody's transaction is making keeps a connection for a moment.
const CURSOR_BUSY_MS = 500;
// A lane whose first message is being buried is looked at again at the latest after this.
const BURY_MS_MAX = 5_000;

export class Taker {
  readonly #options: TakerOptions;
  readonly #cursors: CursorOpener;
  readonly #opener: GroupOpener;
  readonly #lanes: ReadyLanes;
  readonly #live: LivePops;
  readonly #resolver: Resolver;

  constructor(
    options: TakerOptions,
    opener: GroupOpener,
    lanes: ReadyLanes,
    live: LivePops,
    resolver: Resolver,
  ) {
    this.#options = options;
    this.#cursors = new CursorOpener(options.use);
    this.#opener = opener;
    this.#lanes = lanes;
    this.#live = live;
    this.#resolver = resolver;
  }

  take(pop: Pop, lanes: readonly GroupLane[]): void {
    pop.lease();
    for (const groupLane of lanes) groupLane.hinted = false;
    const operation: TakeOperation = { pop, token: newToken(), lanes };
    const taking = lanes.every((groupLane) => groupLane.cursorOpen)
      ? this.#options.takes.submit(operation)
      : this.#openCursors(pop, lanes).then(() => this.#options.takes.submit(operation));
    taking.then(
      (results) => this.taken(operation, results),
      (error) => this.#failed(operation, error as Error),
    );
  }

  /** The lane is about to have work for the group: its cursor is opened meanwhile. What comes of it the take will find. */
  openAhead(groupLane: GroupLane): void {
    if (groupLane.cursorOpen) return;
    this.#cursors.open(groupLane).then(
      (found) => {
        if (found === "open") groupLane.cursorOpen = true;
      },
      () => undefined,
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
          if (group.id === undefined) await this.#opener.open(group, pop.request);
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
      if (this.#note(result, pop)) again.push(groupLane);
    }
    if (taken.length > 0) {
      if (pop.move("leased") === "FETCHING") {
        pop.deliver({ status: "messages", taken, token, group: pop.group });
        pop.move("assembled");
      } else {
        this.#live.end(pop);
        if (!pop.request.autoAck) this.#options.giveBack(taken, token);
      }
    } else this.#tookNothing(pop, results);
    for (const groupLane of again) this.#lanes.ready(groupLane);
    for (const { groupLane } of results)
      if (groupLane.named.length > 0 && groupLane.state === "idle") this.#lanes.retryNamed(groupLane);
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

  /** Notes what a take told about its lane; returns whether the lane is to be tried again at once. */
  #note(result: LaneResult, pop: Pop): boolean {
    const { groupLane, status, dueMs } = result;
    const { lane } = groupLane;
    groupLane.blockedBy = undefined;
    this.#lanes.clearTime(groupLane); // whatever was waited for before, this is newer
    this.#options.directory.used(lane);
    switch (status) {
      case TAKE.taken:
        lane.nextOffset = Math.max(lane.nextOffset, result.nextOffset);
        groupLane.takenTo = result.taken!.to;
        if (pop.request.autoAck) return lane.nextOffset > result.taken!.to || groupLane.hinted;
        groupLane.leasedHere = true;
        groupLane.blockedBy = "lease_held";
        this.#lanes.readyIn(groupLane, lane.queue.options.leaseSeconds * 1000);
        return false;
      case TAKE.notTried:
        return true;
      case TAKE.empty:
        groupLane.takenTo = Math.max(groupLane.takenTo, result.nextOffset);
        pop.reason = pop.request.partition === undefined ? pop.reason : "no_available_partition";
        return groupLane.hinted;
      case TAKE.missing:
        groupLane.cursorOpen = false;
        if (groupLane.cursorBusy) this.#lanes.readyIn(groupLane, CURSOR_BUSY_MS);
        return !lane.gone && !groupLane.cursorBusy;
      case TAKE.exhausted:
        this.#lanes.readyIn(groupLane, BURY_MS_MAX);
        this.#bury(groupLane);
        return false;
      case TAKE.busy:
        this.#lanes.readyIn(groupLane, this.#options.busyPauseMs);
        return false;
      default:
        groupLane.blockedBy = BLOCKED_BY[status];
        pop.reason = groupLane.blockedBy ?? pop.reason;
        this.#lanes.readyIn(groupLane, dueMs);
        return groupLane.hinted && status === TAKE.leased;
    }
  }

  #tookNothing(pop: Pop, results: TakeResult): void {
    if (pop.move("nothing") !== "RESOLVING") {
      this.#live.end(pop);
      return;
    }
    const { group, request } = pop;
    if (request.partition === undefined) {
      this.#resolver.resume(pop);
      return;
    }
    const { groupLane, status } = results[0]!;
    if (groupLane.lane.gone || group.id === undefined) {
      pop.reason = "partition_not_found";
      this.#resolver.beginSoon(pop); // there may be another by its name already
    } else if (status === TAKE.busy || status === TAKE.missing || status === TAKE.exhausted) {
      groupLane.named.unshift(pop); // not an answer: it is tried again in a moment
    } else {
      if (request.waitMs > 0) groupLane.named.unshift(pop);
      this.#live.parkOrEnd(pop);
    }
  }

  #failed(operation: TakeOperation, error: Error): void {
    const { pop, lanes } = operation;
    pop.fail(error);
    this.#live.end(pop);
    this.#giveBackUnknown(operation);
    for (const groupLane of lanes) {
      groupLane.state = "idle";
      this.#lanes.readyIn(groupLane, this.#options.busyPauseMs);
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
      .use((session) => session.run(buryExpired, [lane.id, group.id ?? 0, lane.queue.options.retryLimit]))
      .then(([status]) => {
        if (status === BURY.buried) this.#options.buried(lane.queue);
      })
      .catch((error) => this.#options.log("pop.bury_failed", error))
      .finally(() => this.#lanes.readyIn(groupLane, 0));
  }
}
