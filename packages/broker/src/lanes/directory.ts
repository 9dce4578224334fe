/**
 * The directory knows queues and lanes by name and by id. What it does not know it asks the database for,
 * many names in one call. It is a cache: a queue or partition that vanished is noticed by whoever uses it
 * (`forget`), or by a hint that its queue changed (`refresh`).
 */
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import { Lane } from "./lane.ts";
import { Queue, queueOptions, queuePauses } from "./queue.ts";

export interface LaneName {
  readonly queue: string;
  readonly partition: string;
}

interface Opening {
  readonly name: LaneName;
  readonly create: boolean;
  readonly resolve: (lane: Lane | undefined) => void;
  readonly reject: (error: Error) => void;
}

type UseSession = <T>(work: (session: Session) => Promise<T>) => Promise<T>;

const OPENED_AT_ONCE_MAX = 2_000;

export class Directory {
  readonly #use: UseSession;
  readonly #lanesMax: number;
  readonly #now: () => number;
  readonly #queues = new Map<string, Queue>();
  readonly #queuesById = new Map<number, Queue>();
  readonly #lanes = new Map<number, Lane>();
  readonly #queueGoneListeners: ((queue: Queue) => void)[] = [];
  readonly #queueReadListeners: ((queue: Queue) => void)[] = [];
  readonly #laneGoneListeners: ((lane: Lane) => void)[] = [];
  readonly #promises = new Map<string, Promise<Lane | undefined>>();
  readonly #changed = new Set<number>();
  #reading: Promise<unknown> = Promise.resolve();
  #hits = 0;
  #misses = 0;
  #openings: Opening[] = [];
  #opening = false;

  constructor(use: UseSession, options: { lanesMax: number; now: () => number }) {
    this.#use = use;
    this.#lanesMax = options.lanesMax;
    this.#now = options.now;
  }

  get laneCount(): number {
    return this.#lanes.size;
  }

  get queueCount(): number {
    return this.#queues.size;
  }

  /** How often a queue was asked for that was known, and that was not. */
  get lookups(): { readonly hits: number; readonly misses: number } {
    return { hits: this.#hits, misses: this.#misses };
  }

  queue(name: string): Queue | undefined {
    return this.#queues.get(name);
  }

  lane(queue: string, partition: string): Lane | undefined {
    return this.#queues.get(queue)?.lanes.get(partition);
  }

  laneById(id: number): Lane | undefined {
    return this.#lanes.get(id);
  }

  /** The listener hears of queues that were deleted, or deleted and made again under the same name. */
  onQueueGone(listener: (queue: Queue) => void): void {
    this.#queueGoneListeners.push(listener);
  }

  /** The listener hears of queues whose options and pauses were read again. */
  onQueueRead(listener: (queue: Queue) => void): void {
    this.#queueReadListeners.push(listener);
  }

  /** The listener hears of partitions that were deleted, deleted and made again under the same name, or forgotten. */
  onLaneGone(listener: (lane: Lane) => void): void {
    this.#laneGoneListeners.push(listener);
  }

  /**
   * The lane with this name, from the database where it is not known; undefined: there is none. All who ask
   * for a name at the same time get the same promise, so they go on in the order in which they asked.
   */
  open(name: LaneName, create: boolean): Promise<Lane | undefined> {
    const key = `${create} ${name.queue}\0${name.partition}`;
    let promise = this.#promises.get(key);
    if (!promise) {
      promise = new Promise<Lane | undefined>((resolve, reject) => {
        this.#openings.push({ name, create, resolve, reject });
      }).finally(() => this.#promises.delete(key));
      this.#promises.set(key, promise);
    }
    if (!this.#opening) {
      this.#opening = true;
      setImmediate(() => void this.#openAll());
    }
    return promise;
  }

  async #openAll(): Promise<void> {
    while (this.#openings.length > 0) {
      // Those who only look and those who make lanes go in calls of their own.
      const create = this.#openings[0]!.create;
      const batch: Opening[] = [];
      const rest: Opening[] = [];
      for (const opening of this.#openings) {
        (opening.create === create && batch.length < OPENED_AT_ONCE_MAX ? batch : rest).push(opening);
      }
      this.#openings = rest;
      try {
        const rows = await this.#use((session) =>
          session.run(statements.openLanes, [
            batch.map((opening) => opening.name.queue),
            batch.map((opening) => opening.name.partition),
            create,
          ]),
        );
        await this.#meetQueues(rows.map((row) => row.queueId));
        for (const row of rows) {
          const opening = batch[row.lane]!;
          opening.resolve(
            row.queueId === null || row.partitionId === null
              ? undefined
              : this.meet(row.partitionId, row.queueId, opening.name.partition, row.nextOffset ?? 0),
          );
        }
      } catch (error) {
        for (const opening of batch) opening.reject(error as Error);
      }
    }
    this.#opening = false;
  }

  /** A lane that the database named; undefined: its queue is not known here. */
  meet(id: number, queueId: number, name: string, nextOffset: number): Lane | undefined {
    const known = this.#lanes.get(id);
    if (known) {
      known.nextOffset = Math.max(known.nextOffset, nextOffset);
      return known;
    }
    const queue = this.#queuesById.get(queueId);
    if (!queue) return undefined;
    const replaced = queue.lanes.get(name);
    if (replaced) this.forget(replaced);
    const lane = new Lane(id, queue, name, nextOffset);
    lane.usedAtMs = this.#now();
    queue.lanes.set(name, lane);
    this.#lanes.set(id, lane);
    if (this.#lanes.size > this.#lanesMax) this.#trim();
    return lane;
  }

  /** The lane with this id, from the database where it is not known; undefined: there is none. */
  async openById(id: number): Promise<Lane | undefined> {
    const known = this.#lanes.get(id);
    if (known) return known;
    const [row] = await this.#use((session) => session.run(statements.readPartition, [id]));
    if (!row) return undefined;
    await this.#meetQueues([row.queueId]);
    return this.meet(id, row.queueId, row.name, row.nextOffset);
  }

  /** The queue with this id, read from the database where it is not known. */
  async queueById(id: number): Promise<Queue | undefined> {
    await this.#meetQueues([id]);
    return this.#queuesById.get(id);
  }

  async #meetQueues(ids: readonly (number | null)[]): Promise<void> {
    const wanted = [...new Set(ids)].filter((id) => id !== null);
    const isUnknown = (id: number): boolean => !this.#queuesById.has(id);
    const unknown = wanted.filter(isUnknown);
    this.#hits += wanted.length - unknown.length;
    this.#misses += unknown.length;
    if (unknown.length > 0) await this.#inTurn(() => this.#read(unknown.filter(isUnknown)));
  }

  /** These queues changed: their options are read again; those that are gone are forgotten. */
  refresh(ids: readonly number[]): Promise<void> {
    for (const id of ids) this.#changed.add(id);
    return this.#inTurn(async () => {
      const changed = [...this.#changed];
      this.#changed.clear();
      const known = changed.filter((id) => this.#queuesById.has(id));
      try {
        const found = await this.#read(known);
        for (const id of known) {
          const queue = this.#queuesById.get(id);
          if (queue && !found.has(id)) this.#forgetQueue(queue);
        }
      } catch (error) {
        for (const id of changed) this.#changed.add(id); // whoever comes next tries again
        throw error;
      }
    });
  }

  /** Reads follow one another: of two answers about a queue, the one that was asked for later counts. */
  #inTurn<T>(read: () => Promise<T>): Promise<T> {
    const turn = this.#reading.then(read);
    this.#reading = turn.catch(() => undefined);
    return turn;
  }

