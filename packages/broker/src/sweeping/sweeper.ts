/**
 * The sweeper of a worker asks the database for rounds of sweeps. Every worker of every broker has one, and none
 * leads: the database gives a round to whoever asks when it is due, and says to the others when to ask again.
 *
 * A round is a short transaction of its own. Rounds of different sweeps take turns, and between two of them the
 * sweeper rests for longer than the round took, so that sweeping never fills more than a part of a connection.
 */
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import type { Log } from "../telemetry.ts";
import type { Sweep } from "./sweep.ts";

export interface SweeperOptions {
  readonly sweeps: readonly Sweep[];
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  /** Tells this worker from all others on the database. */
  readonly worker: string;
  readonly now: () => number;
  readonly random: () => number;
  readonly log: Log;
}

// A fifth of one connection at most.
const REST_PER_ROUND = 4;
const REST_MS_MIN = 10;
// Below the ten seconds after which another worker takes a pass over.
const REST_MS_MAX = 5_000;
const AFTER_FAILURE_MS = 10_000;
// Workers that wait for the same moment ask one after the other.
const SPREAD_MS_MAX = 1_000;

interface Plan {
  readonly sweep: Sweep;
  dueAtMs: number;
}

export class Sweeper {
  readonly #options: SweeperOptions;
  #plans: Plan[] = [];
  #running: Promise<void> = Promise.resolve();
  #stopped = false;
  #wake: (() => void) | undefined;

  constructor(options: SweeperOptions) {
    this.#options = options;
  }

  start(): void {
    const { sweeps, now } = this.#options;
    this.#plans = sweeps.map((sweep) => ({ sweep, dueAtMs: now() + this.#spread(sweep.intervalMs) }));
    this.#running = this.#run();
  }

  /** Begins no further round; resolves when the one under way is over. */
  stop(): Promise<void> {
    this.#stopped = true;
    this.#wake?.();
    return this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const plan = this.#plans.reduce((first, each) => (each.dueAtMs < first.dueAtMs ? each : first));
      await this.#sleep(plan.dueAtMs - this.#options.now());
      if (this.#stopped) return;
      plan.dueAtMs = this.#options.now() + (await this.#round(plan.sweep));
    }
  }

  /** Returns when to ask again. */
  async #round(sweep: Sweep): Promise<number> {
    const { use, worker, log } = this.#options;
    const { name, intervalMs, batch, keepSeconds } = sweep;
    try {
      const [row] = await use((session) =>
        session.run(statements.sweep, [name, worker, intervalMs, batch, keepSeconds]),
      );
      const { state, waitMs, rounds } = row!;
      const done = row!.done ?? {};
      if (state === "under way") {
        log.debug({ sweep: name, rounds, ...done }, "sweep.round");
        return Math.min(Math.max(waitMs * REST_PER_ROUND, REST_MS_MIN), REST_MS_MAX);
      }
      if (state === "finished") {
        const level = Object.values(done).some((count) => count > 0) ? "info" : "debug";
        log[level]({ sweep: name, rounds, ...done }, "sweep.finished");
      }
      return waitMs + this.#spread(intervalMs);
    } catch (error) {
      if (!this.#stopped) log.warn({ sweep: name, error }, "sweep.failed");
      return Math.min(intervalMs, AFTER_FAILURE_MS) + this.#spread(intervalMs);
    }
  }

  #spread(intervalMs: number): number {
    return this.#options.random() * Math.min(intervalMs / 10, SPREAD_MS_MAX);
  }

  #sleep(ms: number): Promise<void> {
    if (ms <= 0 || this.#stopped) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.#wake = end;
    });
  }
}
