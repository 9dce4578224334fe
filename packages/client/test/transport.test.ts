import assert from "node:assert/strict";
import { test } from "node:test";
import { ERRORS, type ErrorCode } from "@queen/protocol";
import {
  ClosedError,
  ConnectionError,
  NotFoundError,
  Queen,
  ServerError,
  type ServerErrorCode,
  TimeoutError,
  TooManyRequestsError,
  UnavailableError,
} from "../src/index.ts";
import { Balancer } from "../src/transport/balancer.ts";
import { retryAfterMillis } from "../src/transport/call.ts";
import { Endpoint } from "../src/transport/endpoint.ts";
import { HashRing } from "../src/transport/hash-ring.ts";
import { judge } from "../src/transport/retry.ts";
import { type FakeBroker, json, type Respond, startFakeBroker } from "./fake-broker.ts";

const answered: Respond = (_, response) => json(response, 200, { ok: true });
const reset: Respond = (_, response) => response.socket?.resetAndDestroy();
const refused =
  (status: number, code: string, headers = {}): Respond =>
  (_, response) =>
    json(response, status, { error: "a sentence", code }, headers);

async function withBrokers(
  responds: Respond[],
  body: (brokers: FakeBroker[]) => Promise<void>,
): Promise<void> {
  const brokers = await Promise.all(responds.map(startFakeBroker));
  try {
    await body(brokers);
  } finally {
    await Promise.all(brokers.map((broker) => broker.stop()));
  }
}

test("a request carries query, body and credential, and its answer is JSON, text or null", async () => {
  await withBrokers([answered], async ([broker]) => {
    const queen = new Queen({ url: `${broker!.url}/`, token: async () => "secret", headers: { "x-a": "b" } });
    const query = { batch: 2, wait: true, no: undefined, nor: null, many: ["a b", "c&d"] };
    assert.deepEqual(await queen.request("POST", "/api/v1/push", { query, body: { items: [] } }), {
      ok: true,
    });
    const [asked] = broker!.asked;
    assert.equal(asked!.path, "/api/v1/push?batch=2&wait=true&many=a+b&many=c%26d");
    assert.equal(asked!.headers.authorization, "Bearer secret");
    assert.equal(asked!.headers["x-a"], "b");
    assert.deepEqual(asked!.body, { items: [] });

    broker!.respond = (_, response) => void response.end("# HELP x");
    assert.equal(await queen.request("GET", "/metrics/prometheus"), "# HELP x");
    broker!.respond = (_, response) =>
      void response.writeHead(204, { "queen-empty-reason": "timeout" }).end();
    const answer = await queen.answer("GET", "/api/v1/pop");
    assert.deepEqual(
      [answer.status, answer.body, answer.headers.get("Queen-Empty-Reason")],
      [204, null, "timeout"],
    );
    await queen.close();
    await assert.rejects(queen.request("GET", "/"), ClosedError);
  });
});

test("what the server refuses is an error class with its code, status and time to wait", async () => {
  await withBrokers([refused(404, "NOT_FOUND", { "x-request-id": "r1" })], async ([broker]) => {
    const queen = new Queen({ url: broker!.url, retries: 0 });
    const failure = async (): Promise<unknown> => queen.request("GET", "/a").catch((error: unknown) => error);
    const notFound = await failure();
    assert.ok(notFound instanceof NotFoundError && notFound instanceof ServerError);
    const { code, status, requestId, retryable } = notFound;
    assert.deepEqual(
      { code, status, requestId, retryable },
      { code: "NOT_FOUND", status: 404, requestId: "r1", retryable: false },
    );
    assert.match(notFound.message, /GET \/a: a sentence/);

    broker!.respond = refused(429, "QUEUE_FULL", { "retry-after": "3" });
    const full = await failure();
    assert.ok(full instanceof TooManyRequestsError);
    assert.deepEqual([full.code, full.retryAfterMillis, full.retryable], ["QUEUE_FULL", 3_000, true]);

    broker!.respond = (_, response) => void response.writeHead(502).end("<html>bad gateway");
    const gateway = await failure();
    assert.ok(gateway instanceof UnavailableError);
    assert.deepEqual([gateway.code, gateway.body], ["HTTP_502", "<html>bad gateway"]);
  });
});

