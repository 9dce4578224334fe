/** What else happens to a database: old snapshots, upgrades, no connection left. */
import { setTimeout as sleep } from "node:timers/promises";
import type { HttpAnswer } from "@queen/test/support/http";
import pg from "pg";
import type { FaultTest } from "../fault-test.ts";
import { query } from "../rig/postgres.ts";

const MEGABYTE = 1024 * 1024;

const oldSnapshot: FaultTest = {
  id: "F35",
  title: "a transaction stays open with an old snapshot",
  async run(run) {
    await run.startBrokers(1);
    const client = new pg.Client({ connectionString: run.databaseUrl });
    client.on("error", () => undefined);
    await client.connect();
    run.onEnd(() => client.end());
    const pushMs = (fromMs: number, toMs: number): number => {
      const took = run.events
        .flatMap((event) =>
          event.type === "request" && event.operation === "push" && event.atMs >= fromMs && event.atMs < toMs
            ? [event.tookMs]
            : [],
        )
        .sort((a, b) => a - b);
      return Math.round(took[Math.floor(took.length * 0.99)] ?? 0);
    };
    await run.underLoad({ pushesPerSecond: 10 }, async () => {
      await sleep(run.seconds * 200);
      run.fault("a snapshot is held");
      await client.query("begin isolation level repeatable read");
      await client.query("select count(*) from queen.partitions");
      while (run.hasTime(run.seconds * 200)) await sleep(100);
      const [sizes] = await run.query(
        "select (pg_total_relation_size('queen.partitions') + pg_total_relation_size('queen.partition_consumers'))::float8 as bytes",
      );
      const megabytes = Number(sizes!.bytes) / MEGABYTE;
      run.note(`the hot tables have ${megabytes.toFixed(1)} MB`);
      run.expect(megabytes < 200, `the hot tables have ${megabytes.toFixed(1)} MB`);
      await client.query("commit");
      await run.progressBy(50);
    });
    const marks = run.events.flatMap((event) => (event.type === "mark" ? [event.atMs] : []));
    run.note(
      `99 % of pushes took ${pushMs(0, marks[0]!)} ms before, ${pushMs(marks[0]!, marks[1]!)} ms with it`,
    );
  },
};

const upgrades: FaultTest = {
  id: "F37",
  title: "three brokers set up the schema at once; procedures are replaced under load",
  async run(run) {
    await run.startPostgres();
    await run.startBrokers(1); // it makes the first slot; all three start on an empty schema below
    await run.brokers[0]!.kill();
    await run.query("drop schema queen cascade");
    run.fault("three brokers meet an empty database");
    await Promise.all([run.brokers[0]!.start(), run.startBrokers(1), run.startBrokers(1)]);
    for (const { output } of run.brokers)
      run.expect(!/"level":"error"/.test(output), "a broker had an error at its start");
    await run.underLoad({}, async () => {
      for (const broker of run.brokers) {
        run.fault("a broker with other procedures starts beside the others");
        // Every procedure counts as changed, so that the broker that starts replaces all of them.
        await run.query("update queen.applied set sha256 = 'another version' where name like 'procedures/%'");
        run.expect((await broker.stop()) === 0, "a broker did not end in order");
        await broker.start();
        await run.progressBy(50);
      }
    });
  },
};

const ROUNDS_WITHOUT_BROKER = 5;

const noConnections: FaultTest = {
  id: "F38",
  title: "PostgreSQL has no connection left",
  async run(run) {
    await run.startPostgres({ settings: { max_connections: "25", superuser_reserved_connections: "3" } });
    await query(run.databaseUrl, "create role plain login");
    await query(run.databaseUrl, "alter database queen owner to plain");
    const plainUrl = run.databaseUrl.replace("postgres@", "plain@");
    await run.startBrokers(1, { databaseUrl: plainUrl });
    const client = run.client();
    await client.push([{ queue: "q", payload: 1 }]);
    run.fault("all connections are taken");
    const taken: pg.Client[] = [];
    const releaseAll = async (): Promise<void> => {
      await Promise.all(taken.splice(0).map((each) => each.end().catch(() => undefined)));
    };
    run.onEnd(releaseAll);
    // The broker tries to connect, too: whoever comes first has the connection.
    const brokers = "application_name like 'queen %'";
    for (let none = 0; none < ROUNDS_WITHOUT_BROKER; ) {
      await run.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${brokers}`);
      for (;;) {
        const each = new pg.Client({ connectionString: plainUrl });
        each.on("error", () => undefined);
        try {
          await each.connect();
          taken.push(each);
        } catch {
          break;
        }
      }
      await sleep(200);
      const [row] = await run.query(
        `select count(*)::int4 as connected from pg_stat_activity where ${brokers}`,
      );
      none = row!.connected === 0 ? none + 1 : 0;
    }
    await sleep(3_000);
    const ask = async (method: string, path: string, body?: unknown): Promise<[HttpAnswer, number]> => {
      const startedMs = performance.now();
      return [await client.request(method, path, body), performance.now() - startedMs];
    };
    const item = { queue: "q", payload: 2 };
    for (const [method, path, body] of [
      ["GET", "/api/v1/pop/queue/q", undefined],
      ["GET", "/api/v1/pop/queue/q?wait=true&timeout=3000", undefined],
      ["POST", "/api/v1/transaction", { operations: [{ type: "push", items: [item] }] }],
    ] as const) {
      const [answer, tookMs] = await ask(method, path, body);
      run.expect(answer.status === 503, `${method} ${path} was answered ${answer.status} ${answer.text}`);
      run.expect(answer.headers["retry-after"] !== undefined, `${method} ${path} had no Retry-After`);
      run.expect(tookMs < 10_000, `${method} ${path} took ${Math.round(tookMs)} ms`);
    }
    await releaseAll();
    const [answer] = await ask("GET", "/api/v1/pop/queue/q?wait=true&timeout=10000");
    run.note(`after the connections were given back the first pop was answered ${answer.status}`);
    for (let attempt = 0; attempt < 100; attempt++) {
      const [pushed] = await ask("POST", "/api/v1/push", { items: [item] });
      if (pushed.status === 201) {
        run.count({ load: "single requests", pushed: 2, delivered: 1 });
        return;
      }
      await sleep(100);
    }
    run.problem("pushes were not possible again");
  },
};

export const DATABASE_TESTS: readonly FaultTest[] = [oldSnapshot, upgrades, noConnections];
