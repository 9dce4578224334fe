/** The session against a real PostgreSQL, through proxies where the network has to misbehave. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import {
  ConnectionLostError,
  classify,
  isDeterministic,
  isRetryable,
  PostgresError,
} from "../src/postgres/errors.ts";
import type { Origin } from "../src/postgres/lineage.ts";
import type { RowReader } from "../src/postgres/row-reader.ts";
import {
  type ConnectionSettings,
  Session,
  type SessionOptions,
  type Statement,
} from "../src/postgres/session.ts";
import type { ParameterType } from "../src/postgres/wire-writer.ts";
import { until } from "./until.ts";

const url = process.env.QUEEN_TEST_DATABASE_URL;
if (url === undefined)
  throw new Error("QUEEN_TEST_DATABASE_URL must name a PostgreSQL that these tests may use, as superuser");

const SETTINGS = settingsOf(new URL(url));
const SERVER = SETTINGS.hosts[0]!;

const OPTIONS: SessionOptions = {
  applicationName: "queen-test",
  connectTimeoutMs: 5_000,
  callTimeoutMs: 20_000,
  statementTimeoutMs: 15_000,
  lockTimeoutMs: 4_000,
  idleInTransactionTimeoutMs: 30_000,
};

function settingsOf(from: URL): ConnectionSettings {
  return {
    hosts: [{ host: from.hostname || "localhost", port: Number(from.port || 5432) }],
    database: decodeURIComponent(from.pathname.slice(1)) || "postgres",
    user: decodeURIComponent(from.username) || "postgres",
    password: decodeURIComponent(from.password) || undefined,
    ssl: false,
  };
}

/** A session that ends with its test. */
async function open(
  t: TestContext,
  settings: Partial<ConnectionSettings> = {},
  options: Partial<SessionOptions> = {},
): Promise<Session> {
  const session = await Session.connect({ ...SETTINGS, ...settings }, { ...OPTIONS, ...options });
  t.after(() => session.destroy(new Error("the test is over")));
  return session;
}

let statementCount = 0;

function statement<Row>(
  text: string,
  parameters: readonly ParameterType[],
  read: (row: RowReader) => Row,
): Statement<Row> {
  return { name: `test_${statementCount++}`, text, parameters, read };
}

const text = (sql: string): Statement<string | null> => statement(sql, [], (row) => row.textOrNull(0));

const error = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (reason) => reason,
  );

const stateOf = statement("select state from pg_stat_activity where pid = $1", ["int4"], (row) =>
  row.textOrNull(0),
);

/** Resolves when the server works on a call of the session. */
const isAtWork = (session: Session, observer: Session): Promise<void> =>
  until("the server works on the call", async () => {
    const [state] = await observer.run(stateOf, [session.processId]);
    return state === "active";
  });