  async #read(ids: readonly number[]): Promise<Set<number>> {
    if (ids.length === 0) return new Set();
    const rows = await this.#use((session) => session.run(statements.readQueues, [ids]));
    const found = new Set<number>();
    for (const row of rows) {
      const id = row.id as number;
      const name = row.name as string;
      found.add(id);
      const known = this.#queuesById.get(id);
      if (known) {
        known.options = queueOptions(row);
        known.pauses = queuePauses(row);
        for (const listener of this.#queueReadListeners) listener(known);
        continue;
      }
      const replaced = this.#queues.get(name);
      if (replaced) this.#forgetQueue(replaced);
      const queue = new Queue(id, name, queueOptions(row), queuePauses(row));
      this.#queues.set(name, queue);
      this.#queuesById.set(id, queue);
    }
    return found;
  }

  /** The partition is no longer in the database, or no longer remembered: whoever needs it looks it up again. */
  forget(lane: Lane): void {
    lane.gone = true;
    this.#lanes.delete(lane.id);
    if (lane.queue.lanes.get(lane.name) === lane) lane.queue.lanes.delete(lane.name);
    for (const listener of this.#laneGoneListeners) listener(lane);
  }

  #forgetQueue(queue: Queue): void {
    for (const lane of [...queue.lanes.values()]) this.forget(lane);
    this.#queuesById.delete(queue.id);
    if (this.#queues.get(queue.name) === queue) this.#queues.delete(queue.name);
    for (const listener of this.#queueGoneListeners) listener(queue);
  }

  /** Everything may be wrong: the broker slept through more than the hints remember, or met another server. */
  forgetAll(): void {
    for (const queue of [...this.#queuesById.values()]) this.#forgetQueue(queue);
  }

  /** Drops the idle half of the lanes, the longest unused first. */
  #trim(): void {
    const idle = [...this.#lanes.values()]
      .filter((lane) => lane.pending.length === 0 && lane.turn === undefined)
      .sort((a, b) => a.usedAtMs - b.usedAtMs);
    for (const lane of idle.slice(0, this.#lanesMax >> 1)) this.forget(lane);
  }
}
