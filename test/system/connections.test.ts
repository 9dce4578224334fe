/**
 * What comes on a connection is the same to the broker however its bytes are packed: plain requests that it reads itself, and
 * all others, which Node's parser reads, are answered in the order in which they came.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { RawSocket } from "../hostile/raw-socket.ts";
import { type BrokerProcess, startBrokerProcess } from "../support/broker.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/moments.ts";

const PATIENCE_MS = 20_000;

let database: TestDatabase;
let broker: BrokerProcess;
let client: HttpClient;
let port: number;

before(async () => {
  database = await createDatabase();
  broker = await startBrokerProcess({ databaseUrl: database.url });
  client = new HttpClient(broker.url);
  port = Number(new URL(broker.url).port);
});
after(async () => {
  client?.close();
  await broker?.stop();
  await database?.drop();
});

const push = (queue: string, payload: number, header = ""): string => {
  const body = JSON.stringify({ items: [{ queue, payload }] });
  return `POST /api/v1/push HTTP/1.1\r\nHost: q\r\n${header}Content-Length: ${body.length}\r\n\r\n${body}`;
};
const pop = (queue: string, query: string): string =>
  `GET /api/v1/pop/queue/${queue}?${query} HTTP/1.1\r\nHost: q\r\n\r\n`;
const LIVE = "GET /livez HTTP/1.1\r\nHost: q\r\n\r\n";

async function onConnection<T>(use: (raw: RawSocket) => Promise<T>): Promise<T> {
  const raw = await RawSocket.open(port);
  try {
    return await use(raw);
  } finally {
    raw.end();
  }
}
const payloads = async (queue: string): Promise<unknown[]> =>
  (await client.pop(queue, { batch: 100, autoAck: true })).messages.map(({ data }) => data);

test("a request may come in one piece, in two, or byte by byte", async () => {
  await onConnection(async (raw) => {
    let count = 0;
    for (const cuts of [[], [9], [60], [140], Array.from({ length: 170 }, (_, at) => at)]) {
      const bytes = push("pieces", count);
      let from = 0;
      for (const to of [...cuts, bytes.length]) {
        raw.send(bytes.slice(from, to));
        from = to;
        await sleep(cuts.length > 10 ? 0 : 5);
      }
      count += 1;
      assert.equal((await raw.answers(count, PATIENCE_MS)).statuses.length, count);
    }
    assert.deepEqual((await raw.answers(count, 0)).statuses, [201, 201, 201, 201, 201]);
  });
  assert.deepEqual(await payloads("pieces"), [0, 1, 2, 3, 4]);
});

test("requests that come together are answered in their order, plain or not", async () => {
  const body = JSON.stringify({ items: [{ queue: "packed", payload: 33 }] });
  const chunked =
    "POST /api/v1/push HTTP/1.1\r\nHost: q\r\nTransfer-Encoding: chunked\r\n\r\n" +
    `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  const requests = [
    push("packed", 1),
    push("packed", 2),
    pop("packed", "autoAck=true&batch=2"),
    pop("packed", "autoAck=true"),
    LIVE,
    chunked,
    "DELETE /api/v1/push HTTP/1.1\r\nHost: q\r\n\r\n",
    pop("packed", "autoAck=true"),
    "POST /api/v1/push HTTP/1.1\r\nHost: q\r\nContent-Length: 1\r\n\r\n{",
  ];
  const expected = [201, 201, 200, 204, 200, 201, 405, 200, 400];
  const { statuses, received } = await onConnection((raw) => {
    raw.send(requests.join(""));
    return raw.answers(expected.length, PATIENCE_MS);
  });
  assert.deepEqual(statuses, expected);
  assert.deepEqual(
    [...received.matchAll(/"data":(\d+)/g)].map(([, data]) => Number(data)),
    [1, 2, 33],
  );
});

test("a request behind a long poll is served after it", async () => {
  await client.push([{ queue: "behind", payload: "made" }]);
  await payloads("behind");
  await onConnection(async (raw) => {
    raw.send(pop("behind", "wait=true&timeout=20000&autoAck=true"));
    await until("it polls", async () => (await parked()) > 0);
    raw.send(push("behind-2", 1).slice(0, 30));
    raw.send(push("behind-2", 1).slice(30));
    await client.push([{ queue: "behind", payload: "awaited" }]);
    const { statuses, received } = await raw.answers(2, PATIENCE_MS);
    assert.deepEqual(statuses, [200, 201]);
    assert.match(received, /"data":"awaited"/);
  });
  assert.deepEqual(await payloads("behind-2"), [1]);
});

for (const how of ["ends its half", "breaks the connection"]) {
  test(`a client that ${how} while it polls takes no message along`, async () => {
    const queue = how.replaceAll(" ", "-");
    await client.push([{ queue, payload: "made" }]);
    await payloads(queue);
    await onConnection(async (raw) => {
      raw.send(pop(queue, "wait=true&timeout=20000"));
      await until("it polls", async () => (await parked()) > 0);
      if (how === "ends its half") raw.socket.end();
      else raw.socket.resetAndDestroy();
      await until("it polls no more", async () => (await parked()) === 0);
    });
    await client.push([{ queue, payload: 1 }]);
    assert.deepEqual(await payloads(queue), [1]);
  });
}

async function parked(): Promise<number> {
  const text = await (await fetch(`${broker.url}/metrics/prometheus`)).text();
  const value = /^queen_pops_parked(?:\{[^}]*\})? (\d+)$/m.exec(text)?.[1];
  assert.ok(value !== undefined, "there is a figure of parked pops");
  return Number(value);
}

test("a client that asks for it has its connection closed behind the answer", async () => {
  await onConnection(async (raw) => {
    raw.send(push("closing", 1, "Connection: close\r\n"));
    assert.ok(await raw.waitForClose(PATIENCE_MS));
    assert.match(raw.received, /HTTP\/1\.1 201 [\s\S]*Connection: close/i);
  });
});

test("an answer says for how long its connection stays, and when it was written", async () => {
  await onConnection(async (raw) => {
    raw.send(push("stays", 1));
    const { received } = await raw.answers(1, PATIENCE_MS);
    assert.match(received, /\r\nConnection: keep-alive\r\nKeep-Alive: timeout=65\r\n/);
    assert.match(received, /\r\nDate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n/);
  });
});