/** A TCP proxy whose way back to the client is `forward`. */
async function proxy(
  t: TestContext,
  forward: (client: Socket, chunk: Buffer) => Promise<void> | void,
): Promise<{ hosts: { host: string; port: number }[]; sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const server: Server = createServer((client) => {
    const upstream = connect(SERVER.port, SERVER.host);
    sockets.push(client, upstream);
    client.setNoDelay(true);
    client.on("data", (chunk) => upstream.write(chunk));
    let turn = Promise.resolve();
    upstream.on("data", (chunk: Buffer) => {
      turn = turn.then(() => forward(client, chunk));
    });
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      socket.on("error", () => {});
      socket.on("close", () => other.destroy());
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { hosts: [{ host: "127.0.0.1", port: (server.address() as AddressInfo).port }], sockets };
}

test("every scalar type goes there and back", async (t) => {
  const session = await open(t);
  const echo = statement(
    "select $1, $2, $3, $4, $5, $6, $7",
    ["int2", "int4", "int8", "float8", "bool", "text", "bytea"],
    (row) => [
      row.int2OrNull(0),
      row.int4OrNull(1),
      row.int8OrNull(2),
      row.float8OrNull(3),
      row.boolOrNull(4),
      row.textOrNull(5),
      row.latin1OrNull(6),
    ],
  );
  const rows = [
    [1, 2, 3, 4.5, true, "é😀", "\u0000\u00ff"],
    [-(2 ** 15), -(2 ** 31), -(2 ** 53) + 1, -1e-300, false, "", ""],
    [2 ** 15 - 1, 2 ** 31 - 1, 2 ** 32 + 1, Number.POSITIVE_INFINITY, true, "x".repeat(70_000), "\u0080"],
    [null, null, null, null, null, null, null],
  ];
  for (const row of rows) assert.deepEqual(await session.run(echo, row), [row]);
});

test("every array type goes there and back", async (t) => {
  const session = await open(t);
  const echo = statement(
    `select a, b, c, d, e, f, g
       from unnest($1, $2, $3, $4, $5, $6, $7) with ordinality as u (a, b, c, d, e, f, g, place)
      order by place`,
    ["int2[]", "int4[]", "int8[]", "float8[]", "bool[]", "text[]", "bytea[]"],
    (row) => [
      row.int2OrNull(0),
      row.int4OrNull(1),
      row.int8OrNull(2),
      row.float8OrNull(3),
      row.boolOrNull(4),
      row.textOrNull(5),
      row.bytesOrNull(6)?.toString("latin1") ?? null,
    ],
  );
  const rows = [
    [1, -2, 2 ** 40, 0.5, true, "a,\"{}'\\", "\u0000\u00ff"],
    [null, null, null, null, null, null, null],
    [-3, 2 ** 31 - 1, -(2 ** 40) - 7, -0.25, false, "NULL", ""],
  ];
  const columns = rows[0]!.map((_, column) => rows.map((row) => row[column]!));
  assert.deepEqual(await session.run(echo, columns), rows);
  columns[6] = [Buffer.from([0, 255]), null, Buffer.alloc(0)] as never;
  assert.deepEqual(await session.run(echo, columns), rows, "bytes may be given as a Buffer");
  assert.deepEqual(await session.run(echo, [[], [], [], [], [], [], []]), []);
});

test("an empty array and a null array are different things", async (t) => {
  const session = await open(t);
  const size = statement("select cardinality($1)", ["int8[]"], (row) => row.int4OrNull(0));
  assert.deepEqual(await session.run(size, [[]]), [0]);
  assert.deepEqual(await session.run(size, [null]), [null]);
});

test("an int8 past 2^53 fails its call and not the session", async (t) => {
  const session = await open(t);
  const large = statement("select 9007199254740993", [], (row) => row.int8(0));
  await assert.rejects(session.run(large, []), RangeError);
  assert.deepEqual(await session.run(text("select 'well'"), []), ["well"]);
});

test("a value that cannot be encoded is refused before anything is sent", async (t) => {
  const session = await open(t);
  const echo = statement("select $1", ["int4"], (row) => row.int4(0));
  await assert.rejects(session.run(echo, [2 ** 31]), RangeError);
  await assert.rejects(session.run(echo, []), TypeError);
  assert.deepEqual(await session.run(echo, [7]), [7]);
});

test("a body of 5 MB arrives byte for byte, and the call after it too", async (t) => {
  const session = await open(t);
  const body = Buffer.alloc(5_000_000, Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)));
  const echo = statement("select u from unnest($1) as u", ["bytea[]"], (row) => row.latin1(0));
  const latin1 = body.toString("latin1");
  for (let round = 0; round < 3; round++) {
    const [first, second] = await session.run(echo, [[latin1, "tail"]]);
    assert.ok(first === latin1);
    assert.equal(second, "tail");
  }
});

test("a result of 30 MB is read, as rows and as one field", async (t) => {
  const session = await open(t);
  const rows = statement("select repeat('x', 3000), i from generate_series(1, 10000) as i", [], (row) => {
    assert.equal(row.latin1(0).length, 3000);
    return row.int4(1);
  });
  const numbers = await session.run(rows, []);
  assert.deepEqual([numbers.length, numbers[0], numbers[9999]], [10_000, 1, 10_000]);
  const field = statement("select repeat('x', 30000000)", [], (row) => row.latin1(0).length);
  assert.deepEqual(await session.run(field, []), [30_000_000]);
});

