/**
 * The SQL interface as an application uses it: through connections of a role that may do nothing but call
 * its functions.
 */
import { randomBytes } from "node:crypto";
import type pg from "pg";
import { createDatabase, type Row, type TestDatabase } from "./database.ts";

/** The functions that users may be given, by their signatures. */
export const PUBLIC_FUNCTIONS = [
  "push_messages_v2(jsonb)",
  "push_messages_v3(jsonb)",
  "pop_messages_v2(jsonb)",
  "pop_messages_batch_v2(jsonb)",
  "pop_specific_batch(jsonb)",
  "pop_sm_resolve(jsonb)",
  "pop_sm_lease(jsonb)",
  "pop_sm_fetch(jsonb)",
  "pop_sm_release(jsonb)",
  "ack_messages_v2(jsonb, boolean)",
  "execute_transaction_v2(jsonb)",
  "renew_lease_v2(jsonb)",
  "has_pending_messages(text, text, text)",
] as const;

export interface Application {
  readonly role: string;
  /** A connection as the application's role. */
  connect(): Promise<pg.Client>;
  drop(): Promise<void>;
}

export async function createApplication(database: TestDatabase): Promise<Application> {
  const role = `queen_app_${process.pid}_${randomBytes(4).toString("hex")}`;
  await database.query(`create role ${role}`);
  await database.query(`grant usage on schema queen to ${role}`);
  for (const name of PUBLIC_FUNCTIONS)
    await database.query(`grant execute on function queen.${name} to ${role}`);
  return {
    role,
    async connect() {
      const client = await database.client();
      await client.query(`set role ${role}`);
      return client;
    },
    async drop() {
      await database.query(`drop owned by ${role}`);
      await database.query(`drop role ${role}`);
    },
  };
}

export interface SqlSystem {
  readonly database: TestDatabase;
  readonly application: Application;
  /** As the owner of the schema. */
  readonly owner: pg.Client;
  stop(): Promise<void>;
}

export async function startSqlSystem(): Promise<SqlSystem> {
  const database = await createDatabase();
  const application = await createApplication(database);
  const owner = await database.client();
  return {
    database,
    application,
    owner,
    async stop() {
      await application.drop();
      await database.drop();
    },
  };
}

/** Calls a function of the interface with one jsonb argument, and further arguments as they are. */
export async function call(
  client: pg.Client,
  name: string,
  argument: unknown,
  ...more: unknown[]
  // biome-ignore lint/suspicious/noExplicitAny: any answer; a wrong shape fails the assertion on it
): Promise<any> {
  const places = more.map((_, index) => `, $${index + 2}`).join("");
  const { rows } = await client.query(`select queen.${name}($1::jsonb${places}) as answer`, [
    JSON.stringify(argument),
    ...more,
  ]);
  return rows[0].answer;
}

export interface Popped {
  readonly success: boolean;
  readonly error?: string;
  readonly queue: string;
  readonly partition: string;
  readonly partitionId: string;
  readonly leaseId: string;
  readonly consumerGroup: string;
  readonly partitionsClaimed: number;
  readonly complete?: boolean;
  readonly messages: readonly Row[];
}

export const pop = (client: pg.Client, queue: string, more: object = {}): Promise<Popped> =>
  call(client, "pop_messages_v2", { queue_name: queue, batch_size: 100, ...more });

export const idsOf = (popped: Popped): string[] => popped.messages.map((message) => message.transactionId);

/** One ack per message of a pop. */
export const acksOf = (popped: Popped, more: object = {}): Row[] =>
  popped.messages.map(({ transactionId, partitionId, leaseId, consumerGroup }) => ({
    transactionId,
    partitionId,
    leaseId,
    consumerGroup,
    ...more,
  }));

/** Items t<from>, …, t<to - 1> for one partition. */
export const items = (queue: string, from: number, to: number, partition = "Default"): Row[] =>
  Array.from({ length: to - from }, (_, index) => ({
    queue,
    partition,
    transactionId: `t${from + index}`,
    payload: from + index,
  }));
