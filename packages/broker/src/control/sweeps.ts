/** What background sweeps did, as operators see it. */
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";

export type { ListedSweepRow, RetentionRow } from "../postgres/statements.ts";

export class Sweeps {
  readonly #use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;

  constructor(use: <T>(work: (session: Session) => Promise<T>) => Promise<T>) {
    this.#use = use;
  }

  list(): Promise<statements.ListedSweepRow[]> {
    return this.#use((session) => session.run(statements.listSweeps, []));
  }

  /** Messages that were taken from readers, by time; the first row has only the range. Undefined: not said. */
  retention(
    from: string | undefined,
    to: string | undefined,
    queue: string | undefined,
  ): Promise<statements.RetentionRow[]> {
    return this.#use((session) =>
      session.run(statements.retentionSeries, [from ?? null, to ?? null, queue ?? null]),
    );
  }
}
