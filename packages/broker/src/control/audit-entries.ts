/** The audit log's rows. */
import type { AuditRow } from "../access/audit-log.ts";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";

export class AuditEntries {
  readonly #use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;

  constructor(use: <T>(work: (session: Session) => Promise<T>) => Promise<T>) {
    this.#use = use;
  }

  async write(entries: readonly AuditRow[]): Promise<void> {
    await this.#use((session) => session.run(statements.writeAudit, [JSON.stringify(entries)]));
  }

  /** The newest first. */
  list(before: number | undefined, limit: number): Promise<statements.ListedAuditRow[]> {
    return this.#use((session) => session.run(statements.listAudit, [before ?? null, limit]));
  }
}
