/**
 * The spool of two workers and their keeper, with a database that is a list per lane: it goes away and comes back, and
 * push maintenance is switched on and off, on one worker before the other. Producers push to any worker, one push
 * after the other.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { deserialize, serialize } from "node:v8";
import { BrokerError } from "@queen/protocol";
import type { Lane } from "../src/lanes/lane.ts";
import type { PushItem } from "../src/operations/push-body.ts";
import { type Pusher, PushRequest } from "../src/pushing/pusher.ts";
import type { ToKeeper, ToWorker } from "../src/spooling/conversation.ts";
import type { Drainer } from "../src/spooling/drainer.ts";
import { Keeper } from "../src/spooling/keeper.ts";
import type { SpoolRecord } from "../src/spooling/record.ts";
import { PLAIN_SEAL } from "../src/spooling/record-seal.ts";
import { Spool } from "../src/spooling/spool.ts";
import { createLog } from "../src/telemetry.ts";
import { until } from "./until.ts";

const folder = mkdtempSync(join(tmpdir(), "queen-order-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const log = createLog({ level: "error", json: true, write: () => {} });

const copy = <T>(message: T): T => deserialize(serialize(message)) as T;
const away = (): BrokerError => new BrokerError("DATABASE_UNAVAILABLE", "away");

/** Lists of messages by lane; each message is stored once. */
class FakeDatabase {
  readonly lanes = new Map<string, string[]>();
  isUp = true;

  store(partition: string, message: string): void {
    const lane = this.lanes.get(partition) ?? [];
    this.lanes.set(partition, lane);
    if (!lane.includes(message)) lane.push(message);
  }
}

/** A pusher that takes a moment; an append that the outage meets may be stored and not answered. */
function fakePusher(database: FakeDatabase, random: () => number): Pusher {
  const push = (
    items: readonly PushItem[],
    _span: undefined,
    mustNotTry?: readonly boolean[],
  ): Promise<PushRequest> =>
    new Promise((resolve) => {
      const request = new PushRequest(items, undefined, () => resolve(request));
      const tried = items.map((item, index) => ({ item, index })).filter(({ index }) => !mustNotTry?.[index]);
      items.forEach((_, index) => {
        if (mustNotTry?.[index]) request.stranded(index, undefined, undefined);
      });
      if (tried.length === 0) return;
      void sleep(Math.floor(random() * 3)).then(async () => {
        const isStored = database.isUp;
        if (isStored) for (const { item } of tried) database.store(item.partition, item.transactionId);
        await sleep(Math.floor(random() * 3));
        for (const { index } of tried) {
          if (isStored && database.isUp) request.queued(index, {} as Lane, 0);
          else request.stranded(index, away(), undefined);
        }
      });
    });
  return { push } as unknown as Pusher;
}

function fakeDrainer(database: FakeDatabase): Drainer {
  const drain = async (records: readonly SpoolRecord[]) => {
    await sleep(1);
    if (!database.isUp) {
      return { results: records.map(() => ({ status: "later", reason: "away" })), isAway: true };
    }
    for (const record of records) database.store(record.partition, record.content.toString());
    return { results: records.map(() => ({ status: "stored" })), isAway: false };
  };
  return { drain, forget: () => undefined } as unknown as Drainer;
}

test("order per lane survives outages and maintenance on two workers", async () => {
  let seed = Number(process.env.QUEEN_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const name = `seed ${seed}`;
  const random = (): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
    return seed / 2 ** 31;
  };
  const line = <T>(receive: (message: T) => void): ((message: T) => void) => {
    let last: Promise<unknown> = Promise.resolve();
    return (message) => {
      const sent = copy(message);
      last = last.then(() => sleep(random() * 4)).then(() => receive(sent));
    };
  };
  const database = new FakeDatabase();
  const keeper = await Keeper.open({ folder, bytesMax: 1e9, log });
  const pusher = fakePusher(database, random);
  const spools = [0, 1].map(() => {
    // Messages between processes arrive later, in order, as copies.
    const toWorker = { send: line((message: ToWorker) => spool.received(message)) };
    const spool: Spool = new Spool({
      line: { send: line((message: ToKeeper) => keeper.received(toWorker, message)) },
      seal: PLAIN_SEAL,
      pusher,
      drainer: fakeDrainer(database),
      probe: async () => {
        if (!database.isUp) throw away();
      },
      log,
    });
    return spool;
  });
  for (const spool of spools) {
    await spool.join();
    void spool.databaseReady();
  }

  let isOver = false;
  let buffered = 0;
  let direct = 0;
  const produce = async (producer: number): Promise<string[]> => {
    const sent: string[] = [];
    for (let n = 0; !isOver; n++) {
      const message = `${producer}:${n}`;
      const partition = `p${producer % 3}`;
      const item = {
        queue: "q",
        partition,
        transactionId: message,
        transactionIdJson: `"${message}"`,
        traceIdJson: "null",
        keyHigh: 0,
        keyLow: 0,
        fragment: message,
      };
      const spool = spools[Math.floor(random() * spools.length)]!;
      const request = await (spool.isEngaged ? spool.push([item]) : pusher.push([item]));
      if (request.strandedItems) {
        await spool.take(request);
        buffered++;
      } else direct++;
      sent.push(message);
    }
    return sent;
  };
  const producers = Array.from({ length: 6 }, (_, producer) => produce(producer));
  const answered = async (count: number): Promise<void> => {
    const goal = direct + buffered + count;
    await until("pushes are answered", () => direct + buffered >= goal);
  };
  const calm = async (): Promise<void> => {
    database.isUp = true;
    for (const spool of spools) {
      spool.setMaintenance(false);
      await answered(Math.floor(random() * 10));
    }
    const goal = direct + 20;
    await until("pushes go directly again", () => direct >= goal);
  };
  for (let time = 0; time < 8; time++) {
    for (let change = 0; change < 4; change++) {
      if (random() < 0.4) database.isUp = !database.isUp;
      else spools[Math.floor(random() * 2)]!.setMaintenance(random() < 0.6);
      await answered(1 + Math.floor(random() * 20));
    }
    await calm();
  }
  isOver = true;
  const sent = (await Promise.all(producers)).flat();
  await until("everything is drained", () => keeper.figures.pending === 0);
  for (const spool of spools) spool.stop();
  await keeper.close();

  assert.ok(buffered > 50 && direct > 50, `${buffered} buffered, ${direct} direct`);
  const stored = [...database.lanes.values()].flat();
  assert.deepEqual(stored.toSorted(), sent.toSorted(), name);
  for (const [partition, messages] of database.lanes) {
    for (let producer = 0; producer < 6; producer++) {
      const own = messages
        .filter((message) => message.startsWith(`${producer}:`))
        .map((message) => Number(message.split(":")[1]));
      assert.deepEqual(
        own,
        own.toSorted((a, b) => a - b),
        `${name}: producer ${producer} in ${partition}`,
      );
    }
  }
});
