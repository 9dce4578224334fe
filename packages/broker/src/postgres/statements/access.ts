/** The calls about API keys and the audit log. */
import type { Statement } from "../session.ts";

export interface StoredApiKeyRow {
  readonly id: number;
  readonly name: string;
  readonly hash: Buffer;
  readonly role: string;
  readonly queues: string[] | null;
  readonly expiresAtUs: number | null;
}

export const readApiKey: Statement<StoredApiKeyRow> = {
  name: "queen_read_api_key",
  text: `select id, name, hash, role, to_json(queues)::text, expires_at
           from queen.api_keys where id = $1 and revoked_at is null`,
  parameters: ["int8"],
  read: (row) => ({
    id: row.int8(0),
    name: row.text(1),
    hash: Buffer.from(row.bytes(2)),
    role: row.text(3),
    queues: parseNames(row.textOrNull(4)),
    expiresAtUs: row.int8OrNull(5),
  }),
};

export const makeApiKey: Statement<{ readonly id: number; readonly createdAtUs: number }> = {
  name: "queen_make_api_key",
  text: `insert into queen.api_keys (name, hash, role, queues, created_by, expires_at)
         values ($1, $2, $3, (select array_agg(q) from json_array_elements_text($4::json) as q), $5,
                 $6::timestamptz)
         returning id, created_at`,
  parameters: ["text", "bytea", "text", "text", "text", "text"],
  read: (row) => ({ id: row.int8(0), createdAtUs: row.int8(1) }),
};

export interface ListedApiKeyRow {
  readonly id: number;
  readonly name: string;
  readonly role: string;
  readonly queues: string[] | null;
  readonly createdAtUs: number;
  readonly createdBy: string;
  readonly expiresAtUs: number | null;
  readonly revokedAtUs: number | null;
}

export const listApiKeys: Statement<ListedApiKeyRow> = {
  name: "queen_list_api_keys",
  text: `select id, name, role, to_json(queues)::text, created_at, created_by, expires_at, revoked_at
           from queen.api_keys order by id desc limit 10000`,
  parameters: [],
  read: (row) => ({
    id: row.int8(0),
    name: row.text(1),
    role: row.text(2),
    queues: parseNames(row.textOrNull(3)),
    createdAtUs: row.int8(4),
    createdBy: row.text(5),
    expiresAtUs: row.int8OrNull(6),
    revokedAtUs: row.int8OrNull(7),
  }),
};

export const revokeApiKey: Statement<number> = {
  name: "queen_revoke_api_key",
  text: "update queen.api_keys set revoked_at = coalesce(revoked_at, clock_timestamp()) where id = $1 returning 1",
  parameters: ["int8"],
  read: (row) => row.int4(0),
};

export const writeAudit: Statement<null> = {
  name: "queen_write_audit",
  text: "select queen.write_audit($1::jsonb)",
  parameters: ["text"],
  read: () => null,
};

export interface ListedAuditRow {
  readonly id: number;
  readonly atUs: number;
  readonly actor: string;
  readonly address: string;
  readonly action: string;
  readonly target: string;
  readonly status: number;
  readonly times: number;
}

export const listAudit: Statement<ListedAuditRow> = {
  name: "queen_list_audit",
  text: `select id, at, actor, address, action, target, status, times from queen.audit_log
          where ($1::int8 is null or id < $1) order by id desc limit $2`,
  parameters: ["int8", "int4"],
  read: (row) => ({
    id: row.int8(0),
    atUs: row.int8(1),
    actor: row.text(2),
    address: row.text(3),
    action: row.text(4),
    target: row.text(5),
    status: row.int4(6),
    times: row.int4(7),
  }),
};

export const parseNames = (text: string | null): string[] | null =>
  text === null ? null : (JSON.parse(text) as string[]);
