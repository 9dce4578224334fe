/** Several workers of one broker: the first gets all clients while it has time, and the others stand by. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { HttpClient } from "../support/http.ts";
import { newQueue, numbered, type System, startSystem, until } from "../support/system.ts";

let system: System;
const clients: HttpClient[] = [];

before(async () => {
  system = await startSystem({ NUM_WORKERS: "2" });
});
after(async () => {
  for (const client of clients) client.close();
  await system?.stop();
});

const connect = (): HttpClient => {
  const client = new HttpClient(system.broker.url);
  clients.push(client);
  return client;
};
const askWorker = async (client: HttpClient): Promise<{ id: number; pid: number }> => {
  return (await client.request("GET", "/metrics")).json.worker;
};
const workerOf = async (client: HttpClient): Promise<number> => (await askWorker(client)).id;

/** The first worker stands still. Who was offered to it before it was found silent waits for it. */
const otherServes = (): Promise<boolean> =>
  until("the other one serves", () =>
    Promise.race([workerOf(connect()).then((id) => id === 1), sleep(5_000).then(() => false)]),
  );

test("while it has time, all clients reach the first worker", async () => {
  // At the start both may have taken some.
  await until("a new client reaches the first", async () => (await workerOf(connect())) === 0);
  const reached = await Promise.all(Array.from({ length: 20 }, () => workerOf(connect())));
  assert.deepEqual(new Set(reached), new Set([0]));
});

test("when it is killed the other serves, and its successor gets the clients back", async () => {
  const { pid, id } = await askWorker(connect());
  assert.equal(id, 0);
  const before = system.broker.workerPids();
  assert.ok(before.includes(pid));
  process.kill(pid, "SIGKILL");
  // Until then a connection may be offered to the dead.
  await until("the broker has noticed", () => !existsSync(`/proc/${pid}`));
  const queue = newQueue();
  const stayed = connect();
  const [pushed] = await stayed.push(numbered(queue, 1));
  assert.equal(pushed!.status, "queued");
  await until("there are two workers again", () => {
    const pids = system.broker.workerPids();
    return pids.length === 2 && !pids.includes(pid);
  });
  await until("a new client reaches the first again", async () => (await workerOf(connect())) === 0);
  await until("and so does who had come meanwhile", async () => (await workerOf(stayed)) === 0);
  assert.equal((await stayed.pop(queue)).messages.length, 1);
});

test("who was offered to a worker when it died hears of it, and is served when coming again", async () => {
  const { pid } = await askWorker(connect());
  process.kill(pid, "SIGSTOP");
  // One of the first is offered to it; the others wait until the other one takes them.
  const offered = [connect(), connect(), connect()];
  const heard = Promise.all(
    offered.map((client) =>
      client.request("GET", "/metrics").then(
        () => "an answer",
        (error) => error.code,
      ),
    ),
  );
  await otherServes();
  process.kill(pid, "SIGKILL");
  assert.deepEqual((await heard).toSorted(), ["ECONNRESET", "an answer", "an answer"]);
  for (const client of offered) assert.equal((await client.request("GET", "/metrics")).status, 200);
  await until("a new client reaches the first again", async () => (await workerOf(connect())) === 0);
});

test("a worker that stands still gets no new clients", async () => {
  const { pid } = await askWorker(connect());
  process.kill(pid, "SIGSTOP");
  try {
    await otherServes();
    assert.equal(await workerOf(connect()), 1);
  } finally {
    process.kill(pid, "SIGCONT");
  }
  await until("a new client reaches it again", async () => (await workerOf(connect())) === 0);
});
