/**
 * The procedures as functions of a connection, with their result rows as objects and short ways to the
 * state that a test needs: a lane with messages, a cursor whose lease ran out.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { Row, TestDatabase } from "./database.ts";
import { appendParameters, type LaneAppend, type Message } from "./segments.ts";

export const APPEND = { appended: 0, busy: 1, gone: 2, behind: 3, conflict: 4, missed: 5, plain: 6 } as const;
export const TAKE = {
  taken: 0,
  busy: 1,
  missing: 2,
  empty: 3,
  leased: 4,
  delayed: 5,
  window: 6,
  retryDelay: 7,
  exhausted: 8,
  notTried: 9,
} as const;
export const SETTLE = { done: 0, busy: 1, stale: 2, gone: 3 } as const;
export const RENEW = { extended: 0, busy: 1, notHeld: 2 } as const;

export interface TestLane {
  readonly queue: string;
  readonly queueId: number;
  readonly partition: number;
  readonly group: number;
}

let queueCount = 0;
let tokenCount = 1000;

export const newToken = (): number => tokenCount++;

/** A partition of a new queue with a group's cursor and `messages` messages: m0, m1, … */
export async function newLane(client: pg.Client, messages = 0): Promise<TestLane> {
  const queue = `queue-${++queueCount}`;
  const { queueId, partition } = await openLane(client, queue);
  const group = await openGroup(client, queue, "workers");
  await openCursor(client, partition, group);
  if (messages > 0) await push(client, partition, numbered(messages));
  return { queue, queueId, partition, group };
}

export const numbered = (count: number, from = 0): Message[] =>
  Array.from({ length: count }, (_, index) => ({
    transactionId: `m${from + index}`,
    data: `{"n":${from + index}}`,
  }));

export async function openLane(
  client: pg.Client,
  queue: string,
  name = "Default",
): Promise<{ queueId: number; partition: number }> {
  const { rows } = await client.query("select * from queen.open_lanes($1, $2, true)", [[queue], [name]]);
  return { queueId: rows[0].queue_id, partition: rows[0].partition_id };
}

export async function openGroup(
  client: pg.Client,
  queue: string,
  name: string,
  mode = "all",
  from: string | null = null,
): Promise<number> {
  const { rows } = await client.query("select * from queen.open_group($1, $2, $3, $4)", [
    queue,
    name,
    mode,
    from,
  ]);
  return rows[0].group_id;
}

export async function openCursor(client: pg.Client, partition: number, group: number): Promise<void> {
  const { rows } = await client.query("select * from queen.open_cursors($1, $2)", [[partition], [group]]);
  assert.deepEqual(rows, [{ cursor: 0, status: 0 }]);
}

export async function append(
  client: pg.Client,
  lanes: readonly LaneAppend[],
  segmentMessages?: number,
): Promise<Row[]> {
  const { rows } = await client.query("select * from queen.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)", [
    ...(await appendParameters(client, lanes, segmentMessages)),
    lanes.map((lane) => lane.sealed ?? false),
  ]);
  return rows;
}

export interface HandOver extends Cursor {
  readonly known: number;
  readonly messages: readonly Message[];
  readonly sealed?: boolean;
  readonly token?: number;
  readonly leaseSeconds?: number;
  readonly autoAck?: boolean;
  readonly budget?: number;
}

/** Whether it was done. */
export async function handOver(client: pg.Client, ask: HandOver): Promise<boolean> {
  const columns = (await appendParameters(client, [ask], Infinity)) as unknown[][];
  const [messages, keys, ends, body] = columns.slice(5).map(([only]) => only);
  const { rows } = await client.query(
    "select * from queen.hand_over($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    [
      ask.partition,
      ask.known,
      messages,
      keys,
      ends,
      body,
      ask.sealed ?? false,
      ask.group,
      ask.token ?? newToken(),
      ask.leaseSeconds ?? 300,
      ask.autoAck ?? false,
      ask.budget ?? 100,
    ],
  );
  return rows.length === 1;
}

/** Appends to one lane with everything known, and returns the offset of the first message. */
export async function push(
  client: pg.Client,
  partition: number,
  messages: readonly Message[],
  segmentMessages?: number,
): Promise<number> {
  const known = await nextOffset(client, partition);
  const rows = await append(client, [{ partition, known, messages }], segmentMessages);
  assert.deepEqual(
    rows.map((row) => row.status),
    [APPEND.appended],
  );
  return rows[0]!.at_offset;
}

