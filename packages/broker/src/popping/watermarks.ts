/** Notes in queen.consumer_watermarks when pops of any lane found nothing: at most every 30 s for a group. */
import type { Session } from "../postgres/session.ts";
import { touchWatermarks } from "../postgres/statements.ts";
import type { Group } from "./group.ts";

const EVERY_MS = 30_000;

export class Watermarks {
  readonly #use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  readonly #now: () => number;
  readonly #log: (message: string, error: unknown) => void;
  #groups = new Set<Group>();

  constructor(
    use: <T>(work: (session: Session) => Promise<T>) => Promise<T>,
    now: () => number,
    log: (message: string, error: unknown) => void,
  ) {
    this.#use = use;
    this.#now = now;
    this.#log = log;
  }

  foundNothing(group: Group): void {
    if (this.#now() - group.emptyNotedAtMs < EVERY_MS) return;
    group.emptyNotedAtMs = this.#now();
    this.#groups.add(group);
    if (this.#groups.size === 1) setImmediate(() => void this.#write());
  }

  async #write(): Promise<void> {
    const groups = [...this.#groups];
    this.#groups = new Set();
    try {
      await this.#use((session) =>
        session.run(touchWatermarks, [
          groups.map((group) => group.queueName),
          groups.map((group) => group.name),
        ]),
      );
    } catch (error) {
      this.#log("watermarks.failed", error);
    }
  }
}
