/** transact_many (P6): does each plain transaction as transact would, and nothing of any other. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type Row, type TestDatabase } from "../support/database.ts";
import {
  expire,
  newLane,
  newToken,
  nextOffset,
  numbered,
  openCursor,
  openGroup,
  type PlainTransaction,
  push,
  readCursor,
  readEverything,
  settle,
  type TestLane,
  takeOne,
  transact,
  transactMany,
} from "../support/procedures.ts";

let database: TestDatabase;
let client: pg.Client;
let other: pg.Client;

before(async () => {
  database = await createDatabase();
  [client, other] = await Promise.all([database.client(), database.client()]);
});
after(() => database?.drop());

/** A lane to ack, a lane to push to, and the transaction that does both. */
interface Pipe {
  readonly from: TestLane & { token: number };
  readonly to: TestLane;
  readonly transaction: PlainTransaction;
}

async function newPipe([from, to] = [0, 2]): Promise<Pipe> {
  const source = { ...(await newLane(client, 4)), token: newToken() };
  await takeOne(client, { ...source, budget: 3 });
  const sink = await newLane(client, 1);
  const transaction = {
    pushes: [{ partition: sink.partition, known: 1, messages: numbered(2, 1) }],
    acks: [{ ...source, from, to }],
  };
  return { from: source, to: sink, transaction };
}

/** What is stored of both lanes, without what differs from lane to lane. */
async function stateOf({ from, to }: Pipe): Promise<Row[]> {
  const { rows: cursors } = await client.query(
    `select committed, acked, failures, lease_until, not_before, lease_token is null as free, lease_expires_at is null as ended,
            last_consumed_at > lease_acquired_at as consumed
       from queen.partition_consumers where partition_id = $1 and group_id = $2`,
    [from.partition, from.group],
  );
  const { rows: lanes } = await client.query(
    `select p.next_offset, p.start_offset, p.last_at = s.created_at as at_last, s.first_offset, s.count, s.keys, s.ends, s.body,
            (select count(*)::int4 from queen.hints h where h.partition_ids @> array[p.id]) as hints
       from queen.partitions p join queen.segments s on s.partition_id = p.id
      where p.id = $1 and s.first_offset > 0 order by s.first_offset`,
    [to.partition],
  );
  assert.ok(cursors.length === 1 && lanes.length > 0);
  return [...cursors, ...lanes];
}

const nothing = async (): Promise<void> => {};

for (const [what, range, prepare] of [
  ["the first messages of a lease", [0, 2], nothing],
  ["a whole lease", [0, 3], nothing],
  ["later messages of a lease", [1, 3], nothing],
  [
    "the first message, where a later one is finished",
    [0, 1],
    ({ from }) => settle(client, [{ ...from, from: 2, to: 3 }]),
  ],
  [
    "what is left in the middle",
    [1, 2],
    ({ from }) => settle(client, [{ ...from, from: 0, to: 1, more: "{[2,3)}" }]),
  ],
  [
    "a message that failed before",
    [0, 2],
    ({ from }) =>
      client.query(
        `update queen.partition_consumers set failures = '{"1": {"n": 1}, "2": {"n": 2}}' where partition_id = $1`,
        [from.partition],
      ),
  ],
] as [string, [number, number], (pipe: Pipe) => Promise<unknown>][]) {
  test(`many transactions that ack ${what} leave behind what each alone would`, async () => {
    const pipes = [await newPipe(range), await newPipe(range), await newPipe(range)];
    const alone = await newPipe(range);
    for (const pipe of [...pipes, alone]) await prepare(pipe);
    const answer = await transactMany(
      client,
      pipes.map((pipe) => pipe.transaction),
    );
    const { settled } = await transact(client, {
      ...alone.transaction,
      acks: [{ ...alone.from, done: `{[${range.join()})}` }],
      required: [alone.from],
    });
    const [{ committed, released }] = settled;
    assert.deepEqual(answer, {
      done: [0, 1, 2],
      offsets: [1, 1, 1],
      settled: Array(3).fill({ committed, released }),
    });
    for (const pipe of pipes) assert.deepEqual(await stateOf(pipe), await stateOf(alone));
  });
}

