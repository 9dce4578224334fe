/** Brokers that are stopped and started again one after the other, under load: no client notices. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startBalancer } from "../support/balancer.ts";
import { type BrokerProcess, freePort, startBrokerProcess } from "../support/broker.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/moments.ts";

const QUEUE = "rolling";
const PRODUCERS = 4;
const CONSUMERS = 4;
const LANES = 8;
// Well above the time between two questions of the balancer.
const DELAY_MS = 1_000;

/** Sends requests as its rule says; what it rejects with, or a status from 400 on, is an error at the client. */
interface Caller {
  request(method: string, path: string, body?: unknown): Promise<{ status: number; json: unknown }>;
  close(): void;
}

interface Message {
  readonly transactionId: string;
  readonly partitionId: string;
  readonly leaseId: string;
  readonly partition: string;
  readonly data: string;
}

class Load {
  readonly errors: string[] = [];
  /** By lane: the values in the order in which they were pushed by each producer, and delivered. */
  readonly pushed = new Map<string, string[]>();
  readonly delivered = new Map<string, string[]>();
  readonly #callers: Caller[] = [];
  readonly #newCaller: (index: number) => Caller;
  readonly #producing: Promise<void>[] = [];
  readonly #consuming: Promise<void>[] = [];
  #areProducersDone = false;
  #isOver = false;

  constructor(newCaller: (index: number) => Caller) {
    this.#newCaller = newCaller;
  }

  get deliveredCount(): number {
    return [...this.delivered.values()].reduce((sum, values) => sum + values.length, 0);
  }

  get pushedCount(): number {
    return [...this.pushed.values()].reduce((sum, values) => sum + values.length, 0);
  }

  start(): void {
    for (let index = 0; index < PRODUCERS; index++) this.#producing.push(this.#produce(index));
    for (let index = 0; index < CONSUMERS; index++) this.#consuming.push(this.#consume(PRODUCERS + index));
  }

