/** The handlers of API keys and of the audit log. */
import { BrokerError } from "@queen/protocol";
import type { Role } from "../access/roles.ts";
import type { ApiKeys, ListedApiKeyRow } from "../control/api-keys.ts";
import type { AuditEntries } from "../control/audit-entries.ts";
import { isoMilliseconds } from "../operations/timestamp.ts";
import { json } from "./answers.ts";
import type { Answer, Request } from "./route.ts";
import { checkTime, isoTime, type ReadTimestamp } from "./times.ts";

export interface NewKeyBody {
  readonly name: string;
  readonly role: Role;
  readonly queues?: readonly string[] | null | undefined;
  readonly expiresAt?: string | null | undefined;
}

const timeOrNull = (us: number | null): string | null => (us === null ? null : isoMilliseconds(us));

export class ApiKeyRoutes {
  readonly #keys: ApiKeys;
  readonly #audit: AuditEntries;
  readonly #readTimestamp: ReadTimestamp;

  constructor(keys: ApiKeys, audit: AuditEntries, readTimestamp: ReadTimestamp) {
    this.#keys = keys;
    this.#audit = audit;
    this.#readTimestamp = readTimestamp;
  }

  async make(request: Request, body: NewKeyBody): Promise<Answer> {
    const expiresAt = body.expiresAt
      ? await checkTime(body.expiresAt, "expiresAt", this.#readTimestamp)
      : undefined;
    const queues = body.queues ?? undefined;
    const made = await this.#keys.make({
      name: body.name,
      role: body.role,
      queues,
      expiresAt,
      createdBy: request.identity.name,
    });
    const answer = json(201, {
      id: String(made.id),
      name: body.name,
      role: body.role,
      queues: queues ?? null,
      createdAt: isoMilliseconds(made.createdAtUs),
      expiresAt: expiresAt === undefined ? null : isoTime(expiresAt),
      key: made.key,
    });
    return { ...answer, about: { id: String(made.id) } };
  }

  async list(): Promise<Answer> {
    return json(200, { keys: (await this.#keys.list()).map(show) });
  }

  async revoke(request: Request): Promise<Answer> {
    const text = request.params.id!;
    if (!/^\d{1,15}$/.test(text)) throw new BrokerError("NOT_FOUND", "API key not found");
    await this.#keys.revoke(Number(text));
    return json(200, { revoked: true, id: text });
  }

  async audit(query: { before: number; limit: number }): Promise<Answer> {
    const rows = await this.#audit.list(query.before === 0 ? undefined : query.before, query.limit);
    const last = rows.length === query.limit ? rows[rows.length - 1] : undefined;
    return json(200, {
      entries: rows.map(({ id, atUs, ...row }) => ({ id, at: isoMilliseconds(atUs), ...row })),
      nextBefore: last?.id ?? null,
    });
  }
}

function show(row: ListedApiKeyRow): Record<string, unknown> {
  return {
    id: String(row.id),
    name: row.name,
    role: row.role,
    queues: row.queues,
    createdAt: isoMilliseconds(row.createdAtUs),
    createdBy: row.createdBy,
    expiresAt: timeOrNull(row.expiresAtUs),
    revokedAt: timeOrNull(row.revokedAtUs),
  };
}
