/** The groups that pop here, or popped here not long ago. */
import { Group } from "./group.ts";
import { ReadyRing, type ReadyRingOptions } from "./ready-ring.ts";

const NONE: readonly Group[] = [];

export class Groups {
  readonly #ringOptions: ReadyRingOptions;
  readonly #byQueue = new Map<string, Map<string, Group>>();

  constructor(ringOptions: ReadyRingOptions) {
    this.#ringOptions = ringOptions;
  }

  /** The ids of the queues that somebody reads here. */
  get queueIds(): number[] {
    return [...this.all()].flatMap((group) => (group.queue ? [group.queue.id] : []));
  }

  /** Somebody waits for a queue that does not exist yet. */
  get waitForQueue(): boolean {
    for (const group of this.all()) if (group.id === undefined && group.pops > 0) return true;
    return false;
  }

  *all(): Generator<Group> {
    for (const groups of this.#byQueue.values()) yield* groups.values();
  }

  of(queueName: string): Iterable<Group> {
    return this.#byQueue.get(queueName)?.values() ?? NONE;
  }

  get(queueName: string, name: string): Group | undefined {
    return this.#byQueue.get(queueName)?.get(name);
  }

  /** The group, from now on known. */
  meet(queueName: string, name: string): Group {
    const groups = this.#byQueue.get(queueName) ?? new Map<string, Group>();
    const group = groups.get(name) ?? new Group(queueName, name, new ReadyRing(this.#ringOptions));
    this.#byQueue.set(queueName, groups.set(name, group));
    return group;
  }

  drop(group: Group): void {
    group.forget();
    const groups = this.#byQueue.get(group.queueName);
    groups?.delete(group.name);
    if (groups?.size === 0) {
      this.#byQueue.delete(group.queueName);
      if (group.queue) group.queue.hasReaders = false;
    }
  }
}
