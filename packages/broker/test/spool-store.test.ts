import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { BrokerError } from "@queen/protocol";
import { Drain } from "../src/spooling/drain.ts";
import { readProgress } from "../src/spooling/progress.ts";
import { encodeRecord, type NewRecord, type SpoolRecord } from "../src/spooling/record.ts";
import { SpoolStore } from "../src/spooling/spool-store.ts";
import { createLog } from "../src/telemetry.ts";

const root = mkdtempSync(join(tmpdir(), "queen-store-"));
const stores: SpoolStore[] = [];
after(async () => {
  for (const store of stores) await store.close();
  rmSync(root, { recursive: true, force: true });
});
let folders = 0;

function newFolder(): string {
  const folder = join(root, String(++folders));
  mkdirSync(folder);
  return folder;
}

const log = createLog({ level: "error", json: true, write: () => {} });
async function openStore(
  folder: string,
  more: { bytesMax?: number; openFile?: typeof open; clock?: () => number } = {},
): Promise<SpoolStore> {
  const options = { folder, bytesMax: 1e9, log, clock: Date.now, ...more };
  const store = await SpoolStore.open(options as Parameters<typeof SpoolStore.open>[0]);
  stores.push(store);
  return store;
}

const message = (n: number, partition = "p"): NewRecord => ({
  queue: "q",
  partition,
  doubt: undefined,
  content: Buffer.from(`message ${n}`),
});
const written = (n: number): Buffer =>
  encodeRecord({ ...message(n), sequence: n + 1, spooledAtMs: 1_700_000_000_000 + n });
const textOf = (record: SpoolRecord): string => record.content.toString();
const texts = (...numbers: number[]): string[] => numbers.map((n) => `message ${n}`);
const only = (name: string, folder: string): string[] =>
  readdirSync(folder).filter((each) => each.startsWith(name));

/** What a drain without trouble would bring to the database. */
async function drained(store: SpoolStore, folder: string): Promise<string[]> {
  const progress = await readProgress(folder);
  const drain = new Drain({ store, folder, progress, now: () => performance.now(), clock: Date.now, log });
  const found: string[] = [];
  for (;;) {
    const batch = await drain.nextBatch(3);
    if (batch.length === 0) return found;
    found.push(...batch.map(textOf));
    await drain.settle(
      batch,
      batch.map(() => ({ status: "stored" })),
    );
  }
}

test("what was added is there after a restart, in order, and gone when it is drained", async () => {
  const folder = newFolder();
  const store = await openStore(folder);
  await Promise.all([store.add([message(0), message(1)]), store.add([message(2, "other")])]);
  await store.add([message(3)]);
  assert.equal(store.holds("q", "p"), true);
  // Nothing is closed: the broker was killed.
  const again = await openStore(folder);
  assert.equal(again.pending, 4);
  assert.deepEqual(
    [again.holds("q", "p"), again.holds("q", "other"), again.holds("p", "q")],
    [true, true, false],
  );
  assert.deepEqual(await drained(again, folder), texts(0, 1, 2, 3));
  assert.deepEqual([again.pending, again.bytes, again.holds("q", "p")], [0, 0, false]);
  assert.deepEqual(only("spool-", folder), []);
});

test("a restart goes on where the drain was, and never writes to an old file", async () => {
  const folder = newFolder();
  const store = await openStore(folder);
  await store.add([0, 1, 2, 3].map((n) => message(n)));
  const progress = await readProgress(folder);
  const drain = new Drain({ store, folder, progress, now: () => performance.now(), clock: Date.now, log });
  const batch = await drain.nextBatch(3);
  await drain.settle(batch, [
    { status: "stored" },
    { status: "stored" },
    { status: "later", reason: "held" },
  ]);
  const [file] = only("spool-", folder);
  const before = readFileSync(join(folder, file!));

  const again = await openStore(folder);
  assert.equal(again.pending, 2);
  await again.add([message(4)]);
  assert.deepEqual(readFileSync(join(folder, file!)), before);
  assert.deepEqual(await drained(again, folder), texts(2, 3, 4));
});