export async function nextOffset(client: pg.Client, partition: number): Promise<number> {
  const { rows } = await client.query("select next_offset from queen.partitions where id = $1", [partition]);
  return rows[0].next_offset;
}

export interface Ask {
  readonly partition: number;
  readonly group: number;
  readonly pop?: number;
  readonly budget?: number;
  readonly token?: number;
  readonly leaseSeconds?: number;
  readonly autoAck?: boolean;
  readonly delaySeconds?: number;
  readonly windowSeconds?: number;
  readonly ttlSeconds?: number;
  readonly retryLimit?: number;
  readonly have?: readonly [number, number];
}

export interface Answer {
  readonly status: number;
  readonly from: number;
  readonly to: number;
  readonly dueMs: number;
  readonly acked: string | null;
  readonly expiresAt: Date;
  readonly segments: readonly Row[];
  /** The transactionIds that a consumer gets, in order. */
  readonly delivered: readonly string[];
}

/** One answer per ask, in their order. */
export async function take(
  client: pg.Client,
  asks: readonly Ask[],
  limit: { bytes: number; fit: boolean } | undefined = undefined,
): Promise<Answer[]> {
  const { rows } = await client.query(
    "select * from queen.take($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
    [
      asks.map((ask, index) => ask.pop ?? index),
      asks.map((ask) => ask.budget ?? 100),
      asks.map((ask) => ask.partition),
      asks.map((ask) => ask.group),
      asks.map((ask) => ask.token ?? newToken()),
      asks.map((ask) => ask.leaseSeconds ?? 300),
      asks.map((ask) => ask.autoAck ?? false),
      asks.map((ask) => ask.delaySeconds ?? 0),
      asks.map((ask) => ask.windowSeconds ?? 0),
      asks.map((ask) => ask.ttlSeconds ?? 0),
      asks.map((ask) => ask.retryLimit ?? 3),
      asks.map((ask) => ask.have?.[0] ?? 0),
      asks.map((ask) => ask.have?.[1] ?? 0),
      limit?.bytes ?? null,
      limit?.fit ?? false,
    ],
  );
  return asks.map((_, index) => {
    const own = (rows as Row[]).filter((row) => row.lane === index);
    const row = own[0]!;
    const segments = own.filter((each) => each.first_offset !== null);
    const finished = rangesOf(row.acked);
    const delivered: string[] = [];
    for (const segment of segments) {
      for (let place = 0; place < segment.count; place++) {
        const offset = segment.first_offset + place;
        if (offset < row.from_offset || offset >= row.to_offset) continue;
        if (finished.some(([from, to]) => offset >= from && offset < to)) continue;
        delivered.push(transactionIdAt(segment, place));
      }
    }
    return {
      status: row.status,
      from: row.from_offset,
      to: row.to_offset,
      dueMs: row.due_ms,
      acked: row.acked,
      expiresAt: row.expires_at,
      segments,
      delivered,
    };
  });
}

/** Takes one lane, and expects to get it. */
export async function takeOne(client: pg.Client, ask: Ask): Promise<Answer> {
  const [answer] = await take(client, [ask]);
  assert.equal(answer!.status, TAKE.taken);
  return answer!;
}

function rangesOf(text: string | null): [number, number][] {
  return [...(text ?? "").matchAll(/\[(\d+),(\d+)\)/g)].map(([, from, to]) => [Number(from), Number(to)]);
}

function transactionIdAt(segment: Row, place: number): string {
  const start = place === 0 ? 0 : segment.ends.readUInt32BE(place * 4 - 4);
  const fragment = segment.body.toString("utf8", start, segment.ends.readUInt32BE(place * 4));
  return JSON.parse(`{${fragment}}`).transactionId;
}

export interface Settlement {
  readonly partition: number;
  readonly group: number;
  readonly token: number;
  readonly from?: number;
  readonly to?: number;
  readonly more?: string;
  readonly release?: boolean;
}

