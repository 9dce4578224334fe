/**
 * Long polls: a parked pop asks nothing, is woken by whatever gives it work, ends at its deadline, and
 * leaves nothing behind when its client goes away. Everything holds with and without the bus.
 */
import assert from "node:assert/strict";
import { get } from "node:http";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type BrokerProcess, startBrokerProcess } from "../support/broker.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { connectToBoth } from "../support/fleet.ts";
import { HttpClient, type PopAnswer, type PopQuery, type PushItem } from "../support/http.ts";
import { until } from "../support/moments.ts";
import { BUSES, NOT_POOLED } from "../support/pooled.ts";
import { type PostgresProxy, startProxy } from "../support/proxy.ts";

// Longer than any test waits: a pop that ends by its deadline was not woken.
const LONG_MS = 30_000;
// With the bus, what wakes a pop is told; a broker that looks so seldom does not find it by looking.
const NEVER_LOOKS = { POP_WAIT_MAX_INTERVAL_MS: "60000" };
const LOOKS_OFTEN = { POP_WAIT_MAX_INTERVAL_MS: "100" };

let queueCount = 0;
const newQueue = (): string => `queue-${++queueCount}`;

const values = (answer: PopAnswer): unknown[] => answer.messages.map((message) => message.data);

const item = (queue: string, payload: unknown, partition = "Default"): PushItem => ({
  queue,
  partition,
  payload,
});

interface Pops {
  readonly live: number;
  readonly parked: number;
  readonly states: Readonly<Record<string, { count: number } | undefined>>;
}

async function popsOf(client: HttpClient): Promise<Pops> {
  return (await client.request("GET", "/metrics")).json.pops;
}

/** A pop that waits, in hand: its answer, and a way to hang up. */
interface Waiter {
  readonly answer: Promise<PopAnswer>;
  hangUp(): void;
}

/** Resolves when the broker has parked it; `watch` is a second connection to the same worker. */
async function park(
  client: HttpClient,
  queue: string,
  query: PopQuery = {},
  watch: HttpClient = client,
): Promise<Waiter> {
  const { parked } = await popsOf(watch);
  const abort = new AbortController();
  const answer = client.pop(queue, { wait: true, timeout: LONG_MS, ...query }, { signal: abort.signal });
  answer.catch(() => undefined); // an abort is expected
  await until("the pop is parked", async () => (await popsOf(watch)).parked > parked);
  return { answer, hangUp: () => abort.abort() };
}