test("a file that grows while it is read gives each record once", async () => {
  const folder = newFolder();
  const store = await openStore(folder);
  const progress = await readProgress(folder);
  const drain = new Drain({ store, folder, progress, now: () => performance.now(), clock: Date.now, log });
  const found: string[] = [];
  const adding = (async () => {
    for (let n = 0; n < 300; n++) await store.add([message(n)]);
  })();
  while (found.length < 300) {
    const batch = await drain.nextBatch();
    found.push(...batch.map(textOf));
    await drain.settle(
      batch,
      batch.map(() => ({ status: "stored" })),
    );
  }
  await adding;
  assert.deepEqual(found, texts(...Array.from({ length: 300 }, (_, n) => n)));
  assert.equal(store.pending, 0);
});

test("a lane that is held up keeps its order and does not hold up others", async () => {
  const folder = newFolder();
  const store = await openStore(folder);
  await store.add([message(0, "held"), message(1, "free"), message(2, "held"), message(3, "free")]);
  let nowMs = 0;
  const progress = await readProgress(folder);
  const drain = new Drain({ store, folder, progress, now: () => nowMs, clock: Date.now, log });
  const first = await drain.nextBatch(2);
  assert.deepEqual(first.map(textOf), texts(0, 1));
  await drain.settle(first, [{ status: "later", reason: "held" }, { status: "stored" }]);
  const second = await drain.nextBatch();
  assert.deepEqual(second.map(textOf), texts(3), "of the held lane nothing is tried for a moment");
  await drain.settle(second, [{ status: "stored" }]);
  assert.deepEqual(await drain.nextBatch(), []);
  assert.equal(only("spool-", folder).length, 1, "the file stays until everything in it is stored");
  nowMs += 60_000;
  assert.deepEqual((await drain.nextBatch()).map(textOf), texts(0, 2));
});

test("a tail torn at every byte of the last record costs that record and nothing else", async () => {
  const bytes = [written(0), written(1), written(2)];
  const last = bytes[0]!.length + bytes[1]!.length;
  for (let cut = 0; cut < bytes[2]!.length; cut++) {
    const folder = newFolder();
    writeFileSync(join(folder, "spool-000000000007.log"), Buffer.concat(bytes).subarray(0, last + cut));
    const store = await openStore(folder);
    assert.equal(store.damaged, cut === 0 ? 0 : 1);
    await store.add([message(9)]);
    assert.deepEqual(await drained(store, folder), texts(0, 1, 9), `cut at ${cut}`);
    assert.equal(store.pending, 0);
    rmSync(folder, { recursive: true });
  }
});

test("bits flipped at 200 places give no wrong payload, lose one record at most, and leave a copy", async () => {
  const count = 20;
  const clean = Buffer.concat(Array.from({ length: count }, (_, n) => written(n)));
  let seed = Number(process.env.QUEEN_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const name = `seed ${seed}`;
  for (let round = 0; round < 200; round++) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
    const at = seed % (clean.length * 8);
    const bytes = Buffer.from(clean);
    bytes[at >> 3]! ^= 1 << (at & 7);
    const folder = newFolder();
    writeFileSync(join(folder, "spool-000000000001.log"), bytes);
    const store = await openStore(folder);
    const hit = Math.floor((at >> 3) / (clean.length / count)); // all records but those with two digits are as long
    const found = await drained(store, folder);
    const lost = texts(...Array.from({ length: count }, (_, n) => n)).filter((text) => !found.includes(text));
    assert.equal(found.length, count - 1, `${name}, bit ${at}`);
    assert.ok(
      Math.abs(Number(lost[0]!.split(" ")[1]) - hit) <= 1,
      `${name}: ${lost[0]} is lost, and bit ${at} is in ${hit}`,
    );
    assert.deepEqual(
      found,
      found.toSorted((a, b) => Number(a.split(" ")[1]) - Number(b.split(" ")[1])),
    );
    assert.equal(store.damaged, 1);
    assert.equal(only("spool-", join(folder, "quarantine")).length, 1);
    rmSync(folder, { recursive: true });
  }
});

const isUnavailable = (error: unknown): boolean =>
  error instanceof BrokerError && error.code === "SPOOL_UNAVAILABLE" && error.status === 503;

test("a full spool refuses, keeps what it has, and takes more when there is room", async () => {
  const folder = newFolder();
  const store = await openStore(folder, { bytesMax: 2.5 * written(0).length });
  await store.add([message(0)]);
  await store.add([message(1)]);
  await assert.rejects(store.add([message(2)]), isUnavailable);
  assert.equal(store.pending, 2);
  assert.deepEqual(await drained(store, folder), texts(0, 1));
  await store.add([message(3)]);
  assert.deepEqual(await drained(store, folder), texts(3));
});

