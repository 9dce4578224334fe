/** The handlers of users. */
import type { Role } from "../access/roles.ts";
import type { ListedUserRow, Users } from "../control/users.ts";
import { checkName } from "../operations/names.ts";
import { isoMilliseconds } from "../operations/timestamp.ts";
import { json } from "./answers.ts";
import type { Answer, Request } from "./route.ts";
import { checkTime, isoTime, type ReadTimestamp } from "./times.ts";

export interface NewUserBody {
  readonly name: string;
  readonly password: string;
  readonly role: Role;
  readonly queues?: readonly string[] | null | undefined;
  readonly expiresAt?: string | null | undefined;
}

export class UserRoutes {
  readonly #users: Users;
  readonly #readTimestamp: ReadTimestamp;

  constructor(users: Users, readTimestamp: ReadTimestamp) {
    this.#users = users;
    this.#readTimestamp = readTimestamp;
  }

  async add(request: Request, body: NewUserBody): Promise<Answer> {
    const { role, password } = body;
    const name = checkName(body.name, "name");
    const expiresAt = body.expiresAt
      ? await checkTime(body.expiresAt, "expiresAt", this.#readTimestamp)
      : undefined;
    const queues = body.queues ?? undefined;
    const createdBy = request.identity.name;
    const createdAtUs = await this.#users.add({ name, password, role, queues, expiresAt, createdBy });
    return json(201, {
      name,
      role,
      queues: queues ?? null,
      createdAt: isoMilliseconds(createdAtUs),
      expiresAt: expiresAt === undefined ? null : isoTime(expiresAt),
    });
  }

  async list(): Promise<Answer> {
    return json(200, { users: (await this.#users.list()).map(show) });
  }

  async remove(request: Request): Promise<Answer> {
    const name = userOf(request);
    await this.#users.remove(name);
    return json(200, { removed: true, name });
  }

  async changePassword(request: Request, password: string): Promise<Answer> {
    const name = userOf(request);
    await this.#users.changePassword(name, password);
    return json(200, { changed: true, name });
  }
}

const userOf = (request: Request): string => checkName(request.params.user, "user");

function show(row: ListedUserRow): Record<string, unknown> {
  return {
    name: row.name,
    role: row.role,
    queues: row.queues,
    createdAt: isoMilliseconds(row.createdAtUs),
    createdBy: row.createdBy,
    expiresAt: row.expiresAtUs === null ? null : isoMilliseconds(row.expiresAtUs),
    passwordChangedAt: isoMilliseconds(row.passwordChangedAtUs),
    sessions: row.sessions,
  };
}
