/**
 * The bus carries hints between workers and brokers through PostgreSQL's LISTEN/NOTIFY, on a connection of
 * its own. Everything is correct without it, only slower: whoever misses a hint finds it by looking.
 *
 *   { from, lanes?: [[partition, queue, next offset], …], released?: [partition, …], queues?: [id, …],
 *     rewritten?: [partition, …], state?, nudged?: [queue name, …], hello?, reads?: [group, …] }
 *
 * Hints gather while a notification is under way, and until some milliseconds after it began, and go together in the
 * next: to notify is a commit, and wakes everybody. Nothing is sent while nobody else listens: workers say hello when
 * they come, and every few seconds that they are there and which groups read there.
 *
 * Something between may swallow notifications. A pooler that lends sessions by the transaction does: who listens there
 * leaves a session behind that listens for nobody, and hears itself only by chance. So the bus does not even try
 * where the session says that it is pooled. Elsewhere a worker that does not hear itself any more knows that it
 * hears nobody. In both cases the bus is silent, and says so.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Session } from "../postgres/session.ts";
import { notify } from "../postgres/statements.ts";
import { Peers } from "./peers.ts";

export interface BusListener {
  appended(partition: number, queue: number, nextOffset: number): void;
  released(partition: number): void;
  queuesChanged(ids: readonly number[]): void;
  /** Segments of these lanes were written anew. */
  rewritten(partitions: readonly number[]): void;
  /** A mode of maintenance was switched. */
  stateChanged(): void;
  /** Somebody asks everybody to look at this queue. */
  nudged(queue: string): void;
  /** Notifications may have been missed. */
  reconnected(): void;
}

export interface BusOptions {
  readonly id: string;
  readonly connect: () => Promise<Session>;
  readonly listener: BusListener;
  /** How long after the begin of a notification the next one begins, unless there is enough to fill it. */
  readonly gatherMs: number;
  /** The ids of the groups that pop here, or did a moment ago. */
  readonly groupsRead: () => readonly number[];
  readonly now: () => number;
  readonly log: (level: "info" | "warn", message: string) => void;
}

interface BusMessage {
  readonly from?: string;
  readonly lanes?: readonly (readonly [number, number, number])[];
  readonly released?: readonly number[];
  readonly queues?: readonly number[];
  readonly rewritten?: readonly number[];
  readonly state?: boolean;
  readonly nudged?: readonly string[];
  readonly hello?: boolean;
  readonly reads?: readonly number[];
}

const CHANNEL = "queen";
const BY_LOOKING = "new messages of other brokers are found by looking";
const HERE_EVERY_MS = 5_000;
// Two times of hearing nothing of what was sent, on a busy machine.
const HEAR_SELF_MS = 2 * HERE_EVERY_MS;
// A notification holds less than 8,000 bytes.
const LANES_PER_MESSAGE_MAX = 150;
// Of the groups beyond it nobody is told: others take their lanes for their own.
const GROUPS_PER_MESSAGE_MAX = 300;
const PAUSE_MS_MIN = 100;
const PAUSE_MS_MAX = 2_000;

export type BusState = "off" | "connecting" | "listening" | "silent";

export class Bus {
  readonly peers: Peers;
  readonly #options: BusOptions;
  #session: Session | undefined;
  #lanes = new Map<number, readonly [number, number, number]>();
  #released = new Set<number>();
  #nudged = new Set<string>();
  #readsMore = false;
  #heardCount = 0;
  #sending = false;
  /** What was to be said while something else was being sent. */
  #owed: BusMessage | undefined;
  /** Before that, since when it listens. */
  #heardSelfAtMs = 0;
  #isPooled = false;
  #heartbeat: NodeJS.Timeout | undefined;
  #pause: NodeJS.Timeout | undefined;
  #stopped = true;

  constructor(options: BusOptions) {
    this.#options = options;
    this.peers = new Peers(options.id, options.now);
  }

