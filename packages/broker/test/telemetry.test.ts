import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { createLog, type LogOptions } from "../src/telemetry.ts";

function collect(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const log = createLog({ level: "info", json: true, write: (line) => lines.push(line), ...options });
  return { log, lines, parsed: () => lines.map((line) => JSON.parse(line)) };
}

test("an event is one line of JSON with its time, level, name and fields", () => {
  const { log, parsed } = collect();
  log.info({ port: 6632, host: "0.0.0.0" }, "broker.ready");
  const [{ time, ...line }] = parsed();
  assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual(line, { level: "info", event: "broker.ready", port: 6632, host: "0.0.0.0" });
});

test("on a terminal it is a line to read, the message first, words with spaces in quotes", () => {
  const { log, lines } = collect({ json: false });
  log.info({ port: 6632, path: "a b", message: "All is well.", no: undefined }, "broker.ready");
  log.error({ error: Object.assign(new Error("refused"), { code: "ECONNREFUSED" }) }, "database.away");
  assert.match(lines[0]!, /^\d\d:\d\d:\d\d info {2}broker\.ready All is well\. port=6632 path="a b"$/);
  assert.match(lines[1]!, /^\d\d:\d\d:\d\d error database\.away error="refused \(ECONNREFUSED\)"$/);
});

test("levels below the chosen one are not written", () => {
  const { log, parsed } = collect({ level: "warn" });
  for (const level of ["trace", "debug", "info", "warn", "error"] as const) log[level]({}, level);
  assert.deepEqual(
    parsed().map(({ level }) => level),
    ["warn", "error"],
  );
});

test("a child adds its fields to those of its parent, and an event's own fields win", () => {
  const { log, parsed } = collect({ base: { broker: "a", worker: 0 } });
  log.child({ worker: 1 }).child({ kind: "push" }).info({ kind: "pop" }, "batch.sent");
  const { broker, worker, kind } = parsed()[0];
  assert.deepEqual({ broker, worker, kind }, { broker: "a", worker: 1, kind: "pop" });
});

test("an error is written with its name, message, code and cause, and its stack only at debug", () => {
  const cause = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
  const error = new TypeError("cannot connect", { cause });
  const atInfo = collect();
  atInfo.log.error({ error }, "failed");
  assert.deepEqual(atInfo.parsed()[0].error, {
    name: "TypeError",
    message: "cannot connect",
    cause: { name: "Error", message: "refused", code: "ECONNREFUSED" },
  });
  const atDebug = collect({ level: "debug" });
  atDebug.log.error({ error }, "failed");
  assert.match(atDebug.parsed()[0].error.stack, /telemetry\.test/);
  const onTerminal = collect({ level: "debug", json: false });
  onTerminal.log.error({ error }, "failed");
  assert.match(onTerminal.lines[0]!, /failed error="cannot connect"\nTypeError: cannot connect\n +at /);
});

test("an error made of several others without a message of its own names them", () => {
  const { log, parsed } = collect();
  log.error(
    { error: new AggregateError([new Error("::1 refused"), new Error("127.0.0.1 refused")]) },
    "failed",
  );
  assert.equal(parsed()[0].error.message, "::1 refused, 127.0.0.1 refused");
});

test("no value makes it throw", () => {
  const circular: Record<string, unknown> = { name: "loop" };
  circular.self = circular;
  const shared = { shared: true };
  const values = {
    circular,
    twice: [shared, shared],
    big: 2n ** 70n,
    symbol: Symbol("s"),
    run: () => 1,
    bytes: Buffer.from("abc"),
    date: new Date(0),
    wrongDate: new Date(Number.NaN),
    map: new Map([["a", 1]]),
    set: new Set([1]),
    nothing: null,
    bare: Object.create(null),
  };
  const throwing = {
    get value(): never {
      throw new Error("no value");
    },
  };
  for (const json of [true, false]) {
    const { log, lines } = collect({ json });
    log.info({ throwing }, "throwing");
    log.info(values, "values");
    assert.equal(lines.length, 2);
    assert.match(lines[0]!, /throwing.*its fields cannot be written: no value/);
  }
  const { log, parsed } = collect();
  log.info(values, "values");
  const line = parsed()[0];
  assert.deepEqual(line.circular, { name: "loop", self: "(contains itself)" });
  assert.deepEqual(line.twice, [shared, shared]);
  assert.equal(line.big, "1180591620717411303424");
  assert.equal(line.date, "1970-01-01T00:00:00.000Z");

  const broken = createLog({
    level: "info",
    json: true,
    write: () => {
      throw new Error("disk full");
    },
  });
  broken.info({}, "written nowhere");
});

test("a warning that repeats is written once per 5 s, with the times it was held back", (t) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  t.after(() => mock.timers.reset());
  const { log, parsed } = collect();
  const away = (): void => log.warn({ error: new Error("refused") }, "database.away");
  for (let time = 0; time < 100; time += 1) away();
  log.warn({ message: "something else" }, "database.away");
  log.warn({ error: new Error("refused") }, "bus.away");
  const seen = () => parsed().map(({ event, repeated, error }) => [event, error?.message, repeated]);
  assert.deepEqual(seen(), [
    ["database.away", "refused", undefined],
    ["database.away", undefined, undefined],
    ["bus.away", "refused", undefined],
  ]);

  mock.timers.tick(5_000);
  assert.deepEqual(seen().slice(3), [["database.away", "refused", 99]]);
  away();
  mock.timers.tick(5_000);
  assert.deepEqual(seen().slice(4), [["database.away", "refused", 1]]);
  mock.timers.tick(5_000);
  away();
  assert.deepEqual(seen().slice(5), [["database.away", "refused", undefined]]);
});

test("errors and information are written however often they repeat", () => {
  const { log, lines } = collect();
  for (let time = 0; time < 3; time += 1) {
    log.error({ message: "lost" }, "data.lost");
    log.info({ message: "hello" }, "greeting");
  }
  assert.equal(lines.length, 6);
});
