import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Pusher } from "../src/pushing/pusher.ts";
import type { AskKind, SpoolFigures, ToKeeper, ToWorker } from "../src/spooling/conversation.ts";
import type { Drainer } from "../src/spooling/drainer.ts";
import { Keeper } from "../src/spooling/keeper.ts";
import type { NewRecord } from "../src/spooling/record.ts";
import { PLAIN_SEAL } from "../src/spooling/record-seal.ts";
import { Spool } from "../src/spooling/spool.ts";
import { createLog } from "../src/telemetry.ts";
import { until } from "./until.ts";

const root = mkdtempSync(join(tmpdir(), "queen-keeper-"));
after(() => rmSync(root, { recursive: true, force: true }));
let folders = 0;
const newFolder = (): string => join(root, String(++folders));
const log = createLog({ level: "error", json: true, write: () => {} });

type Drain = ToWorker & { spool: "drain" };

/** A worker without a database: it confirms and drains when it is told to. */
class FakeWorker {
  readonly keeper: Keeper;
  isEngaged = false;
  confirms = true;
  epoch = 0;
  figures: SpoolFigures | undefined;
  readonly drains: Drain[] = [];
  readonly #asked = new Map<number, (answer: unknown) => void>();
  #ids = 0;

  constructor(keeper: Keeper) {
    this.keeper = keeper;
  }

  send(message: ToWorker): void {
    if (message.spool === "answer" || message.spool === "refusal") {
      this.#asked.get(message.id)!(message.spool === "answer" ? message.answer : message.code);
    } else if (message.spool === "engage") {
      this.epoch = message.epoch;
      this.isEngaged = true;
      if (this.confirms) this.confirm();
    } else if (message.spool === "disengage") this.isEngaged = false;
    else if (message.spool === "figures") this.figures = message.figures;
    else this.drains.push(message);
  }

  say(message: ToKeeper): void {
    this.keeper.received(this, message);
  }

  confirm(): void {
    this.say({ spool: "engaged", epoch: this.epoch });
  }

  // biome-ignore lint/suspicious/noExplicitAny: whatever the keeper answers; a wrong shape fails the assertion on it
  ask(kind: AskKind, ask: unknown = null): Promise<any> {
    const id = ++this.#ids;
    return new Promise((resolve) => {
      this.#asked.set(id, resolve);
      this.say({ spool: "ask", id, kind, ask });
    });
  }

  add(...records: NewRecord[]): Promise<unknown> {
    return this.ask("add", records);
  }

  holds(partition: string): Promise<boolean> {
    return this.ask("held", [{ queue: "q", partition }]).then(([held]) => held);
  }

  /** Answers the oldest batch that it got; how many of its messages are stored. */
  async drain(stored = Number.POSITIVE_INFINITY): Promise<string[]> {
    await until("a batch comes", () => this.drains.length > 0);
    const { batch, records } = this.drains.shift()!;
    const results = records.map((_, index) =>
      index < stored ? ({ status: "stored" } as const) : ({ status: "later", reason: "held" } as const),
    );
    this.say({ spool: "drained", batch, results });
    return records.slice(0, stored).map((record) => record.content.toString());
  }
}

const message = (n: number, partition = "p"): NewRecord => ({
  queue: "q",
  partition,
  doubt: undefined,
  content: Buffer.from(`m${n}`),
});

async function withKeeper(
  work: (keeper: Keeper, a: FakeWorker, b: FakeWorker) => Promise<void>,
): Promise<void> {
  const keeper = await Keeper.open({ folder: newFolder(), bytesMax: 1e9, log });
  const workers = [new FakeWorker(keeper), new FakeWorker(keeper)] as const;
  for (const worker of workers) await worker.ask("join");
  for (const worker of workers) assert.equal(worker.isEngaged, false);
  try {
    await work(keeper, ...workers);
  } finally {
    await keeper.close();
  }
}

test("no record is answered before every worker asks before it pushes", () =>
  withKeeper(async (keeper, a, b) => {
    b.confirms = false;
    let isAnswered = false;
    const added = a.add(message(0)).then(() => {
      isAnswered = true;
    });
    await until("b is told", () => b.isEngaged);
    await nextTurn();
    assert.equal(keeper.figures.pending, 0, "it is not even on its way to the disk");
    assert.equal(isAnswered, false);
    b.confirm();
    await added;
    assert.deepEqual([await b.holds("p"), await b.holds("other")], [true, false]);
  }));

test("a worker that dies instead of confirming holds nobody up", () =>
  withKeeper(async (keeper, a, b) => {
    b.confirms = false;
    const added = a.add(message(0));
    await until("b is told", () => b.isEngaged);
    keeper.left(b);
    assert.equal(await added, null);
  }));