export async function settle(client: pg.Client, settlements: readonly Settlement[]): Promise<Row[]> {
  const { rows } = await client.query(
    "select * from queen.settle($1, $2, $3, $4, $5, $6, $7) order by lease",
    [
      settlements.map((each) => each.partition),
      settlements.map((each) => each.group),
      settlements.map((each) => each.token),
      settlements.map((each) => each.from ?? 0),
      settlements.map((each) => each.to ?? 0),
      settlements.map((each) => each.more ?? null),
      settlements.map((each) => each.release ?? false),
    ],
  );
  return rows;
}

export interface Ends {
  readonly done?: string;
  readonly failed?: readonly number[];
  readonly dead?: readonly number[];
  /** Of the failed ones, then of the dead ones. */
  readonly errors?: readonly string[];
  readonly release?: boolean;
  readonly retryLimit?: number;
  readonly retryDelayMs?: number;
}

type Cursor = Pick<TestLane, "partition" | "group">;

export async function settleLease(
  client: pg.Client,
  { partition, group }: Cursor,
  token: number,
  ends: Ends,
): Promise<Row> {
  const { failed = [], dead = [] } = ends;
  const { rows } = await client.query(
    "select * from queen.settle_lease($1, $2, $3, $4::int8multirange, $5, $6, $7, $8, $9, $10)",
    [
      partition,
      group,
      token,
      ends.done ?? "{}",
      failed,
      dead,
      ends.errors ?? [...failed, ...dead].map((offset) => `error at ${offset}`),
      ends.release ?? false,
      ends.retryLimit ?? 3,
      ends.retryDelayMs ?? 0,
    ],
  );
  assert.equal(rows.length, 1);
  return rows[0];
}

export async function renew(
  client: pg.Client,
  leases: readonly { partition: number; token: number; seconds: number }[],
): Promise<Row[]> {
  const { rows } = await client.query("select * from queen.renew($1, $2, $3) order by lease", [
    leases.map((lease) => lease.partition),
    leases.map((lease) => lease.token),
    leases.map((lease) => lease.seconds),
  ]);
  return rows;
}

export interface Transaction {
  readonly pushes?: readonly LaneAppend[];
  readonly acks?: readonly (Ends & { partition: number; group: number; token: number })[];
  readonly required?: readonly { partition: number; token: number }[];
}

export async function transact(client: pg.Client, transaction: Transaction): Promise<Row> {
  const { pushes = [], acks = [], required = [] } = transaction;
  const settles = acks.map(({ failed = [], dead = [], ...ack }) => ({
    done: "{}",
    errors: [...failed, ...dead].map((offset) => `error at ${offset}`),
    release: false,
    retryLimit: 3,
    retryDelayMs: 0,
    ...ack,
    failed,
    dead,
  }));
  const { rows } = await client.query(
    "select queen.transact($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::jsonb, $11, $12, $13) as result",
    [
      ...(await appendParameters(client, pushes)),
      JSON.stringify(settles),
      required.map((lease) => lease.partition),
      required.map((lease) => lease.token),
      pushes.map((lane) => lane.sealed ?? false),
    ],
  );
  return rows[0].result;
}

export interface PlainTransaction {
  readonly pushes?: readonly LaneAppend[];
  readonly acks?: readonly (Cursor & { token: number; from: number; to: number })[];
}

