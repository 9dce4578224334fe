/** API keys as administrators make, list and revoke them. */
import { BrokerError } from "@queen/protocol";
import { formatApiKey, hashApiKey, newApiKeySecret } from "../access/api-key.ts";
import type { StoredApiKey } from "../access/api-key-verifier.ts";
import type { Role } from "../access/roles.ts";
import { unixMilliseconds } from "../operations/timestamp.ts";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";

export type { ListedApiKeyRow } from "../postgres/statements.ts";

export interface NewApiKey {
  readonly name: string;
  readonly role: Role;
  readonly queues: readonly string[] | undefined;
  /** A time as PostgreSQL reads it; undefined: never. */
  readonly expiresAt: string | undefined;
  readonly createdBy: string;
}

export interface MadeApiKey {
  readonly id: number;
  /** Shown this once. */
  readonly key: string;
  readonly createdAtUs: number;
}

export class ApiKeys {
  readonly #use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;

  constructor(use: <T>(work: (session: Session) => Promise<T>) => Promise<T>) {
    this.#use = use;
  }

  async make({ name, role, queues, expiresAt, createdBy }: NewApiKey): Promise<MadeApiKey> {
    const secret = newApiKeySecret();
    const [made] = await this.#use((session) =>
      session.run(statements.makeApiKey, [
        name,
        hashApiKey(secret),
        role,
        queues === undefined ? null : JSON.stringify(queues),
        createdBy,
        expiresAt ?? null,
      ]),
    );
    const { id, createdAtUs } = made!;
    return { id, key: formatApiKey(id, secret), createdAtUs };
  }

  /** For the one who verifies it; undefined: there is none, or it was revoked. */
  async read(id: number): Promise<StoredApiKey | undefined> {
    const [row] = await this.#use((session) => session.run(statements.readApiKey, [id]));
    return (
      row && { ...row, expiresAtMs: row.expiresAtUs === null ? null : unixMilliseconds(row.expiresAtUs) }
    );
  }

  list(): Promise<statements.ListedApiKeyRow[]> {
    return this.#use((session) => session.run(statements.listApiKeys, []));
  }

  async revoke(id: number): Promise<void> {
    const [revoked] = await this.#use((session) => session.run(statements.revokeApiKey, [id]));
    if (revoked === undefined) throw new BrokerError("NOT_FOUND", "API key not found");
  }
}