test("an error is an answer: it tells what PostgreSQL said, and the session goes on", async (t) => {
  const session = await open(t);
  const divide = statement("select 1 / $1", ["int4"], (row) => row.int4(0));
  for (let round = 0; round < 2; round++) {
    const reason = await error(session.run(divide, [0]));
    assert.ok(reason instanceof PostgresError);
    assert.equal(reason.sqlstate, "22012");
    assert.equal(reason.severity, "ERROR");
    assert.match(reason.message, /division by zero/);
    assert.deepEqual(await session.run(divide, [1]), [1]);
  }
  const syntax = await error(session.run(text("selekt 1"), []));
  assert.equal((syntax as PostgresError).sqlstate, "42601");
  const raised = await error(
    session.simple("do $$ begin raise 'm' using detail = 'd', hint = 'h', errcode = 'QN409'; end $$"),
  );
  assert.ok(raised instanceof PostgresError);
  assert.deepEqual([raised.message, raised.detail, raised.hint, raised.sqlstate], ["m", "d", "h", "QN409"]);
  assert.deepEqual(await session.run(text("select 'well'"), []), ["well"]);
});

test("an error after some rows gives no rows", async (t) => {
  const session = await open(t);
  const late = statement("select 1 / (5000 - i) from generate_series(1, 5000) as i", [], (row) =>
    row.int4(0),
  );
  assert.equal(((await error(session.run(late, []))) as PostgresError).sqlstate, "22012");
  assert.equal(session.closed, false);
});

test("what PostgreSQL says becomes what a client is told", async (t) => {
  const session = await open(t);
  const cases = [
    ["QN400", "VALIDATION_FAILED", false, true],
    ["QN404", "NOT_FOUND", false, true],
    ["QN409", "CONFLICT", false, true],
    ["22021", "VALIDATION_FAILED", false, true],
    ["54000", "VALIDATION_FAILED", false, true],
    ["23505", "INTERNAL", false, true],
    ["42P01", "INTERNAL", false, true],
    ["P0001", "INTERNAL", false, false],
    ["25006", "DATABASE_UNAVAILABLE", true, false],
    ["40001", "DATABASE_UNAVAILABLE", true, false],
    ["40P01", "DATABASE_UNAVAILABLE", true, false],
    ["53100", "DATABASE_UNAVAILABLE", true, false],
    ["53300", "DATABASE_UNAVAILABLE", true, false],
    ["55P03", "DATABASE_UNAVAILABLE", true, false],
    ["57014", "DATABASE_UNAVAILABLE", true, false],
    ["57P01", "DATABASE_UNAVAILABLE", true, false],
    ["58030", "DATABASE_UNAVAILABLE", true, false],
    ["08006", "DATABASE_UNAVAILABLE", true, false],
  ] as const;
  for (const [sqlstate, code, retryable, deterministic] of cases) {
    const reason = await error(session.simple(`do $$ begin raise 'm' using errcode = '${sqlstate}'; end $$`));
    assert.equal(classify(reason).code, code, sqlstate);
    assert.equal(isRetryable(reason), retryable, sqlstate);
    assert.equal(isDeterministic(reason), deterministic, sqlstate);
  }
  const lost = new ConnectionLostError("lost", { outcomeUnknown: true });
  assert.equal(classify(lost).code, "DATABASE_UNAVAILABLE");
  const told = classify(lost);
  assert.equal(told.cause, lost);
  assert.equal(classify(told), told);
  assert.equal(classify(new TypeError("bug")).code, "INTERNAL");
});

test("the session has the settings it was asked for", async (t) => {
  const session = await open(t);
  const shown: (string | null)[] = [];
  for (const name of [
    "timezone",
    "client_encoding",
    "application_name",
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
  ])
    shown.push((await session.run(text(`select current_setting('${name}')`), []))[0]!);
  assert.deepEqual(shown, ["UTC", "UTF8", "queen-test", "15s", "4s", "30s"]);
});