/** Which of the transactions were done, where the messages of each of their lanes are, and what is told of their leases. */
export async function transactMany(
  client: pg.Client,
  transactions: readonly PlainTransaction[],
): Promise<{ done: number[]; offsets: number[]; settled: { committed: number; released: boolean }[] }> {
  const of = <T>(parts: (transaction: PlainTransaction) => readonly T[] | undefined) =>
    transactions.flatMap((transaction, index) =>
      (parts(transaction) ?? []).map((part) => ({ part, index: index + 1 })),
    );
  const lanes = of(({ pushes }) => pushes);
  const leases = of(({ acks }) => acks);
  const [partitions, known, counts, ...segments] = await appendParameters(
    client,
    lanes.map(({ part }) => part),
  );
  const { rows } = await client.query(
    `select * from queen.transact_many($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
                                       $13, $14, $15, $16, $17, $18)`,
    [
      transactions.length,
      lanes.map(({ index }) => index),
      partitions,
      known,
      counts,
      lanes.map(({ part }) => part.sealed ?? false),
      ...segments,
      leases.map(({ index }) => index),
      leases.map(({ part }) => part.partition),
      leases.map(({ part }) => part.group),
      leases.map(({ part }) => part.token),
      leases.map(({ part }) => part.from),
      leases.map(({ part }) => part.to),
    ],
  );
  const told = [
    ...rows.filter((row) => row.lane !== null).map((row) => lanes[row.lane]!.index - 1),
    ...rows.filter((row) => row.lease !== null).map((row) => leases[row.lease]!.index - 1),
  ];
  const done = [...new Set(told)].sort((a, b) => a - b);
  for (const index of done) {
    const { pushes = [], acks = [] } = transactions[index]!;
    const rowsOfIt = told.filter((each) => each === index);
    assert.equal(
      rowsOfIt.length,
      pushes.length + acks.length,
      "a row for each lane and lease of what is done",
    );
  }
  const offsets = rows.filter((row) => row.lane !== null).map((row) => row.at_offset);
  const settled = rows
    .filter((row) => row.lease !== null)
    .map(({ committed, released }) => ({ committed, released }));
  return { done, offsets, settled };
}

export const BURY = { nothing: 0, buried: 1, busy: 2 } as const;

export async function buryExpired(client: pg.Client, { partition, group }: Cursor, retryLimit: number) {
  const { rows } = await client.query("select queen.bury_expired($1, $2, $3) as status", [
    partition,
    group,
    retryLimit,
  ]);
  return rows[0].status as number;
}

/** A group's place in a lane, the lease reduced to its token and its end. */
export async function readCursor(client: pg.Client, { partition, group }: Cursor): Promise<Row> {
  const { rows } = await client.query(
    `select committed, acked::text, lease_token as token, lease_until as until, failures
       from queen.partition_consumers where partition_id = $1 and group_id = $2`,
    [partition, group],
  );
  return rows[0];
}

/** Everything in the database that an operation may change, to be compared before and after. */
export async function readEverything(client: pg.Client): Promise<Row[]> {
  const { rows } = await client.query(`
    select 'partition' as kind, to_jsonb(p) as row from queen.partitions p
    union all select 'segment', to_jsonb(s) from queen.segments s
    union all select 'cursor', to_jsonb(c) from queen.partition_consumers c
    union all select 'letter', to_jsonb(d) from queen.dead_letters d
    union all select 'hint', to_jsonb(h) from queen.hints h
    order by 1, 2`);
  return rows;
}

/** Lets the lease on a lane run out now. */
export async function expire(client: pg.Client, { partition, group }: Cursor): Promise<void> {
  const { rowCount } = await client.query(
    `update queen.partition_consumers set lease_expires_at = clock_timestamp() - interval '1 second'
      where partition_id = $1 and group_id = $2 and lease_token is not null`,
    [partition, group],
  );
  assert.equal(rowCount, 1, "there is a lease that can run out");
}

/** Makes the partition's log older by some seconds. */
export async function age(client: pg.Client, partition: number, seconds: number): Promise<void> {
  const interval = `${seconds} seconds`;
  await client.query(
    "update queen.segments set created_at = created_at - $2::interval where partition_id = $1",
    [partition, interval],
  );
  await client.query("update queen.partitions set last_at = last_at - $2::interval where id = $1", [
    partition,
    interval,
  ]);
}

/** Forgets the log of a partition below an offset, as retention does. */
export async function trim(client: pg.Client, partition: number, below: number): Promise<void> {
  await client.query("delete from queen.segments where partition_id = $1 and first_offset + count <= $2", [
    partition,
    below,
  ]);
  await client.query("update queen.partitions set start_offset = $2 where id = $1", [partition, below]);
}

export async function processId(client: pg.Client): Promise<number> {
  return (await client.query("select pg_backend_pid() as pid")).rows[0].pid;
}

/** Waits for the moment when the connection waits for a lock. */
export async function waitsForLock(database: TestDatabase, pid: number): Promise<void> {
  for (const startedMs = performance.now(); performance.now() - startedMs < 10_000; await sleep(5)) {
    const rows = await database.query("select wait_event_type from pg_stat_activity where pid = $1", [pid]);
    if (rows[0]?.wait_event_type === "Lock") return;
  }
  throw new Error("the other connection never came to wait for a lock");
}
