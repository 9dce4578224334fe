/**
 * The spool: pushes while PostgreSQL is away are on the broker's disk before they are answered, and reach the database
 * afterwards: all of them, once, in order, whatever else breaks.
 */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type BrokerProcess, freePort, startBrokerProcess } from "../support/broker.ts";
import { HttpClient, type PushResult } from "../support/http.ts";
import { until } from "../support/moments.ts";
import { type FragileServer, startFragileServer } from "../support/outage.ts";

const folder = mkdtempSync(join(tmpdir(), "queen-spool-"));
after(() => rmSync(folder, { recursive: true, force: true }));
let folders = 0;
const newFolder = (): string => join(folder, String(++folders));

interface Rig {
  readonly server: FragileServer;
  broker: BrokerProcess;
  readonly client: HttpClient;
  readonly spool: string;
  start(env?: Record<string, string>): Promise<void>;
}

async function withRig(env: Record<string, string>, work: (rig: Rig) => Promise<void>): Promise<void> {
  const server = await startFragileServer();
  const spool = newFolder();
  const own = {
    NUM_WORKERS: "1",
    PORT: String(await freePort()),
    QUEEN_SPOOL_DIR: spool,
    QUEEN_SPOOL_AFTER_MS: "300",
    ...env,
  };
  const start = (more: Record<string, string> = {}): Promise<BrokerProcess> =>
    startBrokerProcess({ databaseUrl: server.url, env: { ...own, ...more } });
  const broker = await start();
  const rig: Rig = {
    server,
    broker,
    client: new HttpClient(broker.url),
    spool,
    async start(more) {
      rig.broker = await start(more);
    },
  };
  try {
    await work(rig);
  } catch (error) {
    console.error(rig.broker.output().slice(-8_000));
    throw error;
  } finally {
    rig.client.close();
    await rig.broker.kill("SIGKILL");
    await server.stop();
  }
}

const item = (n: number | string, queue = "q", partition = "p") => ({
  queue,
  partition,
  transactionId: `t${n}`,
  payload: { n },
});

async function push(client: HttpClient, ...items: ReturnType<typeof item>[]): Promise<PushResult[]> {
  return client.push(items);
}

const stored = async (server: FragileServer, queue = "q"): Promise<string[]> =>
  (
    await server.query(
      `select m.transaction_id from queen.messages m join queen.partitions p on p.id = m.partition_id
         join queen.queues q on q.id = p.queue_id where q.name = $1 order by p.id, m.message_offset`,
      [queue],
    )
  ).map((row) => row.transaction_id as string);

const isDrained = (client: HttpClient): Promise<unknown> =>
  until("the spool is drained", async () => {
    const { json } = await client.request("GET", "/api/v1/system/spool");
    return json.pending === 0;
  });

const segmentFiles = (spool: string): string[] =>
  existsSync(spool) ? readdirSync(spool).filter((name) => name.endsWith(".log")) : [];

test("a push while PostgreSQL is dead is buffered, and stored in order when it is back", () =>
  withRig({}, async ({ server, client, spool }) => {
    assert.equal((await push(client, item(0)))[0]!.status, "queued");
    await server.kill();
    const answers = [await push(client, item(1), item(2)), await push(client, item(3, "new"))];
    assert.deepEqual(answers[0]![1], {
      index: 1,
      status: "buffered",
      queue: "q",
      partition: "p",
      transactionId: "t2",
      transaction_id: "t2",
      queueName: "q",
    });
    assert.equal(answers[1]![0]!.status, "buffered");
    assert.equal(segmentFiles(spool).length, 1);
    await server.restart();
    await isDrained(client);
    await until("pushes are stored directly again", async () => {
      return (await push(client, item(4)))[0]!.status !== "buffered";
    });
    assert.deepEqual(await stored(server), ["t0", "t1", "t2", "t4"]);
    assert.deepEqual(await stored(server, "new"), ["t3"]);
    assert.deepEqual(segmentFiles(spool), []);
  }));
