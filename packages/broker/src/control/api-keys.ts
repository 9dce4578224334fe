/** API keys as administrators make, list and revoke them. */
import { BrokerError } from "@queen/protocol";
import { Identity } from "../access/identity.ts";
import { isRole, type Role } from "../access/roles.ts";
import { API_KEY, hashSecret, newSecret } from "../access/secret.ts";
import type { StoredSecret } from "../access/secret-verifier.ts";
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
    const secret = newSecret();
    const [made] = await this.#use((session) =>
      session.run(statements.makeApiKey, [
        name,
        hashSecret(secret),
        role,
        queues === undefined ? null : JSON.stringify(queues),
        createdBy,
        expiresAt ?? null,
      ]),
    );
    const { id, createdAtUs } = made!;
    return { id, key: API_KEY.format(id, secret), createdAtUs };
  }

  /** For the one who verifies it; undefined: there is none, or it was revoked. */
  async read(id: number): Promise<StoredSecret | undefined> {
    const [row] = await this.#use((session) => session.run(statements.readApiKey, [id]));
    if (!row) return undefined;
    const { name, role, queues, hash, expiresAtUs } = row;
    return {
      hash,
      expiresAtMs: expiresAtUs === null ? null : unixMilliseconds(expiresAtUs),
      identity: new Identity({
        subject: `key:${name}`,
        name: `key ${id} (${name})`,
        roles: isRole(role) ? [role] : [],
        queues: queues ?? undefined,
      }),
    };
  }

  list(): Promise<statements.ListedApiKeyRow[]> {
    return this.#use((session) => session.run(statements.listApiKeys, []));
  }

  async revoke(id: number): Promise<void> {
    const [revoked] = await this.#use((session) => session.run(statements.revokeApiKey, [id]));
    if (revoked === undefined) throw new BrokerError("NOT_FOUND", "API key not found");
  }
}
