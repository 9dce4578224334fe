/**
 * The watch finds out that a database has fallen silent: its connections stand, and calls get no answer (a stopped
 * server, a network that swallows everything).
 *
 *   calm ──calls wait, none was answered for 2 s──▶ asking by a new connection ──it answers──▶ calm
 *    ▲                                                       │ it does not
 *    └────────────── connections are made again ◀── all of them are cut, work is refused
 *
 * Without it a call would wait for its deadline, which is longer than the longest statement may take.
 */
import type { Log } from "../telemetry.ts";
import { PostgresError } from "./errors.ts";
import type { Session } from "./session.ts";
import type { Slots } from "./slots.ts";

export interface DatabaseWatchOptions {
  readonly pools: readonly Slots[];
  readonly connect: () => Promise<Session>;
  /** The pools are cut: whatever else has a connection may cut it, too. */
  readonly fellSilent: (reason: Error) => void;
  readonly now: () => number;
  readonly log: Log;
}

const LOOK_EVERY_MS = 500;
const SILENT_MS_MAX = 2_000;
// A slow statement is as silent as a dead server. Who answered a new connection is not asked again at once.
const CALM_MS = 5_000;

export class DatabaseWatch {
  readonly #options: DatabaseWatchOptions;
  #timer: NodeJS.Timeout | undefined;
  #isAsking = false;
  #calmUntilMs = 0;

  constructor(options: DatabaseWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = setInterval(() => void this.#look(), LOOK_EVERY_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const { pools, now, connect, log } = this.#options;
    const nowMs = now();
    if (this.#isAsking || nowMs < this.#calmUntilMs) return;
    if (!pools.some((pool) => nowMs - (pool.silentSinceMs ?? nowMs) > SILENT_MS_MAX)) return;
    this.#isAsking = true;
    try {
      await (await connect()).close(); // to connect takes two calls
      this.#calmUntilMs = now() + CALM_MS;
    } catch (error) {
      if (error instanceof PostgresError) return; // it answers, and has no connection to spare
      log.warn(
        { message: "PostgreSQL does not answer; its connections are given up", error },
        "database.silent",
      );
      for (const pool of pools) pool.cut(error as Error);
      this.#options.fellSilent(error as Error);
    } finally {
      this.#isAsking = false;
    }
  }
}
