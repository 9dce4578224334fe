import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { BrokerError } from "@queen/protocol";
import { Guard } from "../src/access/guard.ts";
import { Identity } from "../src/access/identity.ts";
import { json } from "../src/http/answers.ts";
import { Live } from "../src/http/live.ts";
import { type Request, route, type Sink } from "../src/http/route.ts";
import { Router } from "../src/http/router.ts";

const READER = new Identity({ subject: null, name: "reader", roles: ["read-only"], queues: undefined });

let nowMs = 0;
let readings: string[];
let figure = 0;
let live: Live;

/** What a follower heard, and how it leaves. */
interface Follower {
  readonly heard: string[];
  isBehind: boolean;
  leave(): void;
}

beforeEach(() => {
  mock.timers.enable({ apis: ["setInterval"] });
  nowMs = 0;
  readings = [];
  figure = 1;
  const facts = { method: "GET", tag: "Status", summary: "", answers: {} } as const;
  const router = new Router([
    route({
      ...facts,
      path: "/api/v1/figure/:name",
      access: "read",
      handle: ({ params }) => {
        readings.push(params.name!);
        return json(200, { figure }, { "Queen-Total": "7" });
      },
    }),
    route({
      ...facts,
      path: "/api/v1/slow-to-change",
      access: "read",
      followedEveryMs: 5_000,
      handle: () => {
        readings.push("slow");
        return json(200, { figure });
      },
    }),
    route({ ...facts, path: "/api/v1/pop", access: "consume", handle: () => json(200, {}) }),
    route({ ...facts, path: "/api/v1/secret", access: "admin", handle: () => json(200, {}) }),
  ]);
  live = new Live({
    router: () => router,
    guard: new Guard({
      tokens: undefined,
      keys: undefined,
      sessions: undefined,
      adminKey: undefined,
      openPaths: [],
      now: () => nowMs,
    }),
    queueOfPartition: async () => undefined,
    classify: (error) => error as BrokerError,
    now: () => nowMs,
  });
});
afterEach(() => mock.timers.reset());

async function follow(paths: string, identity = READER): Promise<Follower> {
  const request = { identity, path: "/api/v1/stream", headers: {} } as unknown as Request;
  const { stream } = await live.follow(request, paths);
  let ended: () => void = () => undefined;
  const follower: Follower = { heard: [], isBehind: false, leave: () => ended() };
  const sink: Sink = {
    write: (text) => {
      if (text.startsWith("data: ")) follower.heard.push(text.slice("data: ".length).trim());
    },
    get isBehind() {
      return follower.isBehind;
    },
    end: () => ended(),
    onEnd: (listener) => {
      ended = listener;
    },
  };
  stream!(sink);
  await settled();
  return follower;
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function second(): Promise<void> {
  nowMs += 1_000;
  mock.timers.tick(1_000);
  await settled();
}

test("a follower hears at once, and again only when something changed", async () => {
  const { heard } = await follow("/api/v1/figure/a");
  const event = (value: number) =>
    `{"path":"/api/v1/figure/a","status":200,"total":7,"body":{"figure":${value}}}`;
  assert.deepEqual(heard, [event(1)]);
  await second();
  assert.deepEqual(heard, [event(1)]);
  figure = 2;
  await second();
  assert.deepEqual(heard, [event(1), event(2)]);
});

test("a path is read once a second, however many follow it", async () => {
  const all = [
    await follow("/api/v1/figure/a"),
    await follow("/api/v1/figure/a"),
    await follow("/api/v1/figure/a"),
  ];
  assert.deepEqual(readings, ["a"]);
  for (const { heard } of all) assert.equal(heard.length, 1);
  await second();
  await second();
  assert.deepEqual(readings, ["a", "a", "a"]);
});

test("when the last one has left, nothing is read", async () => {
  const one = await follow("/api/v1/figure/a");
  const other = await follow("/api/v1/figure/a /api/v1/figure/b");
  one.leave();
  await second();
  assert.deepEqual(readings, ["a", "b", "a", "b"]);
  other.leave();
  await second();
  await second();
  assert.equal(readings.length, 4);
});

test("a route that changes slowly is read as often as it says", async () => {
  await follow("/api/v1/slow-to-change");
  for (let passed = 0; passed < 10; passed++) await second();
  assert.equal(readings.length, 3); // at 0, 5 and 10 seconds
});

test("who does not keep up misses events, and is not sent more and more", async () => {
  const follower = await follow("/api/v1/figure/a");
  follower.isBehind = true;
  figure = 2;
  await second();
  assert.equal(follower.heard.length, 1);
  follower.isBehind = false;
  figure = 3;
  await second();
  assert.equal(follower.heard.length, 2);
});

test("what may not be read is refused in its own event, and the rest is followed", async () => {
  const { heard } = await follow("/api/v1/secret /api/v1/pop /api/v1/nothing /api/v1/figure/a");
  assert.deepEqual(
    heard.map((text) => {
      const { path, status } = JSON.parse(text);
      return [path, status];
    }),
    [
      ["/api/v1/secret", 403],
      ["/api/v1/pop", 400],
      ["/api/v1/nothing", 404],
      ["/api/v1/figure/a", 200],
    ],
  );
  await assert.rejects(follow(""), BrokerError);
});

test("who may use some queues only does not share with those who may use all", async () => {
  const limited = new Identity({ subject: null, name: "limited", roles: ["read-only"], queues: ["a"] });
  const { heard } = await follow("/api/v1/figure/a", limited);
  assert.match(heard[0]!, /"status":403/); // it names no queue
});