test("a statement past its time is cancelled by the server, and the session goes on", async (t) => {
  const session = await open(t, {}, { statementTimeoutMs: 50 });
  const reason = await error(session.run(text("select pg_sleep(5)::text"), []));
  assert.equal((reason as PostgresError).sqlstate, "57014");
  assert.deepEqual(await session.run(text("select 'well'"), []), ["well"]);
});

test("one call at a time", async (t) => {
  const session = await open(t);
  const first = session.run(text("select 'first'"), []);
  await assert.rejects(session.run(text("select 'second'"), []), /one call at a time/);
  assert.deepEqual(await first, ["first"]);
});

test("one name stands for one text", async (t) => {
  const session = await open(t);
  const one = text("select 'one'");
  await session.run(one, []);
  await assert.rejects(session.run({ ...one, text: "select 'two'" }, []), /two statements have the name/);
});

test("a backend killed in a call leaves its outcome unknown", async (t) => {
  const [session, other] = await Promise.all([open(t), open(t)]);
  const closed = new Promise((resolve) => session.onClose(resolve));
  const call = error(session.run(text("select pg_sleep(10)::text"), []));
  await isAtWork(session, other);
  await other.run(text(`select pg_terminate_backend(${session.processId})::text`), []);
  const reason = await call;
  assert.ok(reason instanceof ConnectionLostError);
  assert.equal(reason.outcomeUnknown, true);
  assert.equal((reason.cause as PostgresError).sqlstate, "57P01");
  assert.equal(((await closed) as PostgresError).sqlstate, "57P01");
  assert.equal(session.closed, true);

  const after = await error(session.run(text("select 'x'"), []));
  assert.ok(after instanceof ConnectionLostError);
  assert.equal(after.outcomeUnknown, false, "a call on a closed session was never sent");
});

test("a backend killed while idle closes the session", async (t) => {
  const [session, other] = await Promise.all([open(t), open(t)]);
  const closed = new Promise((resolve) => session.onClose(resolve));
  await other.run(text(`select pg_terminate_backend(${session.processId})::text`), []);
  assert.equal(((await closed) as PostgresError).sqlstate, "57P01");
});

test("a connection reset in a call leaves its outcome unknown", async (t) => {
  const { hosts, sockets } = await proxy(t, (client, chunk) => void client.write(chunk));
  const [session, other] = await Promise.all([open(t, { hosts }), open(t)]);
  const call = error(session.run(text("select pg_sleep(10)::text"), []));
  await isAtWork(session, other);
  sockets[0]!.resetAndDestroy();
  const reason = await call;
  assert.ok(reason instanceof ConnectionLostError);
  assert.equal(reason.outcomeUnknown, true);
});

test("a stream of single bytes is understood", async (t) => {
  const { hosts } = await proxy(t, async (client, chunk) => {
    for (const byte of chunk) {
      client.write(Buffer.of(byte));
      await nextTurn();
    }
  });
  const session = await open(t, { hosts });
  const rows = statement("select i, repeat('é', i) from generate_series(0, 9) as i", [], (row) => [
    row.int4(0),
    row.text(1),
  ]);
  const expected = Array.from({ length: 10 }, (_, index) => [index, "é".repeat(index)]);
  for (let round = 0; round < 3; round++) assert.deepEqual(await session.run(rows, []), expected);
  assert.equal(((await error(session.run(text("select 1 / 0"), []))) as PostgresError).sqlstate, "22012");
  assert.deepEqual(await session.run(text("select ''"), []), [""]);
});

