/** The resolver looks for a pop's lanes: in memory, and in the database where memory knows nothing yet. */
import type { Directory } from "../lanes/directory.ts";
import type { Lane } from "../lanes/lane.ts";
import type { Group } from "./group.ts";
import type { GroupLane } from "./group-lane.ts";
import type { GroupOpener } from "./group-opener.ts";
import type { GroupScan } from "./group-scan.ts";
import type { LivePops } from "./live-pops.ts";
import { isStopped } from "./pausing.ts";
import type { Pop } from "./pop.ts";
import type { ReadyLanes } from "./ready-lanes.ts";

export class Resolver {
  readonly #directory: Directory;
  readonly #opener: GroupOpener;
  readonly #scan: GroupScan;
  readonly #lanes: ReadyLanes;
  readonly #live: LivePops;

  constructor(directory: Directory, opener: GroupOpener, scan: GroupScan, lanes: ReadyLanes, live: LivePops) {
    this.#directory = directory;
    this.#opener = opener;
    this.#scan = scan;
    this.#lanes = lanes;
    this.#live = live;
  }

  begin(pop: Pop): void {
    if (pop.group.id !== undefined) {
      this.#resolve(pop);
      return;
    }
    this.#opener.open(pop.group, pop.request).then(
      () => this.#resolve(pop),
      (error) => pop.fail(error as Error),
    );
  }

  /** When others have heard of what made this pop begin again. */
  beginSoon(pop: Pop): void {
    setImmediate(() => this.begin(pop));
  }

  /** A group that starts at a point in time is recorded all the same: what is pushed from now on is for it. */
  refuse(pop: Pop): void {
    const { group, request } = pop;
    const end = (): void => {
      if (pop.isLive) this.#live.deadline(pop, "paused");
    };
    if (group.id !== undefined || request.subscription.mode === "all") end();
    else this.#opener.open(group, request).then(end, end);
  }

  /** A pop of any lane was served in vain. */
  resume(pop: Pop): void {
    const { group } = pop;
    group.waitFirst(pop);
    this.#lanes.serve(group);
    if (pop.state === "RESOLVING") this.#resolveAny(pop);
  }

  /** What is known about the group's lanes is no longer true. Pops that were on their way begin again. */
  forget(group: Group): void {
    group.forget();
    for (const pop of group.waitingForPartitions) {
      if (pop.state !== "RESOLVING") continue;
      group.leave(pop);
      this.beginSoon(pop); // when the group is what it will be
    }
  }

  /** Pops that are parked for this very lane wait for the next one with its name; others look for that at once. */
  forgetLane(groupLane: GroupLane): void {
    const { group } = groupLane;
    group.drop(groupLane);
    for (const pop of groupLane.named.splice(0)) {
      if (pop.state === "PARKED") group.waitForPartition(pop.request.partition!, pop);
      else this.beginSoon(pop);
    }
  }

  #resolve(pop: Pop): void {
    if (pop.state !== "RESOLVING") return;
    const { group, request } = pop;
    if (group.id === undefined) {
      if (request.partition === undefined) group.wait(pop);
      else group.waitForPartition(request.partition, pop);
      this.#live.parkOrEnd(pop);
    } else if (request.partition !== undefined) this.#resolveNamed(pop, request.partition);
    else {
      group.wait(pop);
      this.#lanes.serve(group);
      if (pop.state === "RESOLVING") this.#resolveAny(pop);
    }
  }

  /** Memory knows of no lane for this pop. */
  #resolveAny(pop: Pop): void {
    const { group } = pop;
    if (group.id === undefined) {
      this.#live.parkOrEnd(pop); // the queue was deleted meanwhile
      return;
    }
    if (isStopped(group) && pop.request.waitMs === 0) {
      this.#live.parkOrEnd(pop);
      return;
    }
    const looked = group.warm && pop.request.waitMs > 0 ? undefined : this.#scan.lookFor(group);
    if (pop.request.waitMs > 0) this.#live.parkOrEnd(pop);
    looked?.then(
      () => {
        if (pop.state === "RESOLVING") this.#live.parkOrEnd(pop);
      },
      (error) => this.#live.failWaiting(pop, error as Error),
    );
  }

  #resolveNamed(pop: Pop, partition: string): void {
    const { queue } = pop.request;
    const lane = this.#directory.lane(queue, partition);
    if (lane && !lane.gone) {
      this.#enqueueNamed(pop, lane);
      return;
    }
    this.#directory.open({ queue, partition }, false).then(
      (found) => {
        if (pop.state !== "RESOLVING") return;
        if (found) this.#enqueueNamed(pop, found);
        else {
          pop.group.waitForPartition(partition, pop);
          this.#live.parkOrEnd(pop);
        }
      },
      (error) => pop.fail(error as Error),
    );
  }

  #enqueueNamed(pop: Pop, lane: Lane): void {
    const { group } = pop;
    if (group.queue === lane.queue) {
      this.#lanes.want(pop, group.meet(lane));
      return;
    }
    // The queue was deleted and made again while this pop was on its way.
    group.id = undefined;
    this.#opener.open(group, pop.request).then(
      () => {
        if (pop.state !== "RESOLVING") return;
        if (group.queue === lane.queue) this.#enqueueNamed(pop, lane);
        else this.#resolve(pop);
      },
      (error) => pop.fail(error as Error),
    );
  }
}