test("the client agrees with the server about what may be tried again", () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const { status, retryable } = ERRORS[code];
    code satisfies ServerErrorCode;
    const answer = { status, code, retryAfterMillis: null, requestId: null, body: null };
    assert.equal(new ServerError("", answer).retryable, retryable, code);
    assert.equal(judge(new ServerError("", answer), true).again, retryable, code);
  }
});

test("in doubt, only what can be repeated is sent again", async () => {
  await withBrokers([reset], async ([broker]) => {
    const queen = new Queen({ url: broker!.url, retryDelayMillis: 1 });
    await assert.rejects(queen.request("POST", "/api/v1/dlq/purge", { body: {} }), (error) => {
      assert.ok(error instanceof ConnectionError);
      return error.inDoubt;
    });
    assert.equal(broker!.asked.length, 1);

    await assert.rejects(
      queen.request("POST", "/api/v1/push", { body: {}, repeatable: true }),
      ConnectionError,
    );
    assert.equal(broker!.asked.length, 1 + 5);
    broker!.respond = (asked, response) => (broker!.asked.length < 9 ? reset : answered)(asked, response);
    await queen.request("GET", "/a");
    assert.equal(broker!.asked.length, 9);
  });
  const { url, stop } = await startFakeBroker(answered);
  await stop();
  await assert.rejects(new Queen({ url, retries: 0 }).request("POST", "/a"), (error) => {
    assert.ok(error instanceof ConnectionError);
    return !error.inDoubt; // nothing listens there: it was never sent
  });
});

test("half an answer is none, and one in pieces is whole", async () => {
  const text = JSON.stringify({ ok: "ü€😀" });
  const bytes = Buffer.from(text);
  await withBrokers([answered], async ([broker]) => {
    const queen = new Queen({ url: broker!.url, retries: 0 });
    broker!.respond = (_asked, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": bytes.length });
      response.write(bytes.subarray(0, 9), () => response.destroy());
    };
    await assert.rejects(queen.request("GET", "/a"), (error) => {
      assert.ok(error instanceof ConnectionError);
      return error.inDoubt;
    });
    broker!.respond = (_asked, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      // In the middle of a character.
      response.write(bytes.subarray(0, 9), () => setImmediate(() => response.end(bytes.subarray(9))));
    };
    assert.deepEqual(await queen.request("POST", "/a", { body: { sent: "ü€😀" } }), { ok: "ü€😀" });
    assert.deepEqual(broker!.asked.at(-1)?.body, { sent: "ü€😀" });
  });
});

test("whoever is led elsewhere is told where", async () => {
  const led: Respond = (_asked, response) => {
    response.writeHead(308, { location: "https://queen.example/" }).end();
  };
  await withBrokers([led], async ([broker]) => {
    const queen = new Queen({ url: broker!.url, retries: 0 });
    await assert.rejects(
      queen.request("POST", "/a"),
      /308 Permanent Redirect: use https:\/\/queen\.example\//,
    );
  });
});

test("a broker that is overloaded is asked again after its Retry-After, also what must not be repeated", async () => {
  await withBrokers([refused(503, "OVERLOADED", { "retry-after": "0" })], async ([broker]) => {
    const queen = new Queen({ url: broker!.url, retryDelayMillis: 1 });
    broker!.respond = (asked, response) =>
      (broker!.asked.length < 3 ? refused(503, "OVERLOADED", { "retry-after": "0" }) : answered)(
        asked,
        response,
      );
    assert.deepEqual(await queen.request("POST", "/a"), { ok: true });
    assert.equal(broker!.asked.length, 3);
    broker!.respond = refused(503, "DATABASE_UNAVAILABLE");
    await assert.rejects(queen.request("POST", "/a"), UnavailableError);
    assert.equal(broker!.asked.length, 4); // it may have been stored
    broker!.respond = refused(429, "QUEUE_FULL", { "retry-after": "3600" });
    await assert.rejects(queen.request("POST", "/a", { repeatable: true }), TooManyRequestsError);
    assert.equal(broker!.asked.length, 5); // nobody waits for an hour inside a call
  });
});