test("one transaction may have several lanes and leases, or only the one or the other", async () => {
  const [first, second, third] = [await newPipe(), await newPipe(), await newPipe()];
  const both = {
    pushes: [...second.transaction.pushes!, ...first.transaction.pushes!],
    acks: [...first.transaction.acks!, ...second.transaction.acks!],
  };
  const pushes = [{ partition: third.to.partition, known: 1, messages: numbered(1_500, 1) }];
  const { done } = await transactMany(client, [both, { acks: third.transaction.acks! }, { pushes }]);
  assert.deepEqual(done, [0, 1, 2]);
  for (const [pipe, next] of [
    [first, 3],
    [second, 3],
    [third, 1_501],
  ] as const) {
    assert.equal(await nextOffset(client, pipe.to.partition), next);
  }
  const { delivered } = await takeOne(client, { ...third.to, budget: 2_000 });
  assert.deepEqual(
    delivered,
    numbered(1_501).map((message) => message.transactionId),
  );
});

test("other groups of a lane are not touched", async () => {
  const { from, transaction } = await newPipe([0, 3]);
  const audit = { ...from, group: await openGroup(client, from.queue, "audit") };
  await openCursor(client, audit.partition, audit.group);
  await transactMany(client, [transaction]);
  assert.deepEqual((await takeOne(client, { ...audit, budget: 10 })).delivered, ["m0", "m1", "m2", "m3"]);
});

const onPartition = (set: string) => (pipe: Pipe) =>
  client.query(`update queen.partitions set ${set} where id = $1`, [pipe.to.partition]);
const onCursor = (set: string) => (pipe: Pipe) =>
  client.query(`update queen.partition_consumers set ${set} where partition_id = $1`, [pipe.from.partition]);

const HINDRANCES: Record<string, (pipe: Pipe) => Promise<unknown>> = {
  "others appended meanwhile": ({ to }) => push(client, to.partition, numbered(1, 100)),
  "the lane must be encrypted": onPartition("encryption_required = true"),
  "the lane was deleted": ({ to }) =>
    client.query("delete from queen.partitions where id = $1", [to.partition]),
  "the lease has another holder": async ({ from }) => {
    await expire(client, from);
    await takeOne(client, { ...from, token: newToken(), budget: 3 });
  },
  "the lease was given back": ({ from }) => settle(client, [{ ...from, release: true }]),
  "the lease ends before the acks": onCursor("lease_until = 1"),
  "the messages are finished": ({ from }) => settle(client, [{ ...from, from: 0, to: 2 }]),
  "one of them is finished": ({ from }) => settle(client, [{ ...from, from: 0, to: 1 }]),
  "a later one is finished": ({ from }) => settle(client, [{ ...from, from: 1, to: 2 }]),
  "the group was set on": onCursor("committed = 1"),
  "the group has no cursor": ({ from }) =>
    client.query("delete from queen.partition_consumers where partition_id = $1", [from.partition]),
};

for (const [hindrance, hinder] of Object.entries(HINDRANCES)) {
  test(`a transaction is left undone where ${hindrance}, and its neighbours are done`, async () => {
    const [left, hindered, right] = [await newPipe(), await newPipe(), await newPipe()];
    await hinder(hindered);
    const before = await readEverything(client);
    assert.deepEqual(await transactMany(client, [hindered.transaction]), {
      done: [],
      offsets: [],
      settled: [],
    });
    assert.deepEqual(await readEverything(client), before, "alone, it changes nothing at all");
    const rowsOf = async ({ from, to }: Pipe): Promise<Row[]> => [
      ...(await database.query("select * from queen.partitions where id = any ($1)", [
        [from.partition, to.partition],
      ])),
      ...(await database.query("select * from queen.segments where partition_id = $1", [to.partition])),
      ...(await database.query("select * from queen.partition_consumers where partition_id = $1", [
        from.partition,
      ])),
    ];
    const untouched = await rowsOf(hindered);
    const { done } = await transactMany(
      client,
      [left, hindered, right].map((pipe) => pipe.transaction),
    );
    assert.deepEqual(done, [0, 2]);
    assert.deepEqual(await rowsOf(hindered), untouched);
    for (const { from, to } of [left, right]) {
      assert.equal(await nextOffset(client, to.partition), 3);
      assert.equal((await readCursor(client, from)).committed, 2);
    }
  });
}

