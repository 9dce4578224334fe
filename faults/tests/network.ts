/** Networks that reset, lose, hold back and delay: between broker and PostgreSQL, and between client and broker. */
import { setTimeout as sleep } from "node:timers/promises";
import { HttpClient } from "@queen/test/support/http";
import { until } from "@queen/test/support/moments";
import { startTcpProxy } from "@queen/test/support/tcp-proxy";
import type { FaultRun } from "../fault-run.ts";
import type { FaultTest } from "../fault-test.ts";
import { HANG_MS_MAX, noteLongest } from "./postgres.ts";

async function startBehindProxy(run: FaultRun) {
  await run.startPostgres();
  const proxy = await run.startProxy();
  await run.startBrokers(1, { databaseUrl: proxy.urlOf(run.databaseUrl) });
  return proxy;
}

const resets: FaultTest = {
  id: "F11",
  title: "every fiftieth call to PostgreSQL meets a reset",
  async run(run) {
    const proxy = await startBehindProxy(run);
    await run.underLoad({}, async () => {
      proxy.resetEvery(50);
      for (let seen = 0; run.hasTime(); await sleep(50)) {
        for (; seen < proxy.resets; seen++) run.fault("a connection was reset in a call");
      }
      proxy.resetEvery(0);
    });
    run.expect(proxy.resets > 0, "nothing was reset");
  },
};

// Those that every load makes all the time, and those that it makes now and then: they are not waited for.
const COMMON = ["queen_append", "queen_take", "queen_settle", "queen_transact_many"];
const SELDOM = ["queen_settle_lease", "queen_transact"];
const SELDOM_LOST = 10;

const lostAnswers: FaultTest = {
  id: "F12",
  title: "PostgreSQL's answers are lost after the commit",
  async run(run) {
    const proxy = await startBehindProxy(run);
    await run.underLoad({}, async () => {
      for (const statement of SELDOM) proxy.loseAnswers(statement, SELDOM_LOST);
      for (let turn = 0; run.hasTime(500); turn++) {
        const { lost } = proxy;
        const statement = COMMON[turn % COMMON.length]!;
        const before = proxy.lostOf(statement);
        proxy.loseAnswers(statement, 1 + Math.floor(run.random() * 3));
        await until("an answer was lost", () => proxy.lostOf(statement) > before || !run.hasTime());
        for (let count = lost; count < proxy.lost; count++) run.fault("an answer was lost");
        await run.pause(20, 100);
      }
      for (const statement of [...COMMON, ...SELDOM]) proxy.loseAnswers(statement, 0);
    });
    for (const statement of COMMON)
      run.expect(proxy.lostOf(statement) > 0, `no answer of ${statement} was lost`);
  },
};

const blackhole: FaultTest = {
  id: "F13",
  title: "the way to PostgreSQL swallows everything for a while",
  async run(run) {
    const proxy = await startBehindProxy(run);
    const holdMs = Math.min(30_000, Math.max(8_000, run.seconds * 400));
    await run.underLoad(
      {},
      async () => {
        for (const kind of ["hold", "drop"] as const) {
          run.fault(`${kind} for ${holdMs} ms`);
          proxy.set({ kind });
          await sleep(holdMs);
          proxy.set({ kind: "pass" });
          await run.progressBy(50);
        }
      },
      { requestMsMax: HANG_MS_MAX },
    );
    noteLongest(run);
  },
};

const oneWay: FaultTest = {
  id: "F13b",
  title: "one direction to PostgreSQL swallows everything, connections are closed by half",
  async run(run) {
    const proxy = await startBehindProxy(run);
    await run.underLoad({}, async () => {
      for (const direction of ["to server", "to client"] as const) {
        run.fault(`nothing goes ${direction}`);
        proxy.set({ kind: "drop" }, direction);
        await sleep(5_000);
        proxy.set({ kind: "pass" }, direction);
        await run.progressBy(50);
      }
      run.fault("all connections are closed by half");
      proxy.cut("half-close");
      await run.progressBy(50);
    });
  },
};

const slow: FaultTest = {
  id: "F14",
  title: "PostgreSQL is 200 ms away",
  async run(run) {
    const proxy = await startBehindProxy(run);
    await run.underLoad({ leaseSeconds: 20 }, async () => {
      run.fault("200 ms each way");
      proxy.set({ kind: "delay", ms: 100, jitterMs: 10 });
      const { stored } = run.progress;
      while (run.hasTime()) await sleep(100);
      const rate = (run.progress.stored - stored) / run.seconds;
      run.note(`${Math.round(rate)} messages a second were pushed`);
      run.expect(
        rate > 40,
        `only ${Math.round(rate)} messages a second were pushed, of 200 without the delay`,
      );
      proxy.set({ kind: "pass" });
    });
  },
};

// Above what the buffers of both sockets and of the proxy hold, so that the broker is still writing.
const ANSWER_BYTES = 12 * 1024 * 1024;

const cutAnswers: FaultTest = {
  id: "F15",
  title: "clients are reset in the middle of their pop's answer",
  async run(run) {
    await run.startBrokers(1);
    const url = new URL(run.brokers[0]!.url);
    let isCutting = false;
    const proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) }, () => ({
      seen: (direction, _bytes, connection) => {
        if (direction === "to server" || !isCutting) return false;
        connection.reset();
        return true;
      },
    }));
    run.onEnd(() => proxy.close());
    const direct = run.client();
    await direct.configure("q", { leaseTime: 300 });
    const payload = "x".repeat(ANSWER_BYTES / 12);
    await direct.push(
      Array.from({ length: 12 }, (_, n) => ({ queue: "q", transactionId: `t${n}`, payload })),
    );
    const rounds = Math.max(5, run.seconds);
    for (let round = 0; round < rounds; round++) {
      const client = new HttpClient(proxy.urlOf(run.brokers[0]!.url));
      isCutting = true;
      run.fault("the answer is cut");
      const isAnswered = await client.pop("q", { batch: 12 }).then(
        () => true,
        () => false,
      );
      client.close();
      isCutting = false;
      run.expect(!isAnswered, "a pop that was cut had an answer");
      const answer = await direct.pop("q", { batch: 12, wait: true, timeout: 15_000 });
      run.expect(answer.messages.length === 12, `the next pop got ${answer.messages.length} of 12 messages`);
      if (answer.messages.length === 0) break;
      await direct.ackMessages(answer.messages, "retry");
    }
    const [row] = await run.query("select failures from queen.partition_consumers");
    run.expect(row?.failures === null, `attempts were counted: ${JSON.stringify(row?.failures)}`);
    run.count({ load: "pops of 12 MB", pushed: 12, delivered: rounds * 12 });
  },
};

export const NETWORK_TESTS: readonly FaultTest[] = [resets, lostAnswers, blackhole, oneWay, slow, cutAnswers];