test("chunks of odd sizes are understood", async (t) => {
  const sizes = [1, 2, 3, 4, 5, 6, 7, 11, 4_099, 65_537, 13, 1_000, 29_989];
  let piece = 0;
  const { hosts } = await proxy(t, async (client, chunk) => {
    for (let at = 0; at < chunk.length; ) {
      const end = at + sizes[piece++ % sizes.length]!;
      client.write(chunk.subarray(at, end));
      at = end;
      await nextTurn();
    }
  });
  const session = await open(t, { hosts });
  const rows = statement(
    "select i, repeat(chr(33 + i % 90), i * 7 % 20011), null::int8 from generate_series(1, 400) as i",
    [],
    (row) => {
      const body = row.latin1(1);
      return [row.int4(0), body.length, body === (body[0] ?? "").repeat(body.length), row.int8OrNull(2)];
    },
  );
  const expected = Array.from({ length: 400 }, (_, index) => [
    index + 1,
    ((index + 1) * 7) % 20_011,
    true,
    null,
  ]);
  for (let round = 0; round < 3; round++) assert.deepEqual(await session.run(rows, []), expected);
});

test("a network that swallows everything ends a call at its deadline", async (t) => {
  let swallow = false;
  const { hosts } = await proxy(t, (client, chunk) => void (swallow || client.write(chunk)));
  const callTimeoutMs = 150;
  const session = await open(t, { hosts }, { callTimeoutMs });
  await session.run(text("select 'x'"), []);
  await sleep(callTimeoutMs); // timers of one length fire in their order: the call's deadline is over
  assert.deepEqual(await session.run(text("select 'y'"), []), ["y"], "an idle session has no deadline");
  swallow = true;
  const reason = await error(session.run(text("select 'z'"), []));
  assert.ok(reason instanceof ConnectionLostError);
  assert.equal(reason.outcomeUnknown, true);
  assert.match(reason.message, /no answer within 150 ms/);
  assert.equal(session.closed, true);
});

test("a network that swallows everything ends the attempt to connect", async (t) => {
  const { hosts } = await proxy(t, () => {});
  const reason = await error(Session.connect({ ...SETTINGS, hosts }, { ...OPTIONS, connectTimeoutMs: 100 }));
  assert.ok(reason instanceof ConnectionLostError);
  assert.equal(reason.outcomeUnknown, false);
});

test("a network that swallows everything after the handshake ends the attempt to connect too", async (t) => {
  const readyForQuery = Buffer.from("Z\u0000\u0000\u0000\u0005I", "latin1");
  let isReady = false;
  const { hosts } = await proxy(t, (client, chunk) => {
    if (!isReady) client.write(chunk);
    isReady ||= chunk.includes(readyForQuery);
  });
  const reason = await error(
    Session.connect({ ...SETTINGS, hosts }, { ...OPTIONS, connectTimeoutMs: 2_000 }),
  );
  assert.ok(isReady);
  assert.ok(reason instanceof ConnectionLostError);
  assert.equal(reason.outcomeUnknown, false, "no call of ours was sent");
});

test("a network that swallows everything does not hold up close", async (t) => {
  let swallow = false;
  const { hosts, sockets } = await proxy(t, (client, chunk) => void (swallow || client.write(chunk)));
  const session = await open(t, { hosts });
  swallow = true;
  for (const socket of sockets) socket.pause();
  await session.close();
  assert.equal(session.closed, true);
});

test("notifications arrive while idle and while a call runs", async (t) => {
  const [session, other] = await Promise.all([open(t), open(t)]);
  const heard: string[] = [];
  let wake = (): void => {};
  session.onNotification((channel, payload) => {
    heard.push(`${channel}: ${payload}`);
    wake();
  });
  await session.simple("listen queen_test");
  const woken = new Promise<void>((resolve) => {
    wake = resolve;
  });
  await other.simple("notify queen_test, 'während'");
  await woken;
  assert.deepEqual(heard, ["queen_test: während"]);

  const call = session.run(text("select pg_sleep(0.1)::text"), []);
  await other.simple("notify queen_test, 'busy'; notify queen_test");
  assert.equal((await call).length, 1);
  await session.run(text("select 'x'"), []);
  assert.deepEqual(heard, ["queen_test: während", "queen_test: busy", "queen_test: "]);
});