test("a lane is free when its last record is stored, and the workers hear when all are", () =>
  withKeeper(async (_keeper, a, b) => {
    await a.add(message(0), message(1, "other"));
    await b.add(message(2));
    assert.deepEqual(await a.ask("able"), { isProven: false });
    assert.deepEqual(await a.drain(2), ["m0", "m1"]);
    await until("the first are settled", () => a.drains.length > 0);
    assert.deepEqual([await b.holds("p"), await b.holds("other")], [true, false]);
    assert.deepEqual(await a.drain(), ["m2"]);
    await until("both are told", () => !a.isEngaged && !b.isEngaged);
    assert.equal(await b.holds("p"), false);
    assert.deepEqual(await b.ask("able"), { isProven: true });
  }));

test("a batch whose worker died goes to another", () =>
  withKeeper(async (keeper, a, b) => {
    await a.add(message(0), message(1));
    await a.ask("able");
    await until("a has a batch", () => a.drains.length > 0);
    await b.ask("able");
    keeper.left(a);
    assert.deepEqual(await b.drain(), ["m0", "m1"]);
    await until("all is stored", () => keeper.figures.pending === 0);
  }));

test("during maintenance nothing is drained", () =>
  withKeeper(async (keeper, a, b) => {
    b.say({ spool: "maintenance", isOn: true });
    await a.add(message(0));
    assert.deepEqual(
      await a.ask("able"),
      { isProven: true },
      "a worker need not wait for a drain to start serving",
    );
    assert.deepEqual([keeper.figures.isDraining, a.drains.length], [false, 0]);
    b.say({ spool: "maintenance", isOn: false });
    assert.deepEqual(await a.drain(), ["m0"]);
    await until("all is stored", () => keeper.figures.pending === 0);
  }));

test("a refused record blocks nothing, and is tried again or discarded when an operator says so", () =>
  withKeeper(async (keeper, a) => {
    await a.add(message(0), message(1), message(2));
    await a.ask("able");
    await until("a has a batch", () => a.drains.length > 0);
    const { batch, records } = a.drains.shift()!;
    const reject = { status: "rejected", reason: "no good" } as const;
    a.say({
      spool: "drained",
      batch,
      results: records.map((_, n) => (n < 2 ? reject : { status: "stored" })),
    });
    await until("all is settled", () => keeper.figures.pending === 0);
    assert.equal(keeper.figures.rejected, 2);
    await until("the worker knows", () => a.figures?.pending === 0 && a.figures.rejected === 2);
    const [first, second] = await a.ask("rejected", { limit: 10, offset: 0 });
    assert.deepEqual(await a.ask("retry", { ids: [first.id, "12345"] }), { done: 1, remaining: 1 });
    assert.deepEqual(await a.drain(), ["m0"]);
    assert.deepEqual(await a.ask("discard", { ids: [second.id] }), { done: 1, remaining: 0 });
    assert.equal(keeper.figures.rejectedBytes, 0);
  }));

test("a folder has one keeper, and is free when that has closed", async () => {
  const folder = newFolder();
  const keeper = await Keeper.open({ folder, bytesMax: 1e9, log });
  await assert.rejects(Keeper.open({ folder, bytesMax: 1e9, log }), /QUEEN_SPOOL_DIR/);
  await keeper.close();
  await (await Keeper.open({ folder, bytesMax: 1e9, log })).close();
});

test("a keeper that finds records is engaged from the start", async () => {
  const folder = newFolder();
  const keeper = await Keeper.open({ folder, bytesMax: 1e9, log });
  const worker = new FakeWorker(keeper);
  await worker.ask("join");
  await worker.add(message(0));
  await keeper.close();
  const again = await Keeper.open({ folder, bytesMax: 1e9, log });
  const next = new FakeWorker(again);
  const { figures } = await next.ask("join");
  assert.deepEqual([next.isEngaged, figures.pending], [true, 1]);
  assert.equal(await next.holds("p"), true);
  await again.close();
});

test("a worker that joins in the moment in which others buffer asks before it pushes", async () => {
  const sent: ToKeeper[] = [];
  const spool: Spool = new Spool({
    line: { send: (message) => sent.push(message) },
    seal: PLAIN_SEAL,
    pusher: {} as Pusher,
    drainer: { forget: () => undefined } as unknown as Drainer,
    probe: async () => undefined,
    log,
  });
  const asked = (kind: AskKind): number => {
    const found = sent.find((message) => message.spool === "ask" && message.kind === kind);
    return (found as ToKeeper & { spool: "ask" }).id;
  };
  const joined = spool.join();
  // Both messages are read at once, so that nothing that waits for the first has gone on before the second.
  const figures = {} as SpoolFigures;
  spool.received({ spool: "answer", id: asked("join"), answer: { isEngaged: false, figures } });
  spool.received({ spool: "engage", epoch: 1 });
  await joined;
  void spool.databaseReady();
  await until("it can reach the database", () =>
    sent.some((message) => message.spool === "ask" && message.kind === "able"),
  );
  spool.received({ spool: "answer", id: asked("able"), answer: { isProven: true } });
  await until("it knows", () => !spool.isAway);
  assert.equal(spool.isEngaged, true);
  spool.received({ spool: "disengage" });
  assert.equal(spool.isEngaged, false);
});
