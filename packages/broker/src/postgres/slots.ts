/**
 * Slots are the connections of one kind of work, each with at most one call in flight.
 *
 *   connecting ──ready──▶ idle ──take──▶ busy ──give──▶ idle
 *        ▲                  │              │
 *        └────── pause ◀────┴── lost ◀─────┘
 *
 * A lost connection is made again, with growing pauses, for as long as the broker runs; one of those that wait is the
 * scout, with short pauses, and when it is through, the others follow at once. When none could be made for a while,
 * `unavailable` says so, and work is refused at once instead of waiting.
 */
import { BrokerError } from "@queen/protocol";
import type { Session } from "./session.ts";

export interface SlotOptions {
  readonly count: number;
  readonly connect: () => Promise<Session>;
  /** How long the work may wait for a first connection before it is refused. */
  readonly patienceMs: number;
  readonly log: (message: string) => void;
}

const PAUSE_MS_MIN = 50;
const PAUSE_MS_MAX = 2_000;
const SCOUT_PAUSE_MS_MAX = 200;

export class Slots {
  readonly #options: SlotOptions;
  readonly #idle: Session[] = [];
  readonly #all = new Set<Session>();
  readonly #listeners: (() => void)[] = [];
  /** Connections that wait for their next attempt. */
  readonly #pauses = new Map<NodeJS.Timeout, () => void>();
  /** One of them waits only shortly. */
  #hasScout = false;
  #waiting = 0;
  /** When each busy session was taken. */
  readonly #takenAtMs = new Map<Session, number>();
  #answeredAtMs = 0;
  #stopped = false;
  #refusal: BrokerError | undefined = new BrokerError(
    "DATABASE_UNAVAILABLE",
    "The broker is starting: the database is not ready yet. Try again in a moment.",
  );
  #patience: NodeJS.Timeout | undefined;

  constructor(options: SlotOptions) {
    this.#options = options;
  }

  start(): void {
    this.#refusal = undefined;
    this.#startPatience();
    for (let slot = 0; slot < this.#options.count; slot++) void this.#connect(PAUSE_MS_MIN);
  }

  get free(): number {
    return this.#idle.length;
  }

  get busy(): number {
    return this.#takenAtMs.size;
  }

  /** Pieces of work that wait for a slot. */
  get waiting(): number {
    return this.#waiting;
  }

  get total(): number {
    return this.#all.size;
  }

  get sessions(): Iterable<Session> {
    return this.#all;
  }

  /** Why nothing can be sent now; undefined: it can, or may soon. */
  get unavailable(): BrokerError | undefined {
    return this.#refusal;
  }

  /** Since when calls are in flight and none was answered; undefined: nobody waits for an answer. */
  get silentSinceMs(): number | undefined {
    const [oldest] = this.#takenAtMs.values();
    return oldest === undefined ? undefined : Math.max(oldest, this.#answeredAtMs);
  }

  /** The listener is called when a slot gets free and when availability changes. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Resolves when work is not refused any more, or never will be taken again. */
  whenAvailable(): Promise<void> {
    return new Promise((resolve) => {
      if (!this.#refusal || this.#stopped) {
        resolve();
        return;
      }
      const look = (): void => {
        if (this.#refusal && !this.#stopped) return;
        this.#listeners.splice(this.#listeners.indexOf(look), 1);
        resolve();
      };
      this.#listeners.push(look);
    });
  }

  take(): Session | undefined {
    const session = this.#idle.pop();
    if (session) this.#takenAtMs.set(session, performance.now());
    return session;
  }

  give(session: Session): void {
    this.#takenAtMs.delete(session);
    this.#answeredAtMs = performance.now();
    if (!session.closed) this.#idle.push(session);
    this.#changed();
  }

  /** Runs one piece of work on a slot, waiting for one. */
  use<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const attempt = (): boolean => {
        if (this.#refusal) {
          reject(this.#refusal);
          return true;
        }
        const session = this.take();
        if (!session) return false;
        // An async function, so that a throw before the first await is a rejection too, and the slot comes back.
        (async () => work(session))()
          .then(resolve, reject)
          .finally(() => this.give(session));
        return true;
      };
      if (attempt()) return;
      const retry = (): void => {
        if (!attempt()) return;
        this.#waiting--;
        this.#listeners.splice(this.#listeners.indexOf(retry), 1);
      };
      this.#waiting++;
      this.#listeners.push(retry);
    });
  }

  /** The database does not answer: gives up all connections, refuses work, and goes on trying to connect. */
  cut(reason: Error): void {
    if (this.#stopped || this.#all.size === 0) return;
    this.#refusal = unreachable();
    for (const session of [...this.#all]) session.destroy(reason);
    this.#changed();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#patience);
    for (const pause of this.#pauses.keys()) clearTimeout(pause);
    this.#refusal = new BrokerError("SHUTTING_DOWN", "The broker is stopping. Try another one.");
    this.#changed();
    await Promise.all([...this.#all].map((session) => session.close()));
  }

  async #connect(pauseMs: number): Promise<void> {
    let session: Session;
    try {
      session = await this.#options.connect();
    } catch (error) {
      if (this.#stopped) return;
      this.#options.log(
        `cannot connect to PostgreSQL: ${error instanceof Error ? error.message : String(error)}`,
      );
      const isScout = !this.#hasScout;
      this.#hasScout = true;
      const again = (): void => {
        clearTimeout(pause);
        this.#pauses.delete(pause);
        if (isScout) this.#hasScout = false;
        void this.#connect(Math.min(pauseMs * 2, PAUSE_MS_MAX));
      };
      const pause = setTimeout(again, isScout ? Math.min(pauseMs, SCOUT_PAUSE_MS_MAX) : pauseMs);
      this.#pauses.set(pause, again);
      return;
    }
    if (this.#stopped) {
      await session.close();
      return;
    }
    this.#all.add(session);
    session.onClose((error) => {
      this.#all.delete(session);
      const index = this.#idle.indexOf(session);
      if (index >= 0) this.#idle.splice(index, 1);
      if (this.#stopped) return;
      if (error) this.#options.log(`lost a connection to PostgreSQL: ${error.message}`);
      if (this.#all.size === 0) this.#startPatience();
      void this.#connect(PAUSE_MS_MIN);
    });
    clearTimeout(this.#patience);
    this.#patience = undefined;
    this.#refusal = undefined;
    this.#idle.push(session);
    for (const again of [...this.#pauses.values()]) again();
    this.#changed();
  }

  #startPatience(): void {
    this.#patience ??= setTimeout(() => {
      this.#patience = undefined;
      if (this.#stopped) return;
      this.#refusal = unreachable();
      this.#changed();
    }, this.#options.patienceMs);
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

const unreachable = (): BrokerError =>
  new BrokerError(
    "DATABASE_UNAVAILABLE",
    "PostgreSQL cannot be reached. The broker goes on trying; try again in a moment.",
  );
