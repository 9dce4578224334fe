/** The spool's files: torn, with flipped bits, with what PostgreSQL refuses; and maintenance, which uses it on purpose. */
import { cpSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PushResult } from "@queen/test/support/http";
import { until } from "@queen/test/support/moments";
import type { FaultRun } from "../fault-run.ts";
import type { FaultTest } from "../fault-test.ts";
import { expectBuffered } from "./postgres.ts";

export const QUEUE = "spooled";

const spoolFolder = (run: FaultRun): string => join(run.brokers[0]!.folder, "spool");

/** The files of the spool that hold records, the largest first. */
function spoolFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile() && statSync(path).size > 0)
    .sort((a, b) => statSync(b).size - statSync(a).size);
}

/** Pushes messages one by one while PostgreSQL is away; returns the values that were answered buffered. */
export async function spool(run: FaultRun, count: number, from = 0): Promise<string[]> {
  const client = run.client();
  const buffered: string[] = [];
  for (let n = from; n < from + count; n++) {
    const value = `v${n}`;
    const items = [{ queue: QUEUE, transactionId: value, payload: value }];
    const { status, json } = await client.request("POST", "/api/v1/push", { items });
    if (status === 201 && (json as PushResult[])[0]!.status === "buffered") buffered.push(value);
  }
  return buffered;
}

/** Everything in the queue, in order, once nothing is left in the spool. */
export async function drained(run: FaultRun): Promise<string[]> {
  await until("the spool is empty", async () => (await run.spooled()) === 0, 60_000);
  const rows = await run.query(
    `select m.payload #>> '{}' as value from queen.messages m join queen.partitions p on p.id = m.partition_id
       join queen.queues q on q.id = p.queue_id where q.name = $1 order by m.partition_id, m.message_offset`,
    [QUEUE],
  );
  return rows.map((row) => row.value as string);
}

/** A broker with a queue, and PostgreSQL gone. */
export async function startAndStopPostgres(run: FaultRun, env: Record<string, string> = {}): Promise<void> {
  await run.startBrokers(1, { env });
  await run.client().push([{ queue: QUEUE, transactionId: "first", payload: "first" }]);
  run.fault("PostgreSQL is stopped");
  await run.postgres.stop("fast");
  await until("pushes are buffered", async () => (await spool(run, 1, -1)).length > 0);
}

/** Kills a broker with a filled spool, changes the files, and starts it again with PostgreSQL back. */
async function restartWith(
  run: FaultRun,
  saved: string,
  change: (files: readonly string[]) => void,
): Promise<string[]> {
  const folder = spoolFolder(run);
  await run.brokers[0]!.kill();
  await run.query("delete from queen.queues where name = $1", [QUEUE]);
  rmSync(folder, { recursive: true, force: true });
  cpSync(saved, folder, { recursive: true });
  change(spoolFiles(folder));
  await run.brokers[0]!.start();
  return drained(run);
}

async function fillAndSave(run: FaultRun, count: number): Promise<{ buffered: string[]; saved: string }> {
  await startAndStopPostgres(run);
  const buffered = await spool(run, count);
  run.expect(buffered.length === count, `${count - buffered.length} of ${count} pushes were not buffered`);
  await run.brokers[0]!.kill();
  const saved = join(run.folder, "saved");
  cpSync(spoolFolder(run), saved, { recursive: true });
  await run.postgres.start();
  return { buffered, saved };
}

// What a record begins with (decision 18); no text has these bytes.
const RECORD = Buffer.from([0xff, 0x51, 0x53, 0xfe]);

const tornTail: FaultTest = {
  id: "F22",
  title: "the end of the spool is cut off at every byte of its last record",
  async run(run) {
    const { buffered, saved } = await fillAndSave(run, 5);
    const bytes = readFileSync(spoolFiles(saved)[0]!);
    const recordBytes = bytes.length - bytes.lastIndexOf(RECORD);
    // As many cuts as there is time for, the first and the last byte among them; each is a start of the broker.
    const cuts = Math.min(recordBytes, Math.max(4, run.seconds));
    for (let index = 0; index < cuts; index++) {
      const cut = 1 + Math.round((index * (recordBytes - 1)) / (cuts - 1));
      run.fault(`${cut} of ${recordBytes} bytes are cut off`);
      const stored = await restartWith(run, saved, ([file]) => truncateSync(file!, bytes.length - cut));
      const expected = buffered.slice(0, -1).join();
      run.expect(
        stored.filter((value) => value !== "v-1").join() === expected,
        `with ${cut} bytes cut off, these are left: ${stored.join(", ")}`,
      );
    }
    run.count({ load: "single pushes", pushed: buffered.length });
  },
};