test("a request ends at its timeout, and with its signal's reason", async () => {
  await withBrokers([() => undefined], async ([broker]) => {
    const queen = new Queen({ url: broker!.url, retryDelayMillis: 1 });
    await assert.rejects(queen.request("GET", "/a", { timeoutMillis: 1_000 }), TimeoutError);
    assert.equal(broker!.asked.length, 1);
    const abort = new AbortController();
    const call = queen.request("GET", "/a", { signal: abort.signal });
    abort.abort(new Error("enough"));
    await assert.rejects(call, /enough/);
    const open = queen.request("GET", "/a");
    await queen.close();
    await assert.rejects(open, ClosedError);
  });
});

test("many requests under one signal are no leak", async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on("warning", note);
  await withBrokers([answered], async ([broker]) => {
    const queen = new Queen({ url: broker!.url });
    const { signal } = new AbortController();
    await Promise.all(Array.from({ length: 30 }, () => queen.request("GET", "/a", { signal })));
    await new Promise((resolve) => setImmediate(resolve));
  });
  process.off("warning", note);
  assert.deepEqual(warnings, []);
});

test("round-robin visits all, session stays, affinity keeps a key at its broker", async () => {
  await withBrokers([answered, answered, answered], async (brokers) => {
    const urls = brokers.map((broker) => broker.url);
    const counts = (): number[] => brokers.map((broker) => broker.asked.splice(0).length);
    const ask = async (queen: Queen, key?: string): Promise<void> => {
      for (let each = 0; each < 6; each++)
        await queen.request("GET", "/", key === undefined ? {} : { affinityKey: key });
    };
    await ask(new Queen({ urls, balancing: "round-robin" }));
    assert.deepEqual(counts(), [2, 2, 2]);
    await ask(new Queen({ urls, balancing: "session" }));
    assert.deepEqual(counts().sort(), [0, 0, 6]);
    await ask(new Queen({ urls, balancing: "affinity" }), "orders:c-42:billing");
    const first = counts();
    assert.deepEqual([...first].sort(), [0, 0, 6]);
    await ask(new Queen({ urls: [...urls].reverse() }), "orders:c-42:billing");
    assert.deepEqual(counts(), first); // another client, in another order: the same broker
    await ask(new Queen({ urls }));
    assert.deepEqual(counts(), [2, 2, 2]);
  });
});

test("a broker that fails is left out, others answer, and it is used again when it is back", async () => {
  await withBrokers([answered, answered], async (brokers) => {
    const urls = brokers.map((broker) => broker.url);
    const queen = new Queen({ urls, recoverMillis: 20, retryDelayMillis: 1 });
    const ask = async () => (await queen.answer("GET", "/", { affinityKey: "k" })).endpoint;
    const owner = await ask();
    const [sick, well] = owner === urls[0] ? brokers : [...brokers].reverse();
    sick!.respond = reset;
    assert.equal(await ask(), well!.url);
    assert.deepEqual(queen.endpoints.find(({ url }) => url === sick!.url)?.isHealthy, false);
    sick!.respond = answered;
    while ((await ask()) !== sick!.url);
    assert.ok(queen.endpoints.every(({ isHealthy }) => isHealthy));

    for (const broker of brokers) broker.respond = reset;
    setTimeout(() => {
      for (const broker of brokers) broker.respond = answered;
    }, 5);
    const patient = new Queen({ urls, recoverMillis: 1, retryDelayMillis: 4 });
    assert.deepEqual(await patient.request("GET", "/"), { ok: true }); // all were away for a while
  });
});

