/** What background sweeps did, as operators see it. */
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import type { Range } from "./analytics.ts";

export type { ListedSweepRow, RetentionRow } from "../postgres/statements.ts";

export class Sweeps {
  readonly #use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;

  constructor(use: <T>(work: (session: Session) => Promise<T>) => Promise<T>) {
    this.#use = use;
  }

  list(): Promise<statements.ListedSweepRow[]> {
    return this.#use((session) => session.run(statements.listSweeps, []));
  }

  /** Messages that were taken from readers, by time; undefined: of all queues. */
  retention(
    { from, to, bucketMinutes }: Range,
    queue: string | undefined,
  ): Promise<statements.RetentionRow[]> {
    return this.#use((session) =>
      session.run(statements.retentionSeries, [from, to, bucketMinutes, queue ?? null]),
    );
  }
}
