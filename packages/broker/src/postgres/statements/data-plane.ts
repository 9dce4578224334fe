/** The calls that carry messages: append, hand over, take, settle, renew, transact. */
import type { Statement } from "../session.ts";

const SEGMENTS = ["int4[]", "int4[]", "int4[]", "bytea[]", "bytea[]", "bytea[]"] as const;

export interface AppendRow {
  readonly lane: number;
  readonly status: number;
  readonly atOffset: number | null;
  readonly createdAtUs: number | null;
  readonly keys: string | null;
}

export const APPEND = { appended: 0, busy: 1, gone: 2, behind: 3, conflict: 4, missed: 5, plain: 6 } as const;

export const append: Statement<AppendRow> = {
  name: "queen_append",
  text: "select lane, status, at_offset, created_at, keys from queen.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
  parameters: ["int8[]", "int8[]", "int4[]", ...SEGMENTS, "bool[]"],
  read: (row) => ({
    lane: row.int4(0),
    status: row.int2(1),
    atOffset: row.int8OrNull(2),
    createdAtUs: row.int8OrNull(3),
    keys: row.latin1OrNull(4),
  }),
};

/** One segment for one lane, and the lease of whoever waits for it; no row if it is not as simple as that. */
export const handOver: Statement<{ readonly createdAtUs: number }> = {
  name: "queen_hand_over",
  text: "select created_at from queen.hand_over($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
  parameters: [
    "int8",
    "int8",
    "int4",
    "bytea",
    "bytea",
    "bytea",
    "bool",
    "int4",
    "int8",
    "int4",
    "bool",
    "int4",
  ],
  read: (row) => ({ createdAtUs: row.int8(0) }),
};

export interface SegmentRow {
  readonly firstOffset: number;
  readonly count: number;
  readonly createdAtUs: number;
  readonly ends: string;
  readonly body: string;
}

export interface TakeRow {
  readonly lane: number;
  readonly status: number;
  readonly fromOffset: number;
  readonly toOffset: number;
  readonly nextOffset: number;
  readonly dueMs: number;
  readonly acked: string | null;
  readonly segment: SegmentRow | null;
}

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

export const take: Statement<TakeRow> = {
  name: "queen_take",
  text: `select lane, status, from_offset, to_offset, next_offset, due_ms, acked,
                first_offset, count, created_at, ends, body
           from queen.take($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
  parameters: [
    "int4[]",
    "int4[]",
    "int8[]",
    "int4[]",
    "int8[]",
    "int4[]",
    "bool[]",
    "int4[]",
    "int4[]",
    "int4[]",
    "int4[]",
    "int8[]",
    "int8[]",
    "int8",
    "bool",
  ],
  read: (row) => ({
    lane: row.int4(0),
    status: row.int2(1),
    fromOffset: row.int8(2),
    toOffset: row.int8(3),
    nextOffset: row.int8(4),
    dueMs: row.int8(5),
    acked: row.textOrNull(6),
    segment: row.isNull(7)
      ? null
      : {
          firstOffset: row.int8(7),
          count: row.int4(8),
          createdAtUs: row.int8(9),
          ends: row.latin1(10),
          body: row.latin1(11),
        },
  }),
};

export interface SettleRow {
  readonly lease: number;
  readonly status: number;
  readonly committed: number;
  readonly released: boolean;
}

export const SETTLE = { done: 0, busy: 1, stale: 2, gone: 3 } as const;

export const settle: Statement<SettleRow> = {
  name: "queen_settle",
  text: "select lease, status, committed, released from queen.settle($1, $2, $3, $4, $5, $6, $7)",
  parameters: ["int8[]", "int4[]", "int8[]", "int8[]", "int8[]", "text[]", "bool[]"],
  read: (row) => ({
    lease: row.int4(0),
    status: row.int2(1),
    committed: row.int8(2),
    released: row.bool(3),
  }),
};

export interface SettleLeaseRow {
  readonly status: number;
  readonly committed: number;
  readonly released: boolean;
  readonly buried: readonly number[];
}

export const settleLease: Statement<SettleLeaseRow> = {
  name: "queen_settle_lease",
  text: `select status, coalesce(committed, 0), released, array_to_string(buried, ',')
           from queen.settle_lease($1, $2, $3, $4::int8multirange, $5, $6, $7, $8, $9, $10)`,
  parameters: ["int8", "int4", "int8", "text", "int8[]", "int8[]", "text[]", "bool", "int4", "int4"],
  read: (row) => ({
    status: row.int2(0),
    committed: row.int8(1),
    released: row.bool(2),
    buried: row.text(3) === "" ? [] : row.text(3).split(",").map(Number),
  }),
};

export const BURY = { nothing: 0, buried: 1, busy: 2 } as const;

export const buryExpired: Statement<number> = {
  name: "queen_bury_expired",
  text: "select queen.bury_expired($1, $2, $3)",
  parameters: ["int8", "int4", "int4"],
  read: (row) => row.int2(0),
};

/** Takes back what a pop with auto-ack took and could not deliver. */
export const unfinish: Statement<void> = {
  name: "queen_unfinish",
  text: "select queen.unfinish($1, $2, $3, $4, $5::int8multirange)",
  parameters: ["int8", "int4", "int8", "int8", "text"],
  read: () => undefined,
};

export interface RenewRow {
  readonly lease: number;
  readonly status: number;
  readonly expiresAtUs: number | null;
}

export const RENEW = { extended: 0, busy: 1, notHeld: 2 } as const;

export const renew: Statement<RenewRow> = {
  name: "queen_renew",
  text: "select lease, status, expires_at from queen.renew($1, $2, $3)",
  parameters: ["int8[]", "int8[]", "int4[]"],
  read: (row) => ({ lease: row.int4(0), status: row.int2(1), expiresAtUs: row.int8OrNull(2) }),
};

export interface TransactResult {
  readonly appended: readonly { lane: number; status: number; at: number; created: number }[];
  readonly settled: readonly {
    status: number;
    committed: number | null;
    released: boolean;
    buried: number[];
  }[];
}

export const transact: Statement<TransactResult> = {
  name: "queen_transact",
  text: "select queen.transact($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::jsonb, $11, $12, $13)::text",
  parameters: ["int8[]", "int8[]", "int4[]", ...SEGMENTS, "text", "int8[]", "int8[]", "bool[]"],
  read: (row) => JSON.parse(row.text(0)) as TransactResult,
};

export interface TransactManyRow {
  readonly lane: number | null;
  readonly atOffset: number | null;
  readonly createdAtUs: number | null;
  readonly lease: number | null;
  readonly committed: number | null;
  readonly released: boolean | null;
}

/** Rows for the transactions that are done; no row for one that is not as plain as that. */
export const transactMany: Statement<TransactManyRow> = {
  name: "queen_transact_many",
  text: `select lane, at_offset, created_at, lease, committed, released
           from queen.transact_many($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
  parameters: [
    "int4",
    "int4[]",
    "int8[]",
    "int8[]",
    "int4[]",
    "bool[]",
    ...SEGMENTS,
    "int4[]",
    "int8[]",
    "int4[]",
    "int8[]",
    "int8[]",
    "int8[]",
  ],
  read: (row) => ({
    lane: row.isNull(0) ? null : row.int4(0),
    atOffset: row.int8OrNull(1),
    createdAtUs: row.int8OrNull(2),
    lease: row.isNull(3) ? null : row.int4(3),
    committed: row.int8OrNull(4),
    released: row.isNull(5) ? null : row.bool(5),
  }),
};