for (const bus of BUSES) {
  describe(`long polls with the bus ${bus}`, () => {
    let database: TestDatabase;
    const brokers: BrokerProcess[] = [];
    const clients: HttpClient[] = [];
    let one: HttpClient;
    let oneUrl: string;
    let other: HttpClient;
    /** Connections to the two workers of a third broker, two to each. */
    let workers: Map<number, HttpClient[]>;
    const env = { QUEEN_BUS: bus, NUM_WORKERS: "1", ...LOOKS_OFTEN };

    const start = async (more: Record<string, string>): Promise<BrokerProcess> => {
      const broker = await startBrokerProcess({ databaseUrl: database.url, env: { ...env, ...more } });
      brokers.push(broker);
      return broker;
    };
    const client = (broker: BrokerProcess): HttpClient => {
      const created = new HttpClient(broker.url);
      clients.push(created);
      return created;
    };

    before(async () => {
      database = await createDatabase();
      const push = bus === "on" ? NEVER_LOOKS : {};
      const [first, second, pair] = await Promise.all([
        start(push),
        start(push),
        start({ NUM_WORKERS: "2", QUEEN_PLACEMENT: "even", ...push }),
      ]);
      one = client(first);
      oneUrl = first.url;
      other = client(second);
      workers = await connectToBoth(pair, client);
      if (bus === "on") {
        // Three brokers have four workers, each of which must have heard of the other three.
        for (const each of [one, other, workers.get(0)![0]!, workers.get(1)![0]!]) {
          await until("the bus knows all workers", async () => {
            const { bus: figures } = (await each.request("GET", "/metrics")).json;
            return figures.state === "listening" && figures.peers === 3;
          });
        }
      }
    });

    after(async () => {
      for (const each of clients) each.close();
      await Promise.all(brokers.map((broker) => broker.stop()));
      await database.drop();
    });

    /** A broker that finds by looking what no hint tells; for what passes with time. */
    let looking: Promise<readonly [HttpClient, HttpClient]> | undefined;
    const lookingBrokers = (): Promise<readonly [HttpClient, HttpClient]> => {
      looking ??=
        bus === "off"
          ? Promise.resolve([one, other] as const)
          : Promise.all([start({}), start({})]).then(([a, b]) => [client(a), client(b)] as const);
      return looking;
    };

    for (const partition of [undefined, "p"]) {
      const query = partition === undefined ? {} : { partition };
      const which = partition === undefined ? "any partition" : "one partition";

      test(`a push wakes a pop of ${which} in the same worker`, async () => {
        const queue = newQueue();
        await one.configure(queue);
        const waiter = await park(one, queue, query);
        await one.push([item(queue, "a", "p")]);
        assert.deepEqual(values(await waiter.answer), ["a"]);
      });

      test(`a push wakes a pop of ${which} in another worker of the broker`, async () => {
        const queue = newQueue();
        const [here, watch] = workers.get(0)!;
        const [there] = workers.get(1)!;
        await here!.configure(queue);
        const waiter = await park(here!, queue, query, watch);
        await there!.push([item(queue, "a", "p")]);
        assert.deepEqual(values(await waiter.answer), ["a"]);
      });

      test(`a push wakes a pop of ${which} at another broker`, async () => {
        const queue = newQueue();
        await one.configure(queue);
        const waiter = await park(one, queue, query);
        await other.push([item(queue, "a", "p")]);
        assert.deepEqual(values(await waiter.answer), ["a"]);
      });

      test(`a pop waits for ${which} of a queue that does not exist yet, wherever it is made`, async () => {
        const queue = newQueue();
        const waiters = [await park(one, queue, { ...query, consumerGroup: "a" })];
        waiters.push(await park(other, queue, { ...query, consumerGroup: "b" }));
        await other.push([item(queue, 1, "p")]);
        for (const waiter of waiters) assert.deepEqual(values(await waiter.answer), [1]);
      });
    }

    test("a pop waits for a partition that does not exist yet while others of the queue have work", async () => {
      const queue = newQueue();
      await one.push([item(queue, "not for it", "busy")]);
      const here = await park(one, queue, { partition: "later", consumerGroup: "a" });
      const there = await park(other, queue, { partition: "later", consumerGroup: "b" });
      await one.push([item(queue, "for it", "later")]);
      assert.deepEqual(values(await here.answer), ["for it"]);
      assert.deepEqual(values(await there.answer), ["for it"]);
    });

    test("at its deadline a pop answers 204 and why", async () => {
      const queue = newQueue();
      await one.push([item(queue, 1, "held")]);
      const held = await one.pop(queue, { partition: "held" });
      assert.deepEqual(values(held), [1]);
      const reasons = await Promise.all(
        [{}, { partition: "held" }, { partition: "unknown" }].map(async (query) => {
          const answer = await one.pop(queue, { wait: true, timeout: 300, ...query });
          return [answer.status, answer.text, answer.emptyReason];
        }),
      );
      assert.deepEqual(reasons, [
        [204, "", "timeout"],
        [204, "", "lease_held"],
        [204, "", "partition_not_found"],
      ]);
      assert.equal((await popsOf(one)).live, 0);
    });

    test("a client that hangs up while parked leaves nothing", async () => {
      const queue = newQueue();
      await one.configure(queue);
      const wild = await park(one, queue);
      const named = await park(one, queue, { partition: "Default" });
      wild.hangUp();
      named.hangUp();
      await until("the broker forgot the pops", async () => (await popsOf(one)).live === 0);
      await one.push([item(queue, 1)]);
      const leases = await database.query(
        `select 1 from queen.partition_consumers c join queen.partitions p on p.id = c.partition_id
           join queen.queues q on q.id = p.queue_id where q.name = $1 and c.lease_token is not null`,
        [queue],
      );
      assert.deepEqual(leases, []);
      assert.deepEqual(values(await one.pop(queue)), [1]);
    });

    for (const parked of [false, true]) {
      const when = parked ? "a parked pop's" : "a pop's";
      test(`a client that hangs up while ${when} lease is being taken leaves no lease and no attempt`, async () => {
        const queue = newQueue();
        await one.configure(queue);
        assert.equal((await one.pop(queue)).status, 204); // from now on the broker knows the queue's lanes
        if (!parked) await one.push([item(queue, 1)]);
        const first = parked ? await park(one, queue) : undefined;
        // Nobody gets past this lock, so the call that takes the lease stays in flight.
        const blocker = await database.client();
        await blocker.query("begin; lock table queen.partition_consumers in access exclusive mode");
        try {
          if (parked) await one.push([item(queue, 1)]);
          const abort = new AbortController();
          if (!parked) one.pop(queue, {}, { signal: abort.signal }).catch(() => undefined);
          await until("a call waits for the lock", async () => {
            const rows = await database.query(
              `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
                  and query ~ 'queen.(take|open_cursors)'`,
            );
            return rows.length > 0;
          });
          if (first) first.hangUp();
          else abort.abort();
          await until("the broker saw the client go", async () => {
            return (await one.request("GET", "/metrics")).json.requests.active === 1; // this one
          });
        } finally {
          await blocker.query("rollback");
        }
        await until("the pop is over", async () => (await popsOf(one)).live === 0);
        const next = await one.pop(queue, { wait: true, timeout: LONG_MS });
        assert.deepEqual(values(next), [1]);
        const [cursor] = await database.query(
          `select c.failures, c.committed from queen.partition_consumers c
             join queen.partitions p on p.id = c.partition_id join queen.queues q on q.id = p.queue_id
            where q.name = $1 and p.name = 'Default'`,
          [queue],
        );
        assert.deepEqual(cursor, { failures: null, committed: 0 });
      });
    }

    test("a client that hangs up before its queues were found leaves no lease", async () => {
      const namespace = newQueue();
      const queue = `${namespace}.q`;
      await one.push([item(queue, 1)]);
      const blocker = await database.client();
      await blocker.query("begin; lock table queen.queues in access exclusive mode");
      try {
        const abort = new AbortController();
        one
          .request("GET", `/api/v1/pop?namespace=${namespace}`, undefined, { signal: abort.signal })
          .catch(() => undefined);
        await until("a call waits for the lock", async () => {
          const rows = await database.query(
            `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
          );
          return rows.length > 0;
        });
        abort.abort();
        await until("the broker saw the client go", async () => {
          return (await one.request("GET", "/metrics")).json.requests.active === 1; // this one
        });
      } finally {
        await blocker.query("rollback");
      }
      assert.deepEqual(values(await one.pop(queue, { wait: true, timeout: LONG_MS })), [1]);
      await until("no pop is left", async () => (await popsOf(one)).live === 0);
    });

    test("a client that hangs up during the answer gives the lease back, and nothing counts", async () => {
      const queue = newQueue();
      await one.push([item(queue, "x".repeat(20 * 1024 * 1024))]);
      await new Promise<void>((resolve, reject) => {
        const request = get(`${oneUrl}/api/v1/pop/queue/${queue}`, { agent: false }, (response) => {
          response.once("data", () => {
            response.destroy();
            resolve();
          });
        });
        request.once("error", reject);
      });
      const next = await one.pop(queue, { wait: true, timeout: LONG_MS });
      assert.equal(next.messages.length, 1);
      const [cursor] = await database.query(
        `select c.failures from queen.partition_consumers c join queen.partitions p on p.id = c.partition_id
           join queen.queues q on q.id = p.queue_id where q.name = $1`,
        [queue],
      );
      assert.equal(cursor?.failures, null);
    });

    test("one message wakes one of many waiters", async () => {
      const queue = newQueue();
      await one.configure(queue);
      const waiters: Waiter[] = [];
      for (let index = 0; index < 5; index++) waiters.push(await park(one, queue));
      const before = await popsOf(one);
      const answered: unknown[] = [];
      for (const waiter of waiters) void waiter.answer.then((answer) => answered.push(...values(answer)));

      await one.push([item(queue, "first", "p0")]);
      await until("a waiter was answered", () => answered.length > 0);
      const afterOne = await popsOf(one);
      assert.deepEqual(answered, ["first"]);
      assert.equal(afterOne.parked, before.parked - 1);
      assert.equal(
        afterOne.states.PARKED!.count - (before.states.PARKED?.count ?? 0),
        1,
        "only one was woken",
      );

      await one.push([1, 2, 3, 4].map((n) => item(queue, n, `p${n}`)));
      await Promise.all(waiters.map((waiter) => waiter.answer));
      assert.deepEqual(answered.slice(1).sort(), [1, 2, 3, 4]);
    });

    test("waiters are served in the order in which they came", async () => {
      const queue = newQueue();
      await one.configure(queue);
      const waiters = [await park(one, queue), await park(one, queue), await park(one, queue)];
      const order: number[] = [];
      waiters.forEach((waiter, index) => void waiter.answer.then(() => order.push(index)));
      for (let n = 0; n < 3; n++) {
        await one.push([item(queue, n, `p${n}`)]);
        await until("one more was answered", () => order.length === n + 1);
      }
      assert.deepEqual(order, [0, 1, 2]);
    });

    test("a waiter of several partitions gets all that have work, and no more", async () => {
      const queue = newQueue();
      await one.configure(queue);
      const waiter = await park(one, queue, { partitions: 10, batch: 100 });
      await one.push([item(queue, "a", "pa"), item(queue, "b", "pb"), item(queue, "b2", "pb")]);
      const got = await waiter.answer;
      const rest =
        got.messages.length === 3 ? [] : values(await one.pop(queue, { partitions: 10, batch: 100 }));
      assert.deepEqual([...values(got), ...rest].sort(), ["a", "b", "b2"]);
      assert.equal(new Set(got.messages.map((message) => message.leaseId)).size, 1);
      assert.equal(
        got.json.partitionsClaimed,
        new Set(got.messages.map((message) => message.partition)).size,
      );

      const two = newQueue();
      await one.push(["pa", "pb", "pc"].map((partition) => item(two, partition, partition)));
      const claimed = await one.pop(two, { wait: true, timeout: LONG_MS, partitions: 2, batch: 100 });
      assert.equal(claimed.json.partitionsClaimed, 2);
      const last = await one.pop(two, { wait: true, timeout: LONG_MS, partitions: 2, batch: 100 });
      assert.deepEqual([...values(claimed), ...values(last)].sort(), ["pa", "pb", "pc"]);
    });

    for (const where of ["the same broker", "another broker"]) {
      const waiting = async (): Promise<readonly [HttpClient, HttpClient]> => {
        const [a, b] = await lookingBrokers();
        return [a, where === "the same broker" ? a : b];
      };

      for (const partition of [undefined, "Default"]) {
        const query = partition === undefined ? {} : { partition };
        const what = `a pop of ${partition === undefined ? "any" : "the"} partition at ${where}`;

        test(`${what} is woken by a lease that ends with a rest`, async () => {
          const [holder, at] = await waiting();
          const queue = newQueue();
          await holder.push([item(queue, 1), item(queue, 2)]);
          const held = await holder.pop(queue);
          const waiter = await park(at, queue, query);
          await holder.ackMessages(held.messages);
          assert.deepEqual(values(await waiter.answer), [2]);
        });

        test(`${what} that does not wait finds what an ack elsewhere made free, in its time`, async () => {
          const [holder, at] = await waiting();
          const queue = newQueue();
          await holder.push([item(queue, 1), item(queue, 2)]);
          const held = await at.pop(queue);
          await holder.ackMessages(held.messages);
          const found = await until("the rest is found", async () => {
            const answer = await at.pop(queue, query);
            return answer.messages.length > 0 ? answer : undefined;
          });
          assert.deepEqual(values(found), [2]);
        });

        test(`${what} is woken by a lease that runs out`, async () => {
          const [holder, at] = await waiting();
          const queue = newQueue();
          await holder.configure(queue, { leaseTime: 1 });
          await holder.push([item(queue, 1)]);
          assert.deepEqual(values(await holder.pop(queue)), [1]);
          const waiter = await park(at, queue, query);
          assert.deepEqual(values(await waiter.answer), [1]);
        });

        test(`${what} is woken when a failed message may be tried again`, async () => {
          const [holder, at] = await waiting();
          const queue = newQueue();
          await holder.configure(queue, { retryDelay: 1000 });
          await holder.push([item(queue, 1)]);
          const held = await holder.pop(queue);
          await holder.ackMessages(held.messages, "failed", "not yet");
          const early = await at.pop(queue, { partition: "Default" });
          assert.deepEqual([early.status, early.emptyReason], [204, "retry_delay"]);
          const waiter = await park(at, queue, query);
          assert.deepEqual(values(await waiter.answer), [1]);
        });

        for (const [option, reason] of [
          ["delayedProcessing", "delayed"],
          ["windowBuffer", "window_buffer"],
        ] as const) {
          test(`${what} is woken when ${option} is over`, async () => {
            const [holder, at] = await waiting();
            const queue = newQueue();
            await holder.configure(queue, { [option]: 1 });
            const waiter = await park(at, queue, query);
            await holder.push([item(queue, 1)]);
            const early = await at.pop(queue, { partition: "Default" });
            assert.deepEqual([early.status, early.emptyReason], [204, reason]);
            assert.deepEqual(values(await waiter.answer), [1]);
          });
        }
      }
    }
  });
}

/**
 * Hints are kept for a minute, and a broker that did not look for half of that may have missed some. So long
 * a silence begins with this file's first test and ends with its last.
 */
const SILENCE_MS = 31_000;
// A broker goes on looking for a while after somebody worked there.
const ACTIVE_MS = 5_000;
let silence: Promise<{ here: HttpClient; there: HttpClient; sinceMs: number }>;
const silenceEnds: (() => Promise<unknown>)[] = [];

async function beginSilence(): Promise<{ here: HttpClient; there: HttpClient; sinceMs: number }> {
  const database = await createDatabase();
  silenceEnds.unshift(() => database.drop());
  const start = async (): Promise<HttpClient> => {
    const env = { NUM_WORKERS: "1", QUEEN_BUS: "off" };
    const broker = await startBrokerProcess({ databaseUrl: database.url, env });
    const client = new HttpClient(broker.url);
    silenceEnds.unshift(() => broker.stop());
    silenceEnds.unshift(async () => client.close());
    return client;
  };
  const [here, there] = [await start(), await start()];
  await there.push([item("known", 0), item("unknown", 0)]);
  await here.ackMessages((await here.pop("known")).messages);
  assert.equal((await here.pop("known")).status, 204);
  return { here, there, sinceMs: performance.now() + ACTIVE_MS };
}

before(() => {
  silence = beginSilence();
  silence.catch(() => undefined); // the test that awaits it tells
});

after(async () => {
  await silence.catch(() => undefined);
  for (const end of silenceEnds) await end();
});

describe("an idle broker", () => {
  let database: TestDatabase;
  let proxy: PostgresProxy;
  let broker: BrokerProcess;
  let client: HttpClient;
  const hangUp = new AbortController();

  before(async () => {
    database = await createDatabase();
    proxy = await startProxy(database.url);
    broker = await startBrokerProcess({
      databaseUrl: proxy.urlOf(database.url),
      env: { NUM_WORKERS: "1" },
    });
    client = new HttpClient(broker.url);
  });

  after(async () => {
    hangUp.abort();
    client.close();
    await broker.stop();
    await proxy.close();
    await database.drop();
  });

  const parkThousand = async (prefix: string, parked: number): Promise<void> => {
    for (let n = 0; n < 1000; n++) {
      const query = { wait: true, timeout: 120_000, ...(n % 2 === 0 ? {} : { partition: "p" }) };
      client.pop(`${prefix}${n % 100}`, query, { signal: hangUp.signal }).catch(() => undefined);
    }
    await until("all pops are parked", async () => (await popsOf(client)).parked === parked);
  };

  for (const [exists, prefix, parked] of [
    [true, "queue", 1000],
    [false, "missing", 2000],
  ] as const) {
    const what = exists ? "100 queues" : "100 queues that do not exist";
    test(`with 1,000 parked pops on ${what} sends fewer than 5 statements a second`, async () => {
      if (exists) for (let n = 0; n < 100; n++) await client.configure(`${prefix}${n}`);
      await parkThousand(prefix, parked);
      if (exists) {
        // An answer without waiting comes after the group's first look at its queue.
        for (let n = 0; n < 100; n++) assert.equal((await client.pop(`${prefix}${n}`)).status, 204);
      }
      const rounds = 5;
      const looks = (): number => proxy.counts.get("queen_read_hints") ?? 0;
      // From one look to the fifth after it: the rhythm of the broker, not of this machine.
      const first = looks() + 1;
      await until("the broker looks", () => looks() > first);
      const before = proxy.total();
      const seen = looks();
      const startedMs = performance.now();
      await until("the broker has looked five times more", () => looks() >= seen + rounds);
      const seconds = (performance.now() - startedMs) / 1000;
      const sent = proxy.total() - before;
      assert.ok(sent / seconds < 5, `${sent} statements in ${seconds.toFixed(1)} s`);
    });
  }

  test("does not look for messages that were delivered already when it hears of them again", async () => {
    const count = (name: string): number => proxy.counts.get(name) ?? 0;
    const lanes = Array.from({ length: 20 }, (_, lane) => item("busy", lane, `p${lane}`));
    await client.configure("busy");
    assert.equal((await client.pop("busy")).status, 204); // the group's first look at its queue is over
    await client.push(lanes);
    for (const _ of lanes) assert.equal((await client.pop("busy", { autoAck: true })).messages.length, 1);
    const waiting = client.pop("busy", { wait: true, timeout: 120_000, autoAck: true });
    const takes = count("queen_take");
    const looks = count("queen_read_hints");
    // Two looks that began after the last delivery: both have been learnt from when the third begins.
    await until("the broker has looked", () => count("queen_read_hints") >= looks + 3);
    assert.equal(count("queen_take"), takes);
    await client.push([item("busy", 20, "p7")]);
    assert.deepEqual(values(await waiting), [20]);
  });
});

describe("a wildcard pop over 100,000 partitions", NOT_POOLED, () => {
  const PARTITIONS = 100_000;
  const POPS = 100;

  test("finds the one that has work, on a warm broker without a scan", async () => {
    const database = await createDatabase();
    try {
      await database.query("insert into queen.queues (name) values ('wide')");
      await database.query(
        `insert into queen.partitions (queue_id, name)
         select q.id, 'p' || n from queen.queues q, generate_series(1, $1::int4) as n where q.name = 'wide'`,
        [PARTITIONS],
      );
      await database.query("vacuum analyze queen.partitions");

      /** The rows of queen.partitions that a broker reads in its life; its sessions report them when they end. */
      // How far groups are behind is counted by reading partitions, too: not before tomorrow.
      await database.query(
        `update queen.sweeps set started_at = now() + interval '1 day', finished_at = now() + interval '1 day'
          where name = 'lag'`,
      );
      const rowsRead = async (work: (client: HttpClient) => Promise<void>): Promise<number> => {
        const before = await settledRows(database);
        const broker = await startBrokerProcess({
          databaseUrl: database.url,
          env: { NUM_WORKERS: "1", ...NEVER_LOOKS, PARTITION_CLEANUP_DAYS: "0" },
        });
        const client = new HttpClient(broker.url);
        try {
          await client.push([item("wide", "warm up", "p1")]);
          const first = await client.pop("wide");
          assert.deepEqual(values(first), ["warm up"]);
          await client.ackMessages(first.messages);
          await work(client);
        } finally {
          client.close();
          assert.equal(await broker.stop(), 0);
        }
        return (await settledRows(database)) - before;
      };

      const warmUp = await rowsRead(async (client) => {
        // Nothing anywhere: the group's first look at the whole queue goes to its end.
        assert.equal((await client.pop("wide")).status, 204);
      });
      assert.ok(warmUp >= PARTITIONS, `the first look reads every partition, not ${warmUp}`);

      const all = await rowsRead(async (client) => {
        assert.equal((await client.pop("wide")).status, 204);
        for (let n = 0; n < POPS; n++) {
          await client.push([item("wide", n, `p${((n * 7919) % PARTITIONS) + 1}`)]);
          const popped = await client.pop("wide");
          assert.deepEqual(values(popped), [n]);
          await client.ackMessages(popped.messages);
        }
        assert.equal((await client.pop("wide")).status, 204);
      });
      const read = all - warmUp;
      assert.ok(read < POPS * 100, `${POPS} pops read ${read} rows of queen.partitions`);
    } finally {
      await database.drop();
    }
  });
});

test("what a pop learns of a lane counts from then on, whatever was believed before", {
  timeout: 30_000,
}, async () => {
  const database = await createDatabase();
  const env = { NUM_WORKERS: "1", QUEEN_BUS: "off", ...NEVER_LOOKS };
  const brokers = await Promise.all([0, 1].map(() => startBrokerProcess({ databaseUrl: database.url, env })));
  const [here, there] = brokers.map((broker) => new HttpClient(broker.url)) as [HttpClient, HttpClient];
  try {
    await there.push([item("q", 1)]);
    const held = await there.pop("q");
    assert.equal((await here.pop("q", { partition: "Default" })).emptyReason, "lease_held");
    await there.ackMessages(held.messages);
    // It is free and empty, not leased for minutes.
    const empty = await Promise.all([1, 2, 3].map(() => here.pop("q", { partition: "Default" })));
    assert.deepEqual(
      empty.map((answer) => answer.emptyReason),
      Array(3).fill("no_available_partition"),
    );
    await here.push([item("q", 2)]);
    assert.deepEqual(values(await here.pop("q")), [2]);
  } finally {
    here.close();
    there.close();
    await Promise.all(brokers.map((broker) => broker.stop()));
    await database.drop();
  }
});

/** The rows of queen.partitions read so far, once all sessions have told the server of theirs. */
async function settledRows(database: TestDatabase): Promise<number> {
  let last = -1;
  let same = 0;
  return until("the server's statistics are settled", async () => {
    const [row] = await database.query(
      `select pg_stat_clear_snapshot(), coalesce(idx_tup_fetch, 0) + coalesce(seq_tup_read, 0) as rows
         from pg_stat_user_tables where schemaname = 'queen' and relname = 'partitions'`,
    );
    const rows = row!.rows as number;
    same = rows === last ? same + 1 : 0;
    last = rows;
    return same >= 10 ? rows : undefined;
  });
}

test("a broker that was silent for long answers its first pops with what happened meanwhile", async () => {
  const { here, there, sinceMs } = await silence;
  await sleep(Math.max(0, sinceMs + SILENCE_MS - performance.now()));
  await there.push([item("known", 1), item("known", 2, "new")]);
  const known = await here.pop("known", { partitions: 2, batch: 10 });
  const more = known.messages.length === 2 ? [] : values(await here.pop("known"));
  assert.deepEqual([...values(known), ...more].sort(), [1, 2]);
  assert.deepEqual(values(await here.pop("unknown")), [0]);
});
