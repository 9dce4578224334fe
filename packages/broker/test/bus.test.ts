/** What a worker says on the bus, and when: hints gather, and nothing that was to be said is left out. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { Bus, type BusListener } from "../src/cluster/bus.ts";
import type { Session } from "../src/postgres/session.ts";
import { until } from "./until.ts";

const HOUR_MS = 3_600_000;

interface Said {
  readonly hello?: boolean;
  readonly reads?: number[];
  readonly lanes?: [number, number, number][];
}

/** A bus whose notifications are answered when the test says so. */
async function listeningBus(gatherMs: number, groupsRead: number[] = []) {
  const said: { message: Said; answer: () => void }[] = [];
  let hear = (_channel: string, _payload: string): void => {};
  const session = {
    isPooled: false,
    onNotification: (listener: typeof hear) => {
      hear = listener;
    },
    onClose: () => undefined,
    simple: async () => undefined,
    run: (_statement: unknown, [, payload]: [string, string]) =>
      new Promise<void>((resolve) => said.push({ message: JSON.parse(payload), answer: resolve })),
    close: async () => undefined,
  };
  const bus = new Bus({
    id: "here",
    connect: async () => session as unknown as Session,
    listener: { reconnected: () => undefined } as unknown as BusListener,
    gatherMs,
    groupsRead: () => groupsRead,
    now: () => 0,
    log: () => undefined,
  });
  bus.start();
  const next = async (): Promise<Said> => {
    await until("something is said", () => said.length > 0);
    const { message, answer } = said.shift()!;
    answer();
    return message;
  };
  assert.equal((await next()).hello, true);
  const heard = (message: object): void => hear("queen", JSON.stringify({ from: "there", ...message }));
  heard({});
  return { bus, said, next, heard };
}

const settled = async (): Promise<void> => {
  for (let step = 0; step < 10; step++) await turn();
};

const lanesOf = ({ lanes }: Said): number[] => (lanes ?? []).map(([partition]) => partition);

test("the first hint goes at once, and the next ones gather", async () => {
  const { bus, said, next } = await listeningBus(HOUR_MS);
  try {
    bus.appended(1, 7, 1);
    assert.deepEqual(lanesOf(await next()), [1]);
    bus.appended(2, 7, 1);
    await settled();
    bus.appended(3, 7, 1);
    await settled();
    assert.deepEqual(said, []);
  } finally {
    await bus.stop();
  }
});

test("what gathered while a notification was under way goes together, and what fills one does not wait", async () => {
  const { bus, said, next } = await listeningBus(HOUR_MS);
  try {
    bus.appended(1, 7, 1);
    await until("it is being said", () => said.length === 1);
    for (let partition = 2; partition <= 200; partition++) bus.appended(partition, 7, 1);
    assert.deepEqual(lanesOf(await next()), [1]);
    assert.equal(lanesOf(await next()).length, 150);
  } finally {
    await bus.stop();
  }
});

test("who says hello while a notification is under way is answered after it", async () => {
  const { bus, said, next, heard } = await listeningBus(0);
  try {
    bus.appended(1, 7, 1);
    await until("it is being said", () => said.length === 1);
    heard({ hello: true });
    await settled();
    assert.equal(said.length, 1);
    assert.deepEqual(lanesOf(await next()), [1]);
    await settled();
    assert.equal(said.length, 1, "now, and not with the next sign of life");
  } finally {
    await bus.stop();
  }
});

test("which groups read here is said to whoever says hello, and at once when one begins", async () => {
  const groupsRead: number[] = [];
  const { bus, next, heard } = await listeningBus(0, groupsRead);
  try {
    heard({ hello: true });
    assert.deepEqual((await next()).reads, []);
    groupsRead.push(3);
    bus.beganToRead();
    groupsRead.push(4);
    bus.beganToRead();
    assert.deepEqual((await next()).reads, [3, 4]);
    groupsRead.push(...Array(1_000).keys());
    bus.beganToRead();
    assert.equal((await next()).reads!.length, 300, "a notification has room for so many");
  } finally {
    await bus.stop();
  }
});

test("no notification is too long for PostgreSQL, however much there is to say at once", async () => {
  const { bus, said, next } = await listeningBus(HOUR_MS, Array(1_000).fill(2_000_000_000));
  try {
    bus.appended(1, 7, 1);
    await until("it is being said", () => said.length === 1);
    for (let lane = 1; lane <= 200; lane++) {
      bus.appended(4_000_000_000 + lane, 4_000_000_000, 4_000_000_000);
      bus.released(4_000_000_000 + lane);
    }
    bus.beganToRead();
    await next();
    const messages = [await next(), await next()];
    assert.deepEqual(
      messages.map(({ reads = [] }) => reads.length),
      [300, 0],
    );
    assert.deepEqual(
      messages.map((message) => lanesOf(message).length),
      [0, 150],
    );
    for (const message of messages) assert.ok(JSON.stringify(message).length < 8_000);
  } finally {
    await bus.stop();
  }
});