  async finish(): Promise<void> {
    this.#areProducersDone = true;
    await Promise.all(this.#producing);
    await until("everything was delivered", () => this.deliveredCount >= this.pushedCount);
    this.#isOver = true;
    await Promise.all(this.#consuming);
    for (const caller of this.#callers) caller.close();
  }

  async #call(caller: Caller, method: string, path: string, body?: unknown) {
    try {
      const answer = await caller.request(method, path, body);
      if (answer.status < 400) return answer;
      this.errors.push(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.json)}`);
    } catch (error) {
      this.errors.push(`${method} ${path}: ${(error as Error).message}`);
    }
    return undefined;
  }

  #caller(index: number): Caller {
    const caller = this.#newCaller(index);
    this.#callers.push(caller);
    return caller;
  }

  async #produce(index: number): Promise<void> {
    const caller = this.#caller(index);
    for (let number = 0; !this.#areProducersDone; number++) {
      const partition = `p${number % LANES}`;
      const value = `${index}:${number}`;
      const item = { queue: QUEUE, partition, transactionId: value, payload: value };
      const answer = await this.#call(caller, "POST", "/api/v1/push", { items: [item] });
      if (answer) append(this.pushed, partition, value);
      await sleep(10);
    }
  }

  async #consume(index: number): Promise<void> {
    const caller = this.#caller(index);
    const path = `/api/v1/pop/queue/${QUEUE}?wait=true&timeout=1000&batch=20&partitions=2`;
    while (!this.#isOver) {
      const answer = await this.#call(caller, "GET", path);
      const { messages } = (answer?.json ?? { messages: [] }) as { messages: Message[] };
      if (messages.length === 0) continue;
      for (const { partition, data } of messages) append(this.delivered, partition, data);
      const acknowledgments = messages.map(({ transactionId, partitionId, leaseId }) => ({
        transactionId,
        partitionId,
        leaseId,
      }));
      const acked = await this.#call(caller, "POST", "/api/v1/ack/batch", { acknowledgments });
      for (const { success, error } of (acked?.json ?? []) as { success: boolean; error: string }[])
        if (!success) this.errors.push(`ack: ${error}`);
    }
  }

  /** Everything once, and each producer's messages in their order. */
  assertComplete(): void {
    for (const [lane, values] of this.pushed) {
      const got = this.delivered.get(lane) ?? [];
      assert.deepEqual([...got].sort(), [...values].sort(), `each message of ${lane} came once`);
      for (let producer = 0; producer < PRODUCERS; producer++) {
        const of = (list: readonly string[]) => list.filter((value) => value.startsWith(`${producer}:`));
        assert.deepEqual(of(got), of(values), `producer ${producer} in ${lane}`);
      }
    }
  }
}

function append(lists: Map<string, string[]>, key: string, value: string): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

class Trio {
  readonly database: TestDatabase;
  readonly ports: readonly number[];
  readonly brokers: BrokerProcess[] = [];
  readonly #env: Record<string, string>;

  static async start(env: Record<string, string>): Promise<Trio> {
    const ports = [await freePort(), await freePort(), await freePort()];
    const trio = new Trio(await createDatabase(), ports, env);
    for (const index of ports.keys()) await trio.startOne(index);
    return trio;
  }

  private constructor(database: TestDatabase, ports: readonly number[], env: Record<string, string>) {
    this.database = database;
    this.ports = ports;
    this.#env = env;
  }

  get urls(): string[] {
    return this.brokers.map(({ url }) => url);
  }

  async startOne(index: number): Promise<void> {
    this.brokers[index] = await startBrokerProcess({
      databaseUrl: this.database.url,
      env: { NUM_WORKERS: "1", ...this.#env, PORT: String(this.ports[index]) },
    });
  }

  /** One after the other, while the load goes on. */
  async restartAll(load: Load): Promise<void> {
    const progress = (): Promise<unknown> => {
      const { deliveredCount } = load;
      return until("the load goes on", () => load.deliveredCount > deliveredCount + 20);
    };
    await progress();
    for (const [index, broker] of [...this.brokers].entries()) {
      assert.equal(await broker.stop(), 0, `broker ${index} ends in order`);
      await progress();
      await this.startOne(index);
      await progress();
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.brokers.map((broker) => broker.kill("SIGKILL")));
    await this.database.drop();
  }
}

test("behind a balancer that asks for readiness, clients see no error while three brokers are restarted", async () => {
  const trio = await Trio.start({ QUEEN_SHUTDOWN_DELAY_MS: String(DELAY_MS) });
  const balancer = await startBalancer(trio.urls);
  const load = new Load(() => new HttpClient(balancer.url));
  try {
    load.start();
    await trio.restartAll(load);
    assert.deepEqual(load.errors, []);
    await load.finish();
    assert.deepEqual(load.errors, []);
    load.assertComplete();
    assert.ok(
      balancer.connections.every((count) => count > 0),
      `all brokers were used: ${balancer.connections}`,
    );
  } finally {
    await balancer.close();
    await trio.stop();
  }
});

/** It has several URLs and turns to the next when one does not answer, as clients are told to; it never gives up twice. */
class Roamer implements Caller {
  readonly #urls: readonly string[];
  #at: number;
  #client: HttpClient;

  constructor(urls: readonly string[], at: number) {
    this.#urls = urls;
    this.#at = at;
    this.#client = this.#open();
  }

  async request(method: string, path: string, body?: unknown) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#client.request(method, path, body);
      } catch (error) {
        if (attempt === this.#urls.length) throw error;
        this.#at++;
        this.close();
        this.#client = this.#open();
      }
    }
  }

  close(): void {
    this.#client.close();
  }

  #open(): HttpClient {
    return new HttpClient(this.#urls[this.#at % this.#urls.length]!);
  }
}

test("clients with several URLs see no error while three brokers are restarted", async () => {
  const trio = await Trio.start({});
  const load = new Load((index) => new Roamer(trio.urls, index));
  try {
    load.start();
    await trio.restartAll(load);
    assert.deepEqual(load.errors, []);
    await load.finish();
    assert.deepEqual(load.errors, []);
    load.assertComplete();
  } finally {
    await trio.stop();
  }
});

test("a stopping broker says so, serves on, lets nobody wait, and asks clients to come back elsewhere", async () => {
  const trio = await Trio.start({ QUEEN_SHUTDOWN_DELAY_MS: "2000" });
  const client = new HttpClient(trio.urls[0]!);
  try {
    const parked = client.pop(QUEUE, { wait: true, timeout: 60_000 });
    await until("the pop is parked", async () => {
      return (await client.request("GET", "/metrics")).json.pops.parked === 1;
    });
    const stopped = trio.brokers[0]!.stop();
    await until("it is not ready", async () => {
      const { status, json } = await client.request("GET", "/readyz");
      if (status === 200) return false;
      assert.deepEqual([status, json.status], [503, "not ready: the broker is stopping"]);
      return true;
    });
    assert.equal((await client.request("GET", "/livez")).status, 200);
    const pushed = await client.request("POST", "/api/v1/push", { items: [{ queue: "other", payload: 1 }] });
    assert.deepEqual([pushed.status, pushed.headers.connection], [201, "close"]);
    const answer = await parked;
    assert.deepEqual([answer.status, answer.headers.connection], [204, "close"]);
    assert.equal(await stopped, 0);
  } finally {
    client.close();
    await trio.stop();
  }
});
