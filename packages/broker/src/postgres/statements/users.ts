/** The calls about users and their sessions. */
import type { Statement } from "../session.ts";
import { parseNames } from "./access.ts";

export interface StoredUserRow {
  readonly id: number;
  readonly password: string;
  readonly expiresAtUs: number | null;
}

export const readUser: Statement<StoredUserRow> = {
  name: "queen_read_user",
  text: "select id, password, expires_at from queen.users where name = $1",
  parameters: ["text"],
  read: (row) => ({ id: row.int8(0), password: row.text(1), expiresAtUs: row.int8OrNull(2) }),
};

export interface StoredUserSessionRow {
  readonly name: string;
  readonly hash: Buffer;
  readonly role: string;
  readonly queues: string[] | null;
  readonly expiresAtUs: number;
}

export const readUserSession: Statement<StoredUserSessionRow> = {
  name: "queen_read_user_session",
  text: `select u.name, s.hash, u.role, to_json(u.queues)::text, least(s.expires_at, u.expires_at)
           from queen.user_sessions s join queen.users u on u.id = s.user_id where s.id = $1`,
  parameters: ["int8"],
  read: (row) => ({
    name: row.text(0),
    hash: Buffer.from(row.bytes(1)),
    role: row.text(2),
    queues: parseNames(row.textOrNull(3)),
    expiresAtUs: row.int8(4),
  }),
};

/** Null: the user is gone, or has another password by now. */
export const startUserSession: Statement<number | null> = {
  name: "queen_start_user_session",
  text: "select queen.start_user_session($1, $2, $3, $4)",
  parameters: ["int8", "text", "bytea", "int4"],
  read: (row) => row.int8OrNull(0),
};

export const endUserSession: Statement<number> = {
  name: "queen_end_user_session",
  text: "delete from queen.user_sessions where id = $1 and hash = $2 returning 1",
  parameters: ["int8", "bytea"],
  read: (row) => row.int4(0),
};

/** No row: the name is taken. */
export const addUser: Statement<number> = {
  name: "queen_add_user",
  text: `insert into queen.users (name, password, role, queues, created_by, expires_at)
         values ($1, $2, $3, (select array_agg(q) from json_array_elements_text($4::json) as q), $5,
                 $6::timestamptz)
         on conflict (name) do nothing returning created_at`,
  parameters: ["text", "text", "text", "text", "text", "text"],
  read: (row) => row.int8(0),
};

export interface ListedUserRow {
  readonly name: string;
  readonly role: string;
  readonly queues: string[] | null;
  readonly createdAtUs: number;
  readonly createdBy: string;
  readonly expiresAtUs: number | null;
  readonly passwordChangedAtUs: number;
  readonly sessions: number;
}

export const listUsers: Statement<ListedUserRow> = {
  name: "queen_list_users",
  text: `select name, role, to_json(queues)::text, created_at, created_by, expires_at, password_changed_at,
                (select count(*) from queen.user_sessions s
                  where s.user_id = u.id and s.expires_at > clock_timestamp())::int4
           from queen.users u order by name limit 10000`,
  parameters: [],
  read: (row) => ({
    name: row.text(0),
    role: row.text(1),
    queues: parseNames(row.textOrNull(2)),
    createdAtUs: row.int8(3),
    createdBy: row.text(4),
    expiresAtUs: row.int8OrNull(5),
    passwordChangedAtUs: row.int8(6),
    sessions: row.int4(7),
  }),
};

export const removeUser: Statement<number> = {
  name: "queen_remove_user",
  text: "delete from queen.users where name = $1 returning 1",
  parameters: ["text"],
  read: (row) => row.int4(0),
};

/** Null: there is no such user. */
export const changePassword: Statement<number | null> = {
  name: "queen_change_password",
  text: "select queen.change_password($1, $2)",
  parameters: ["text", "text"],
  read: (row) => row.int8OrNull(0),
};
