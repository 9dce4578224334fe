/**
 * The watch finds out that a database has fallen silent: its connections stand, and calls get no answer (a stopped
 * server, a network that swallows everything).
 *
 *   calm ──a call waits for 2 s──▶ asking by a new connection ──it answers──▶ are there calls that it knows nothing of?
 *    ▲                                       │ it does not, and nobody           │ their connections are cut
 *    │                                       ▼ had an answer for 2 s             ▼
 *    └────── connections are made again ◀── all are cut, work is refused        calm
 *
 * One connection may be dead alone: whatever stood between has forgotten it. The server then has no such session, or
 * one that idles, while a call waits here. It is asked twice, because an answer may be on its way.
 *
 * Without the watch a call would wait for its deadline, which is longer than the longest statement may take.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../telemetry.ts";
import { PostgresError } from "./errors.ts";
import type { Session } from "./session.ts";
import type { Slots } from "./slots.ts";
import { readBusyProcesses } from "./statements.ts";

export interface DatabaseWatchOptions {
  readonly pools: readonly Slots[];
  readonly connect: () => Promise<Session>;
  /** The pools are cut: whatever else has a connection may cut it, too. */
  readonly fellSilent: (reason: Error) => void;
  readonly now: () => number;
  readonly log: Log;
}

interface Waiting {
  readonly session: Session;
  readonly sinceMs: number;
}

const LOOK_EVERY_MS = 500;
const SILENT_MS_MAX = 2_000;
// A slow statement is as silent as a dead server. Who answered a new connection is not asked again at once.
const CALM_MS = 5_000;
const CONFIRM_MS = 1_000;

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
    const { now, connect } = this.#options;
    if (this.#isAsking || now() < this.#calmUntilMs || this.#waiting().length === 0) return;
    this.#isAsking = true;
    try {
      const session = await connect(); // which takes several calls
      this.#calmUntilMs = now() + CALM_MS;
      try {
        await this.#cutForgotten(session);
      } finally {
        await session.close();
      }
    } catch (error) {
      // A server that answers, and has no connection to spare, is not silent.
      if (!(error instanceof PostgresError)) this.#cutSilent(error as Error);
    } finally {
      this.#isAsking = false;
    }
  }

  #cutSilent(error: Error): void {
    const { pools, now, fellSilent, log } = this.#options;
    const nowMs = now();
    if (!pools.some((pool) => nowMs - (pool.silentSinceMs ?? nowMs) > SILENT_MS_MAX)) return;
    const message = "PostgreSQL does not answer; its connections are given up";
    log.warn({ message, error }, "database.silent");
    for (const pool of pools) pool.cut(error);
    fellSilent(error);
  }

  async #cutForgotten(asking: Session): Promise<void> {
    const suspects = await this.#unknownTo(asking);
    if (suspects.length === 0) return;
    await sleep(CONFIRM_MS);
    const isSuspect = ({ session, sinceMs }: Waiting): boolean =>
      suspects.some((each) => each.session === session && each.sinceMs === sinceMs);
    for (const { session } of (await this.#unknownTo(asking)).filter(isSuspect)) {
      const message =
        "PostgreSQL knows nothing of a call that waits for its answer; its connection is given up";
      this.#options.log.warn({ message }, "database.forgotten");
      session.destroy(new Error("the server has no such call: an answer or the call itself was lost"));
    }
  }

  /** What waits for an answer that the server does not owe. Behind a pooler nobody can tell. */
  async #unknownTo(asking: Session): Promise<Waiting[]> {
    const waiting = this.#waiting().filter(({ session }) => !session.isPooled);
    if (waiting.length === 0) return [];
    const pids = waiting.map(({ session }) => session.processId);
    const busy = new Set(await asking.run(readBusyProcesses, [pids]));
    return waiting.filter(({ session }) => !busy.has(session.processId));
  }

  /** Calls that wait for long already. */
  #waiting(): Waiting[] {
    const beforeMs = this.#options.now() - SILENT_MS_MAX;
    return this.#options.pools
      .flatMap((pool) => [...pool.sessions])
      .map((session) => ({ session, sinceMs: session.busySinceMs ?? Infinity }))
      .filter(({ sinceMs }) => sinceMs < beforeMs);
  }
}
