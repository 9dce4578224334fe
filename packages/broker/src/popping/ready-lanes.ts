/**
 * Brings lanes that may have work and pops that wait for them together: which lane is ready, when another one will
 * be, and which pop gets it.
 */
import { DueList } from "./due-list.ts";
import type { Group } from "./group.ts";
import type { GroupLane } from "./group-lane.ts";
import type { LivePops } from "./live-pops.ts";
import { isPaused, pausesChanged } from "./pausing.ts";
import type { Pop } from "./pop.ts";

export class ReadyLanes {
  readonly #live: LivePops;
  readonly #take: (pop: Pop, lanes: readonly GroupLane[]) => void;
  readonly #due: DueList<GroupLane>;
  /** Groups to be served when all the lanes that were found together are ready; undefined: at once. */
  #served: Set<Group> | undefined;

  /** `take`: the pop gets these lanes, which are `taking` from now on. */
  constructor(now: () => number, live: LivePops, take: (pop: Pop, lanes: readonly GroupLane[]) => void) {
    this.#live = live;
    this.#take = take;
    this.#due = new DueList(now, (groupLane) => {
      groupLane.leasedHere = false;
      this.ready(groupLane);
    });
  }

  stop(): void {
    this.#due.stop();
  }

  /** The lane may have work. `force`: the database said so just now, whatever is believed here. */
  ready(groupLane: GroupLane, force = false): void {
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
    this.serve(groupLane.group);
  }

  /** The database said just now that the lane may have work; what is believed of leases here is void. */
  found(groupLane: GroupLane): void {
    groupLane.leasedHere = false;
    this.ready(groupLane, true);
  }

  /** The lane may have work after this time. */
  readyIn(groupLane: GroupLane, inMs: number): void {
    this.#due.set(groupLane, inMs);
  }

  /** No time is known any more at which the lane may have work. */
  clearTime(groupLane: GroupLane): void {
    this.#due.clear(groupLane);
  }

  /** The lease ended: the lane is free, and may have a rest to deliver now or after a pause. */
  released(groupLane: GroupLane, hasRest: boolean, pauseMs: number): void {
    groupLane.leasedHere = false;
    this.#due.clear(groupLane);
    if (pauseMs > 0 && groupLane.state === "idle") {
      groupLane.blockedBy = "retry_delay";
      this.#due.set(groupLane, pauseMs);
    } else if (hasRest || groupLane.named.length > 0) this.ready(groupLane);
  }

  /** Leases and delays of the group are over. */
  unblock(group: Group): void {
    for (const groupLane of group.lanes.values()) {
      groupLane.leasedHere = false;
      groupLane.blockedBy = undefined;
      this.#due.clear(groupLane);
    }
  }

  pausesChanged(group: Group): void {
    const { paused, resumed } = pausesChanged(group);
    for (const groupLane of paused) this.#hold(groupLane);
    this.together(() => {
      for (const groupLane of resumed) {
        group.held.delete(groupLane);
        this.ready(groupLane, true);
      }
    });
  }

  /** The lane is paused; it is looked at again when it no longer is. */
  #hold(groupLane: GroupLane): void {
    if (groupLane.state === "taking") return; // after that
    groupLane.state = "idle";
    groupLane.group.held.add(groupLane);
    for (const pop of groupLane.named.filter((each) => each.state === "RESOLVING")) {
      pop.reason = "paused";
      this.#live.parkOrEnd(pop);
    }
  }

  /** Lanes that are made ready together are served after that, so that one pop may get several of them. */
  together(makeReady: () => void): void {
    const served = new Set<Group>();
    this.#served = served;
    try {
      makeReady();
    } finally {
      this.#served = undefined;
    }
    for (const group of served) this.serve(group);
  }

  /** Gives ready lanes to the group's pops of any lane. */
  serve(group: Group): void {
    if (this.#served) {
      this.#served.add(group);
      return;
    }
    if (group.isBlind) return;
    for (let pop = group.firstWaiting; pop; pop = group.firstWaiting) {
      const lanes: GroupLane[] = [];
      while (lanes.length < pop.request.partitions) {
        const groupLane = group.ring.shift();
        if (!groupLane) break;
        groupLane.state = "taking";
        lanes.push(groupLane);
      }
      if (lanes.length === 0) return;
      group.leave(pop);
      this.#take(pop, lanes);
    }
  }

  /** The pop wants this very lane, after all who want it already. */
  want(pop: Pop, groupLane: GroupLane): void {
    groupLane.named.push(pop);
    if (isPaused(groupLane)) this.#hold(groupLane);
    else this.#serveNamed(groupLane);
  }

  #serveNamed(groupLane: GroupLane): void {
    if (groupLane.state === "taking") return;
    const pop = groupLane.named.shift();
    if (!pop) return;
    groupLane.state = "taking";
    this.#take(pop, [groupLane]);
  }

  /** Pops that want this very lane and came while it was being taken. */
  retryNamed(groupLane: GroupLane): void {
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
}