test("notices and changed parameters in the middle of a call are passed over", async (t) => {
  const session = await open(t);
  await session.simple(
    "do $$ begin raise notice 'n'; set application_name = 'other'; raise warning 'w'; end $$",
  );
  assert.deepEqual(await session.run(text("select set_config('application_name', 'third', false)"), []), [
    "third",
  ]);
});

test("a statement that the server forgot is prepared again", async (t) => {
  const session = await open(t);
  const echo = statement("select $1", ["int4"], (row) => row.int4(0));
  assert.deepEqual(await session.run(echo, [1]), [1]);
  await session.simple("deallocate all");
  assert.deepEqual(await session.run(echo, [2]), [2]);
  assert.deepEqual(await session.run(echo, [3]), [3]);
});

test("a statement whose table changed is prepared again", async (t) => {
  const session = await open(t);
  await session.simple("create temp table changing (a int4); insert into changing values (1)");
  const all = statement("select * from changing", [], (row) => row.length);
  assert.deepEqual(await session.run(all, []), [1]);
  await session.simple("alter table changing add b int8");
  assert.deepEqual(await session.run(all, []), [2]);
});

test("inside a transaction nothing is run again by itself", async (t) => {
  const session = await open(t);
  const echo = statement("select $1", ["int4"], (row) => row.int4(0));
  await session.run(echo, [1]);
  await session.simple("begin; deallocate all");
  assert.equal(((await error(session.run(echo, [2]))) as PostgresError).sqlstate, "26000");
  await session.simple("rollback");
  assert.deepEqual(await session.run(echo, [3]), [3]);
});

test("close answers the call in flight, then takes no more", async (t) => {
  const session = await open(t);
  const call = session.run(text("select 'done' from pg_sleep(0.05)"), []);
  const closed = session.close();
  assert.equal(session.closed, true);
  await assert.rejects(session.run(text("select 'x'"), []), ConnectionLostError);
  assert.deepEqual(await call, ["done"]);
  await closed;
  let reason: Error | undefined = new Error("not called");
  session.onClose((given) => {
    reason = given;
  });
  assert.equal(reason, undefined);
  await session.close();
});

test("destroy rejects the call in flight", async (t) => {
  const session = await open(t);
  const call = error(session.run(text("select pg_sleep(10)::text"), []));
  session.destroy(new Error("enough"));
  const reason = await call;
  assert.ok(reason instanceof ConnectionLostError);
  assert.equal(reason.outcomeUnknown, true);
  assert.match(reason.message, /enough/);
});

test("a copy, which no call can serve, closes the session instead of hanging", async (t) => {
  const session = await open(t);
  const reason = await error(session.simple("copy (select 1) to stdout"));
  assert.ok(reason instanceof ConnectionLostError);
});

test("hosts are tried in order", async (t) => {
  const closedServer = createServer().listen(0, "127.0.0.1");
  await once(closedServer, "listening");
  const { port } = closedServer.address() as AddressInfo;
  closedServer.close();
  const nobody = { host: "127.0.0.1", port };
  const session = await open(t, { hosts: [nobody, SERVER] });
  assert.equal(session.server, `${SERVER.host}:${SERVER.port}`);

  const one = await error(open(t, { hosts: [nobody] }));
  assert.ok(one instanceof ConnectionLostError);
  assert.match(one.message, /cannot connect to 127\.0\.0\.1:\d+: .*ECONNREFUSED/);
  const two = await error(open(t, { hosts: [nobody, { host: "localhost", port }] }));
  assert.ok(two instanceof ConnectionLostError);
  assert.match(two.message, /127\.0\.0\.1:.*; cannot connect to localhost:.*ECONNREFUSED/);
});

test("a database that does not exist is a sentence from PostgreSQL", async (t) => {
  const reason = await error(open(t, { database: "queen_no_such_database" }));
  assert.ok(reason instanceof PostgresError);
  assert.equal(reason.sqlstate, "3D000");
});