  get state(): BusState {
    if (this.#stopped) return "off";
    if (this.#isPooled) return "silent";
    if (!this.#session) return "connecting";
    return this.#options.now() - this.#heardSelfAtMs > HEAR_SELF_MS ? "silent" : "listening";
  }

  /** How often any peer was heard. */
  get heardCount(): number {
    return this.#heardCount;
  }

  start(): void {
    this.#stopped = false;
    void this.#listen(PAUSE_MS_MIN);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#heartbeat);
    clearTimeout(this.#pause);
    await this.#session?.close();
  }

  /** The database does not answer: the connection is made anew. */
  cut(reason: Error): void {
    this.#session?.destroy(reason);
  }

  appended(partition: number, queue: number, nextOffset: number): void {
    if (this.peers.isEmpty) return;
    this.#lanes.set(partition, [partition, queue, nextOffset]);
    this.#flush();
  }

  released(partition: number): void {
    if (this.peers.isEmpty) return;
    this.#released.add(partition);
    this.#flush();
  }

  nudged(queue: string): void {
    if (this.peers.isEmpty) return;
    this.#nudged.add(queue);
    this.#flush();
  }

  /** A group pops here that was not known before: others need not wait for the next sign of life to hear of it. */
  beganToRead(): void {
    if (this.peers.isEmpty) return;
    this.#readsMore = true;
    this.#flush();
  }

  async #listen(pauseMs: number): Promise<void> {
    const { connect, listener, log } = this.#options;
    try {
      const session = await connect();
      this.#isPooled = session.isPooled;
      if (this.#isPooled) {
        await session.close();
        log("warn", `a pooler stands before PostgreSQL: notifications do not pass it; ${BY_LOOKING}`);
        return;
      }
      session.onNotification((channel, payload) => {
        if (channel === CHANNEL) this.#heard(payload);
      });
      session.onClose((error) => {
        if (this.#session === session) this.#session = undefined;
        clearTimeout(this.#heartbeat);
        if (this.#stopped) return;
        log("warn", `the bus lost its connection: ${error?.message ?? "closed"}`);
        void this.#listen(PAUSE_MS_MIN);
      });
      await session.simple(`listen ${CHANNEL}`);
      this.#session = session;
      this.#heardSelfAtMs = this.#options.now();
      listener.reconnected();
      this.#send({ hello: true, reads: this.#reads() });
      this.#beat();
    } catch (error) {
      if (this.#stopped) return;
      log("warn", `the bus cannot connect: ${error instanceof Error ? error.message : String(error)}`);
      this.#pause = setTimeout(() => void this.#listen(Math.min(pauseMs * 2, PAUSE_MS_MAX)), pauseMs);
    }
  }

  #beat(): void {
    this.#heartbeat = setTimeout(() => {
      const wasSilent = this.state === "silent";
      this.peers.dropSilent();
      this.#send({ reads: this.#reads() });
      if (wasSilent) this.#options.log("warn", `notifications do not arrive here; ${BY_LOOKING}`);
      this.#beat();
    }, HERE_EVERY_MS);
  }

  #heard(payload: string): void {
    let message: BusMessage;
    try {
      message = JSON.parse(payload) as BusMessage;
    } catch {
      return; // not ours: anybody may notify on a channel
    }
    const { listener, id, now } = this.#options;
    if (message.from === id) {
      this.#heardSelfAtMs = now();
      return;
    }
    if (message.from !== undefined) {
      this.peers.heard(message.from, message.reads);
      this.#heardCount++;
      if (message.hello) this.#send({ reads: this.#reads() });
    }
    for (const lane of message.lanes ?? []) listener.appended(...lane);
    for (const partition of message.released ?? []) listener.released(partition);
    if (message.queues) listener.queuesChanged(message.queues);
    if (message.rewritten) listener.rewritten(message.rewritten);
    if (message.state) listener.stateChanged();
    for (const queue of message.nudged ?? []) listener.nudged(queue);
  }

  #takeOwed(): BusMessage | undefined {
    const owed = this.#readsMore ? { ...this.#owed, reads: this.#reads() } : this.#owed;
    this.#owed = undefined;
    this.#readsMore = false;
    return owed;
  }

  #reads(): readonly number[] {
    return this.#options.groupsRead().slice(0, GROUPS_PER_MESSAGE_MAX);
  }

  get #hasNews(): boolean {
    return (
      this.#owed !== undefined ||
      this.#readsMore ||
      this.#lanes.size > 0 ||
      this.#released.size > 0 ||
      this.#nudged.size > 0
    );
  }

  #flush(): void {
    if (this.#sending || !this.#session) return;
    this.#sending = true;
    setImmediate(() => void this.#sendAll());
  }

  async #sendAll(): Promise<void> {
    try {
      while (this.#hasNews && this.#session) {
        const owed = this.#takeOwed();
        if (owed) {
          await this.#notify(this.#session, owed); // by itself: beside as many lanes there may be no room for it
          continue;
        }
        const lanes = [...this.#lanes.values()].slice(0, LANES_PER_MESSAGE_MAX);
        const released = [...this.#released].slice(0, LANES_PER_MESSAGE_MAX);
        for (const [partition] of lanes) this.#lanes.delete(partition);
        for (const partition of released) this.#released.delete(partition);
        const [nudged] = this.#nudged; // a name may be long
        if (nudged !== undefined) this.#nudged.delete(nudged);
        const startedAtMs = this.#options.now();
        await this.#notify(this.#session, {
          lanes,
          released,
          ...(nudged === undefined ? {} : { nudged: [nudged] }),
        });
        const isFull = Math.max(this.#lanes.size, this.#released.size) >= LANES_PER_MESSAGE_MAX;
        const leftMs = startedAtMs + this.#options.gatherMs - this.#options.now();
        if (!isFull && leftMs > 0) await sleep(leftMs, undefined, { ref: false });
      }
    } catch (error) {
      this.#options.log(
        "warn",
        `a hint was not sent: ${error instanceof Error ? error.message : String(error)}`,
      );
      this.#lanes.clear();
      this.#released.clear();
      this.#nudged.clear();
    } finally {
      this.#sending = false;
    }
  }

  /** Between hints, in turn with them: a session has one call in flight. */
  #send(message: BusMessage): void {
    const session = this.#session;
    if (!session) return;
    if (this.#sending) {
      this.#owed = { ...this.#owed, ...message };
      return;
    }
    this.#sending = true;
    this.#notify(session, message)
      .catch(() => undefined) // the session's end is told by its listener
      .finally(() => {
        this.#sending = false;
        if (this.#hasNews) this.#flush();
      });
  }

  async #notify(session: Session, message: BusMessage): Promise<void> {
    await session.run(notify, [CHANNEL, JSON.stringify({ from: this.#options.id, ...message })]);
  }
}
