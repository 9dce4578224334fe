/** The pops under way: who there are, and how each of them comes to wait and to end. */
import { blockedBy, type EmptyReason, reasonNow } from "./empty-reason.ts";
import type { Group } from "./group.ts";
import type { Pop } from "./pop.ts";

export class LivePops {
  readonly #foundNothing: (group: Group) => void;
  readonly #pops = new Set<Pop>();
  #idle: (() => void) | undefined;

  /** `foundNothing`: a pop of any lane found nothing. */
  constructor(foundNothing: (group: Group) => void) {
    this.#foundNothing = foundNothing;
  }

  get size(): number {
    return this.#pops.size;
  }

  get parkedCount(): number {
    let parked = 0;
    for (const pop of this.#pops) if (pop.state === "PARKED") parked++;
    return parked;
  }

  /** How many pops are parked, by the id of their queue. */
  parkedByQueue(): Map<number, number> {
    const parked = new Map<number, number>();
    for (const { state, group } of this.#pops) {
      if (state === "PARKED" && group.queue)
        parked.set(group.queue.id, (parked.get(group.queue.id) ?? 0) + 1);
    }
    return parked;
  }

  add(pop: Pop): void {
    this.#pops.add(pop);
    pop.group.pops++;
  }

  end(pop: Pop): void {
    if (this.#pops.delete(pop)) pop.group.pops--;
    if (this.#pops.size === 0) this.#idle?.();
  }

  /** Nothing for this pop now: it waits, or it is answered. */
  parkOrEnd(pop: Pop): void {
    if (pop.request.partition === undefined) {
      this.#foundNothing(pop.group);
      pop.reason = blockedBy(pop.group) ?? "no_available_partition";
    }
    if (pop.request.waitMs > 0) pop.move("park");
    else {
      pop.group.leave(pop);
      pop.move("nothing");
    }
  }

  deadline(pop: Pop, reason: EmptyReason = reasonNow(pop)): void {
    if (!pop.isLive) return;
    pop.group.leave(pop);
    pop.reason = reason;
    pop.move("deadline");
  }

  deadlineOfAll(reason?: EmptyReason): void {
    for (const pop of [...this.#pops]) this.deadline(pop, reason);
  }

  hangUp(pop: Pop): void {
    if (!pop.isLive || pop.state === "FETCHING") return;
    pop.group.leave(pop);
    if (pop.move("hang-up") === "ABANDONED") this.end(pop);
  }

  /** What a pop waited for failed. If it was served meanwhile, that is no longer its matter. */
  failWaiting(pop: Pop, error: Error): void {
    if (pop.state !== "RESOLVING" && pop.state !== "PARKED") return;
    pop.group.leave(pop);
    pop.fail(error);
  }

  /** Resolves when there is none. */
  allEnded(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle = resolve;
      if (this.#pops.size === 0) resolve();
    });
  }
}
