/** Users as administrators make, list and remove them, and their sessions. */
import { BrokerError } from "@queen/protocol";
import { Identity } from "../access/identity.ts";
import { hashPassword } from "../access/password.ts";
import type { StoredUser } from "../access/password-check.ts";
import { isRole, type Role } from "../access/roles.ts";
import { hashSecret, newSecret, USER_SESSION } from "../access/secret.ts";
import type { StoredSecret } from "../access/secret-verifier.ts";
import { SESSION_SECONDS_MAX } from "../access/session-cookie.ts";
import { unixMilliseconds } from "../operations/timestamp.ts";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";

export type { ListedUserRow } from "../postgres/statements.ts";

export interface NewUser {
  readonly name: string;
  readonly password: string;
  readonly role: Role;
  readonly queues: readonly string[] | undefined;
  /** A time as PostgreSQL reads it; undefined: never. */
  readonly expiresAt: string | undefined;
  readonly createdBy: string;
}

const noSuchUser = (): BrokerError => new BrokerError("NOT_FOUND", "User not found");

export class Users {
  readonly #use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;

  constructor(use: <T>(work: (session: Session) => Promise<T>) => Promise<T>) {
    this.#use = use;
  }

  /** Resolves with when he was made, in microseconds. */
  async add({ name, password, role, queues, expiresAt, createdBy }: NewUser): Promise<number> {
    const values = [
      name,
      await hashPassword(password),
      role,
      queues === undefined ? null : JSON.stringify(queues),
      createdBy,
      expiresAt ?? null,
    ];
    const [createdAtUs] = await this.#use((session) => session.run(statements.addUser, values));
    if (createdAtUs === undefined)
      throw new BrokerError("CONFLICT", "There is a user of this name: choose another, or remove that one.");
    return createdAtUs;
  }

  list(): Promise<statements.ListedUserRow[]> {
    return this.#use((session) => session.run(statements.listUsers, []));
  }

  /** His sessions end. */
  async remove(name: string): Promise<void> {
    const [removed] = await this.#use((session) => session.run(statements.removeUser, [name]));
    if (removed === undefined) throw noSuchUser();
  }

  /** His sessions end. */
  async changePassword(name: string, password: string): Promise<void> {
    const hash = await hashPassword(password);
    const [id] = await this.#use((session) => session.run(statements.changePassword, [name, hash]));
    if (id == null) throw noSuchUser();
  }

  /** For the one who checks his password. */
  async read(name: string): Promise<StoredUser | undefined> {
    const [row] = await this.#use((session) => session.run(statements.readUser, [name]));
    return (
      row && { ...row, expiresAtMs: row.expiresAtUs === null ? null : unixMilliseconds(row.expiresAtUs) }
    );
  }

  /** The credential of a new session; undefined: the password was changed, or the user removed, meanwhile. */
  async startSession({ id, password }: StoredUser): Promise<string | undefined> {
    const secret = newSecret();
    const values = [id, password, hashSecret(secret), SESSION_SECONDS_MAX];
    const [session] = await this.#use((connection) => connection.run(statements.startUserSession, values));
    return session == null ? undefined : USER_SESSION.format(session, secret);
  }

  /** For the one who verifies it; undefined: there is none, or it has ended. */
  async readSession(id: number): Promise<StoredSecret | undefined> {
    const [row] = await this.#use((session) => session.run(statements.readUserSession, [id]));
    if (!row) return undefined;
    const { name, role, queues, hash, expiresAtUs } = row;
    return {
      hash,
      expiresAtMs: unixMilliseconds(expiresAtUs),
      identity: new Identity({
        subject: `user:${name}`,
        name: `user ${name}`,
        roles: isRole(role) ? [role] : [],
        queues: queues ?? undefined,
      }),
    };
  }

  /** Other credentials are left alone. */
  async endSession(credential: string): Promise<void> {
    const session = USER_SESSION.parse(credential);
    if (!session) return;
    const values = [session.id, hashSecret(session.secret)];
    await this.#use((connection) => connection.run(statements.endUserSession, values));
  }
}