test("of two transactions that ack the same messages, one is done, whatever they push", async () => {
  const [one, two] = [await newPipe(), await newPipe()];
  const { done } = await transactMany(client, [
    one.transaction,
    { pushes: two.transaction.pushes!, acks: one.transaction.acks! },
  ]);
  assert.deepEqual(done, [0]);
  assert.equal(await nextOffset(client, one.to.partition), 3);
  assert.equal(await nextOffset(client, two.to.partition), 1);
});

test("transactions that push to the same lane follow each other, and the group's place moves by all of them", async () => {
  const { from, to } = await newPipe();
  const third = await newPipe();
  const pushing = (ids: number[], acks: PlainTransaction["acks"]): PlainTransaction => ({
    pushes: [{ partition: to.partition, known: 1, messages: ids.flatMap((id) => numbered(1, id)) }],
    ...(acks && { acks }),
  });
  const answer = await transactMany(client, [
    pushing([10, 11], [{ ...from, from: 1, to: 2 }]),
    pushing([20], [{ ...third.from, token: newToken(), from: 0, to: 1 }]), // its lease is lost
    third.transaction,
    pushing([30, 31, 32], [{ ...from, from: 0, to: 1 }]),
    pushing([40], undefined),
  ]);
  assert.deepEqual(answer.done, [0, 2, 3, 4]);
  assert.deepEqual(answer.offsets, [1, 1, 3, 6]);
  assert.equal(await nextOffset(client, to.partition), 7);
  const { delivered } = await takeOne(client, { ...to, budget: 10 });
  assert.deepEqual(delivered, ["m0", "m10", "m11", "m30", "m31", "m32", "m40"]);
  const { committed, acked } = await readCursor(client, from);
  assert.deepEqual([committed, acked], [2, null]);
  const { rows } = await client.query(
    "select distinct s.created_at = p.last_at as at_last from queen.segments s join queen.partitions p on p.id = s.partition_id where p.id = $1 and s.first_offset > 0",
    [to.partition],
  );
  assert.deepEqual(rows, [{ at_last: true }]);
});

test("an encrypted message goes into a lane that must be encrypted", async () => {
  const { to, transaction } = await newPipe();
  await client.query("update queen.partitions set encryption_required = true where id = $1", [to.partition]);
  const pushes = transaction.pushes!.map((lane) => ({ ...lane, sealed: true }));
  assert.deepEqual((await transactMany(client, [{ ...transaction, pushes }])).done, [0]);
});

for (const [row, lock] of [
  [
    "lane",
    ({ to }: Pipe) => ["select 1 from queen.partitions where id = $1 for no key update", to.partition],
  ],
  [
    "cursor",
    ({ from }: Pipe) => [
      "select 1 from queen.partition_consumers where partition_id = $1 for no key update",
      from.partition,
    ],
  ],
] as const) {
  test(`a transaction whose ${row} another one holds is left undone, and nobody waits`, async () => {
    const [held, free] = [await newPipe(), await newPipe()];
    const [text, partition] = lock(held);
    await other.query("begin");
    await other.query(text as string, [partition]);
    assert.deepEqual((await transactMany(client, [held.transaction, free.transaction])).done, [1]);
    await other.query("rollback");
    assert.deepEqual((await transactMany(client, [held.transaction, free.transaction])).done, [0]);
  });
}

test("of many that race for the same lanes and leases, one is done each time", async () => {
  const racers = await Promise.all(Array.from({ length: 5 }, () => database.client()));
  for (let round = 0; round < 30; round++) {
    const pipes = [await newPipe(), await newPipe()];
    const transactions = pipes.map((pipe) => pipe.transaction);
    const answers = await Promise.all(
      racers.map((racer, index) =>
        transactMany(racer, index % 2 ? transactions : [...transactions].reverse()),
      ),
    );
    const done = answers.flatMap((answer, index) =>
      answer.done.map((each) => (index % 2 ? each : transactions.length - 1 - each)),
    );
    assert.deepEqual(done.sort(), [0, 1], `round ${round}`);
    for (const { from, to } of pipes) {
      assert.equal(await nextOffset(client, to.partition), 3);
      assert.equal((await readCursor(client, from)).committed, 2);
    }
  }
});
