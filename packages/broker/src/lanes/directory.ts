/**
 * The directory knows queues and lanes by name and by id. What it does not know it asks the database for,
 * many names in one call. It is a cache: a queue or partition that vanished is noticed by whoever uses it
 * (`forget`), or by a hint that its queue changed (`refresh`).
 */
import { LinkedList } from "../linked-list.ts";
import { type Asked, Gathering } from "../postgres/gathering.ts";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import { Lane } from "./lane.ts";
import { Queue, queueOptions, queuePauses } from "./queue.ts";

export interface LaneName {
  readonly queue: string;
  readonly partition: string;
}

type Opening = Asked<LaneName, Lane | undefined>;

export interface DirectoryOptions {
  readonly lanesMax: number;
  /** The ids of the groups that wait for a message of this lane, or of any of its queue. */
  readonly waitingFor: (name: LaneName) => readonly number[];
}

type UseSession = <T>(work: (session: Session) => Promise<T>) => Promise<T>;

const OPENED_AT_ONCE_MAX = 2_000;

export class Directory {
  readonly #use: UseSession;
  readonly #options: DirectoryOptions;
  readonly #queues = new Map<string, Queue>();
  readonly #queuesById = new Map<number, Queue>();
  readonly #lanes = new Map<number, Lane>();
  readonly #byUse = new LinkedList<Lane>(); // the longest unused first
  readonly #queueGoneListeners: ((queue: Queue) => void)[] = [];
  readonly #queueReadListeners: ((queue: Queue) => void)[] = [];
  readonly #laneGoneListeners: ((lane: Lane) => void)[] = [];
  readonly #promises = new Map<string, Promise<Lane | undefined>>();
  readonly #unknown = new Set<number>();
  readonly #changed = new Set<number>();
  #reading: Promise<unknown> = Promise.resolve();
  readonly #finding = this.#gathering(false);
  readonly #making = this.#gathering(true);
  #hits = 0;
  #misses = 0;

  constructor(use: UseSession, options: DirectoryOptions) {
    this.#use = use;
    this.#options = options;
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
    const lane = this.#queues.get(queue)?.lanes.get(partition);
    if (lane) this.used(lane);
    return lane;
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
      promise = (create ? this.#making : this.#finding).ask(name).finally(() => this.#promises.delete(key));
      this.#promises.set(key, promise);
    }
    return promise;
  }

  #gathering(create: boolean): Gathering<LaneName, Lane | undefined> {
    return new Gathering({
      call: (openings) => this.#openAll(openings, create),
      atOnce: () => OPENED_AT_ONCE_MAX,
    });
  }

  async #openAll(openings: readonly Opening[], create: boolean): Promise<void> {
    const queues = openings.map(({ question }) => question.queue);
    const partitions = openings.map(({ question }) => question.partition);
    const groups = new Set(
      create ? openings.flatMap(({ question }) => this.#options.waitingFor(question)) : [],
    );
    const rows = await this.#use((session) =>
      session.run(statements.openLanes, [queues, partitions, create, [...groups]]),
    );
    await this.#meetQueues(rows.map((row) => row.queueId));
    for (const row of rows) {
      const { question, resolve } = openings[row.lane]!;
      const lane =
        row.queueId === null || row.partitionId === null
          ? undefined
          : this.meet(row.partitionId, row.queueId, question.partition, row.nextOffset ?? 0);
      if (lane && row.isNew && groups.size > 0) lane.madeFor = groups;
      resolve(lane);
    }
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
    lane.link = this.#byUse.push(lane);
    queue.lanes.set(name, lane);
    this.#lanes.set(id, lane);
    this.#makeRoom(lane);
    return lane;
  }

  /** The lane is one of the last to be forgotten. */
  used(lane: Lane): void {
    if (lane.link) this.#byUse.moveToEnd(lane.link);
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
    const unknown = wanted.filter((id) => !this.#queuesById.has(id));
    this.#hits += wanted.length - unknown.length;
    this.#misses += unknown.length;
    if (unknown.length === 0) return;
    for (const id of unknown) this.#unknown.add(id);
    await this.#inTurn(() => this.#readAll(this.#unknown, (id) => !this.#queuesById.has(id)));
  }

  /** These queues changed: their options are read again; those that are gone are forgotten. */
  refresh(ids: readonly number[]): Promise<void> {
    for (const id of ids) this.#changed.add(id);
    return this.#inTurn(async () => {
      const known = [...this.#changed].filter((id) => this.#queuesById.has(id));
      const found = await this.#readAll(this.#changed, (id) => this.#queuesById.has(id));
      for (const id of known) {
        const queue = this.#queuesById.get(id);
        if (queue && !found.has(id)) this.#forgetQueue(queue);
      }
    });
  }

  /** Reads follow one another: of two answers about a queue, the one that was asked for later counts. */
  #inTurn<T>(read: () => Promise<T>): Promise<T> {
    const turn = this.#reading.then(read);
    this.#reading = turn.catch(() => undefined);
    return turn;
  }

  /** Reads those that are to be read, for everybody who waits for a turn. Where it fails, whoever comes next tries again. */
  async #readAll(ids: Set<number>, isToRead: (id: number) => boolean): Promise<Set<number>> {
    const all = [...ids];
    ids.clear();
    try {
      return await this.#read(all.filter(isToRead));
    } catch (error) {
      for (const id of all) ids.add(id);
      throw error;
    }
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
    if (lane.link) this.#byUse.remove(lane.link);
    lane.link = undefined;
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

  /** Forgets the lanes that are unused for longest, but none that is appended to, nor this one. */
  #makeRoom(met: Lane): void {
    while (this.#lanes.size > this.#options.lanesMax) {
      const oldest = this.#byUse.first!;
      if (oldest === met) return;
      if (oldest.pending.length > 0 || oldest.turn) this.used(oldest);
      else this.forget(oldest);
    }
  }
}