test("a password is proven by SCRAM", async (t) => {
  const admin = await Session.connect(SETTINGS, OPTIONS);
  await admin.simple(
    "set password_encryption = 'scram-sha-256'; drop role if exists scram_user; create role scram_user login password 'sésame'",
  );
  t.after(async () => {
    await admin.simple("drop role scram_user");
    await admin.close();
  });
  const wrong = await error(
    open(t, { user: "scram_user", password: "wrong" }).then((session) => session.close()),
  );
  if (wrong === undefined) {
    t.skip("the server lets scram_user in without a password");
    return;
  }
  assert.equal((wrong as PostgresError).sqlstate, "28P01");
  const session = await open(t, { user: "scram_user", password: "sésame" });
  assert.deepEqual(await session.run(text("select current_user::text"), []), ["scram_user"]);
  await session.close();
});

test("the same holds over TLS", async (t) => {
  const plain = await open(t);
  const [ssl] = await plain.run(text("select current_setting('ssl')"), []);
  if (ssl !== "on") {
    t.skip("the server has no TLS");
    return;
  }
  const session = await open(t, { ssl: { rejectUnauthorized: false } });
  assert.deepEqual(
    await session.run(text("select ssl::text from pg_stat_ssl where pid = pg_backend_pid()"), []),
    ["true"],
  );
  const body = "\u00e9".repeat(3_000_000);
  const echo = statement("select $1", ["bytea"], (row) => row.latin1(0) === body);
  for (let round = 0; round < 3; round++) assert.deepEqual(await session.run(echo, [body]), [true]);
  await session.close();
  const untrusted = await error(open(t, { ssl: { rejectUnauthorized: true } }));
  assert.ok(untrusted instanceof ConnectionLostError);
});

test("a primary that is not admitted is not used; its cluster and timeline are told", async (t) => {
  const session = await open(t);
  const [system] = await session.run(text("select system_identifier::text from pg_control_system()"), []);
  const seen: Origin[] = [];
  const admit = (origin: Origin): void => {
    seen.push(origin);
  };
  await open(t, {}, { admit });
  assert.deepEqual(seen, [{ system, timeline: 1 }]);
  const refusal = await error(
    open(
      t,
      {},
      {
        admit: () => {
          throw new Error("it is of the past");
        },
      },
    ),
  );
  assert.match((refusal as Error).message, /cannot connect to .*: it is of the past/);
});

test("two statements in one call are one transaction: the second sees the first, and fails with it", async (t) => {
  const session = await open(t);
  await session.simple("create temporary table pair (value int4 check (value < 10))");
  const insert = statement("insert into pair values ($1), ($1 + 1) returning value", ["int4"], (row) =>
    row.int4(0),
  );
  const sum = statement("select sum(value)::int4 from pair", [], (row) => row.int4OrNull(0));
  const both = (value: number): Promise<unknown> =>
    session.runBoth({ statement: insert, values: [value] }, { statement: sum, values: [] });
  assert.deepEqual(await both(1), [[1, 2], [3]]);
  assert.deepEqual(await both(3), [[3, 4], [10]], "both prepared before");
  assert.match(String(await error(both(9))), /violates check constraint/);
  const divide = statement("select 1 / $1", ["int4"], (row) => row.int4(0));
  const undone = session.runBoth({ statement: insert, values: [5] }, { statement: divide, values: [0] });
  assert.match(String(await error(undone)), /division by zero/);
  assert.deepEqual(await session.run(sum, []), [10]);
});

test("two statements in one call are prepared again when one of their plans is stale", async (t) => {
  const session = await open(t);
  await session.simple("create temporary table stale (value int4); insert into stale values (1)");
  const first = statement("select 7", [], (row) => row.int4(0));
  const second = statement("select * from stale", [], (row) => row.int4(0));
  const both = (): Promise<unknown> =>
    session.runBoth({ statement: first, values: [] }, { statement: second, values: [] });
  assert.deepEqual(await both(), [[7], [1]]);
  await session.simple("alter table stale add column other int4");
  assert.deepEqual(await both(), [[7], [1]]);
});