/** Files whose writes or syncs fail as `faults` says. */
function faultyFiles(faults: {
  write?: string | undefined;
  sync?: string | undefined;
  syncs: number;
}): typeof open {
  const fail = (code: string): Promise<never> => Promise.reject(Object.assign(new Error(code), { code }));
  return (async (path: string, flags: string, mode: number) => {
    const handle = await open(path, flags, mode);
    return new Proxy(handle, {
      get(target, name: keyof FileHandle) {
        if (name === "write" && faults.write) {
          const code = faults.write;
          // Half of it is written before the disk is full.
          return async (bytes: Buffer, from: number, length: number, at: number) => {
            await target.write(bytes, from, length >> 1, at);
            return fail(code);
          };
        }
        if (name === "datasync") {
          faults.syncs++;
          if (faults.sync) return () => fail(faults.sync!);
        }
        const value = target[name];
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }) as typeof open;
}

test("a disk that is full in the middle of a record leaves no trace of it", async () => {
  const folder = newFolder();
  const faults: Parameters<typeof faultyFiles>[0] = { syncs: 0 };
  let nowMs = 1_700_000_000_000;
  const store = await openStore(folder, { openFile: faultyFiles(faults), clock: () => nowMs });
  await store.add([message(0)]);
  faults.write = "ENOSPC";
  await assert.rejects(store.add([message(1)]), isUnavailable);
  assert.deepEqual([store.pending, store.isHealthy, store.holds("q", "p")], [1, false, true]);
  faults.write = undefined;
  await assert.rejects(store.add([message(2)]), isUnavailable, "for a moment nothing is tried");
  nowMs += 5_000;
  await store.add([message(3)]);
  assert.equal(store.isHealthy, true);
  const again = await openStore(folder);
  assert.equal(again.damaged, 0);
  assert.deepEqual(await drained(again, folder), texts(0, 3));
});

test("after a failed sync the file is sealed and never synced again", async () => {
  const folder = newFolder();
  const faults: Parameters<typeof faultyFiles>[0] = { syncs: 0 };
  let nowMs = 1_700_000_000_000;
  const store = await openStore(folder, { openFile: faultyFiles(faults), clock: () => nowMs });
  await store.add([message(0)]);
  faults.sync = "EIO";
  await assert.rejects(store.add([message(1)]), isUnavailable);
  faults.sync = undefined;
  nowMs += 5_000;
  assert.equal(faults.syncs, 2);
  await store.add([message(2)]);
  assert.equal(only("spool-", folder).length, 2, "a new file was begun");
  assert.deepEqual(await drained(await openStore(folder), folder), texts(0, 2));
});

test("records that come while a sync is under way share the next one", async () => {
  const folder = newFolder();
  const faults = { syncs: 0 };
  const store = await openStore(folder, { openFile: faultyFiles(faults) });
  await Promise.all(Array.from({ length: 100 }, (_, n) => store.add([message(n)])));
  assert.ok(faults.syncs <= 3, `${faults.syncs} syncs for 100 records`);
  assert.deepEqual(await drained(store, folder), texts(...Array.from({ length: 100 }, (_, n) => n)));
});

test("a record that is refused is set aside with its reason, and can be read after a restart", async () => {
  const folder = newFolder();
  const store = await openStore(folder);
  await store.add([message(0), message(1)]);
  const progress = await readProgress(folder);
  const drain = new Drain({ store, folder, progress, now: () => performance.now(), clock: Date.now, log });
  const batch = await drain.nextBatch();
  await drain.settle(batch, [{ status: "rejected", reason: "no good" }, { status: "stored" }]);
  assert.deepEqual([store.pending, store.rejected.count, only("spool-", folder)], [0, 1, []]);
  const again = await openStore(folder);
  const [rejected] = await again.rejected.list(10, 0);
  assert.deepEqual([textOf(rejected!.record), rejected!.reason], ["message 0", "no good"]);
  await again.add([message(2)]);
  assert.equal((await again.rejected.list(10, 0)).length, 1, "a new record does not get its id");
  assert.equal(await again.rejected.discard(rejected!.id), true);
  assert.deepEqual([again.rejected.count, again.rejected.bytes], [0, 0]);
});