test("a broker that failed rests, longer each time, up to a limit", () => {
  let now = 0;
  const endpoint = new Endpoint("http://a", 1_500, () => now);
  endpoint.failed();
  endpoint.failed(); // was under way meanwhile: no second failure
  const rests: number[] = [];
  for (let times = 0; times < 3; times++) {
    rests.push(endpoint.restsUntil - now);
    assert.equal(endpoint.isDue, false);
    now = endpoint.restsUntil;
    assert.equal(endpoint.isDue, true);
    endpoint.failed();
  }
  assert.deepEqual(rests, [500, 1_000, 1_500]);
  endpoint.succeeded();
  assert.equal(endpoint.isHealthy, true);
});

test("whether a broker is back is found out beside the requests, not by one of them", async () => {
  await withBrokers([answered, answered], async (brokers) => {
    const queen = new Queen({ urls: brokers.map(({ url }) => url), recoverMillis: 1, retryDelayMillis: 1 });
    const [first, second] = brokers;
    first!.respond = reset;
    while (queen.endpoints.every(({ isHealthy }) => isHealthy)) await queen.request("GET", "/a");
    first!.asked.splice(0);
    for (let times = 0; times < 20; times++) {
      await queen.request("GET", "/a");
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    assert.ok(first!.asked.length > 0 && first!.asked.every(({ path }) => path === "/readyz"));
    assert.ok(second!.asked.length >= 20);
  });
});

test("a broker without a queue's key is no sick broker", async () => {
  await withBrokers([answered, answered], async (brokers) => {
    const queen = new Queen({ urls: brokers.map(({ url }) => url), retryDelayMillis: 1 });
    brokers[0]!.respond = refused(503, "ENCRYPTION_KEY_MISSING");
    for (let times = 0; times < 4; times++) await queen.request("GET", "/a");
    assert.ok(queen.endpoints.every(({ isHealthy }) => isHealthy));
  });
});

test("with every broker resting, the one that is back first is tried", () => {
  let now = 0;
  const [a, b] = [new Endpoint("http://a", 5_000, () => now), new Endpoint("http://b", 5_000, () => now)];
  const balancer = new Balancer([a, b], "round-robin", () => 0);
  b.failed();
  now = 100;
  a.failed();
  assert.deepEqual(balancer.order(), [b, a]);
});

test("one broker less moves only its own keys", () => {
  const names = ["http://a", "http://b", "http://c"];
  const [all, less] = [new HashRing(names), new HashRing(names.slice(0, 2))];
  const counts = [0, 0, 0];
  for (let each = 0; each < 3_000; each++) {
    const [owner, second, third] = all.order(`orders:c-${each}:g`);
    counts[owner!]!++;
    const heir = less.order(`orders:c-${each}:g`)[0];
    assert.equal(
      heir,
      [owner, second, third].find((member) => member !== 2),
    );
  }
  for (const count of counts) assert.ok(count > 700 && count < 1_300, `${counts}`);
});

test("Retry-After is seconds or a date", () => {
  assert.equal(retryAfterMillis("2"), 2_000);
  assert.equal(retryAfterMillis(null), null);
  assert.equal(retryAfterMillis("soon"), null);
  const now = Date.parse("2026-11-15T00:00:00Z");
  assert.equal(
    retryAfterMillis("Sun, 15 Nov 2026 00:00:05 GMT", () => now),
    5_000,
  );
});

test("options that make no sense are refused with what to do", () => {
  assert.throws(() => new Queen("localhost:6632"), /is not a URL of a broker/);
  assert.throws(() => new Queen({ urls: [] }), /at least one/);
  assert.throws(() => new Queen({ url: "http://a", urls: ["http://b"] }), /not both/);
  assert.throws(() => new Queen({ timeoutMillis: Number.NaN }), /timeoutMillis/);
});