const flippedBits: FaultTest = {
  id: "F23",
  title: "bits of the spool are flipped",
  async run(run) {
    const { buffered, saved } = await fillAndSave(run, 20);
    const rounds = Math.max(5, run.seconds);
    for (let round = 0; round < rounds; round++) {
      const draw = run.random();
      run.fault("a bit is flipped");
      const stored = await restartWith(run, saved, ([file]) => {
        const bytes = readFileSync(file!);
        const place = Math.floor(draw * bytes.length);
        bytes[place] = bytes[place]! ^ (1 << Math.floor(run.random() * 8));
        writeFileSync(file!, bytes);
      });
      const known = new Set([...buffered, "v-1"]);
      const wrong = stored.filter((value) => !known.has(value));
      const missing = buffered.filter((value) => !stored.includes(value));
      run.expect(wrong.length === 0, `wrong payloads were delivered: ${wrong.join(", ")}`);
      run.expect(
        missing.length <= 1,
        `one flipped bit cost ${missing.length} messages: ${missing.join(", ")}`,
      );
      const { json } = await run.client().request("GET", "/api/v1/system/spool");
      run.expect(json.damaged > 0, "the damage is not told of");
      run.expect(readdirSync(join(spoolFolder(run), "quarantine")).length > 0, "nothing is in quarantine/");
    }
    run.expect((await run.brokers[0]!.stop()) === 0, "the broker did not end in order");
    run.count({ load: "single pushes", pushed: buffered.length });
  },
};

const killedSoon: FaultTest = {
  id: "F24",
  title: "a broker is killed with one, two and three small messages in its spool",
  async run(run) {
    await startAndStopPostgres(run);
    const all: string[] = [];
    for (const count of [1, 2, 3]) {
      all.push(...(await spool(run, count, count * 10)));
      run.fault("the broker is killed");
      await run.brokers[0]!.kill();
      await run.postgres.start();
      await run.brokers[0]!.start();
      const stored = await drained(run);
      for (const value of all) run.expect(stored.includes(value), `${value} was buffered and is lost`);
      await run.postgres.stop("fast");
      await until("pushes are buffered", async () => (await spool(run, 1, -1)).length > 0);
    }
    run.expect(all.length === 6, `${all.length} of 6 pushes were buffered`);
    run.count({ load: "single pushes", pushed: all.length, delivered: all.length });
  },
};

const poison: FaultTest = {
  id: "F25",
  title: "a record that PostgreSQL refuses is first in the spool",
  async run(run) {
    await startAndStopPostgres(run);
    const items = [{ queue: "refused", transactionId: "bad", payload: "bad" }];
    await run.client().request("POST", "/api/v1/push", { items });
    const buffered = await spool(run, 20);
    run.expect(buffered.length === 20, `${buffered.length} of 20 pushes were buffered`);
    await run.brokers[0]!.kill();
    await run.postgres.start();
    run.fault("the database refuses the first record for what it contains");
    await run.query("alter table queen.queues add constraint refused check (name <> 'refused')");
    await run.brokers[0]!.start();
    const stored = await until("the rest is stored", async () => {
      const rows = await run.query("select m.payload #>> '{}' as value from queen.messages m");
      const values = rows.map((row) => row.value);
      return buffered.every((value) => values.includes(value)) ? values : undefined;
    });
    run.expect(!stored.includes("bad"), "the refused record was stored");
    const { json } = await run.client().request("GET", "/api/v1/system/spool");
    run.expect(json.rejected.length === 1, `${json.rejected.length} refused records are listed`);
    run.count({ load: "single pushes", pushed: buffered.length, delivered: stored.length });
  },
};

const maintenance: FaultTest = {
  id: "F28",
  title: "push maintenance is switched on and off, three brokers",
  async run(run) {
    await run.startBrokers(3);
    const turn = async (enabled: boolean): Promise<void> => {
      const answer = await run.client().request("POST", "/api/v1/system/maintenance", { enabled });
      run.expect(answer.status === 200, `switching maintenance was answered ${answer.status}`);
    };
    await run.underLoad({}, async () => {
      while (run.hasTime(4_000)) {
        run.fault("maintenance");
        await turn(true);
        await run.pause(1_000, 2_500);
        await turn(false);
        await run.progressBy(50);
      }
    });
    expectBuffered(run);
  },
};

export const SPOOL_TESTS: readonly FaultTest[] = [tornTail, flippedBits, killedSoon, poison, maintenance];
