/** Brokers that end, stop or hang. */
import { setTimeout as sleep } from "node:timers/promises";
import { keyOf } from "@queen/test/checker/history";
import { until } from "@queen/test/support/moments";
import type { FaultRun } from "../fault-run.ts";
import type { FaultTest } from "../fault-test.ts";

const KILL_EVERY_MS = 2_500;
const RETRIES_MAX = 3;

/** Without faults nothing is redelivered and nothing refused. */
export const calm: FaultTest = {
  id: "F00",
  title: "no fault",
  async run(run) {
    await run.startBrokers(1);
    await run.underLoad({ leaseSeconds: 20, abandonedShare: 0, lateShare: 0 }, async () => undefined);
    const failed = run.events.filter(
      (event) => event.type === "request" && (event.status >= 500 || event.status < 1),
    );
    run.expect(failed.length === 0, `${failed.length} requests had no answer, or 5xx`);
    noteLatencies(run);
  },
};

/** Goals on a quiet machine are 100 ms for a push, and 250 ms from a push to a pop that waits. */
function noteLatencies(run: FaultRun): void {
  const pushMs = run.events.flatMap((event) =>
    event.type === "request" && event.operation === "push" ? [event.tookMs] : [],
  );
  const sentMs = new Map<string, number>();
  const arrivalMs: number[] = [];
  for (const event of run.events) {
    if (event.type === "push-sent") for (const item of event.items) sentMs.set(keyOf(item), event.atMs);
    if (event.type === "popped")
      for (const message of event.messages) {
        const key = keyOf(message);
        const atMs = sentMs.get(key);
        if (atMs !== undefined) arrivalMs.push(event.atMs - atMs);
        sentMs.delete(key); // the first delivery counts
      }
  }
  const most = (values: number[]): number =>
    Math.round(values.sort((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? 0);
  run.note(
    `99 % of pushes took ${most(pushMs)} ms, and of messages ${most(arrivalMs)} ms to their first delivery`,
  );
}

/** Kills one broker after the other, and starts each again. */
async function killBrokers(run: FaultRun): Promise<void> {
  const readyMs: number[] = [];
  // At least once, however little time there is.
  for (let victim = 0, kills = 0; kills === 0 || run.hasTime(KILL_EVERY_MS); kills++) {
    await run.pause(KILL_EVERY_MS * 0.5, KILL_EVERY_MS);
    run.fault(`broker ${victim} is killed`);
    await run.brokers[victim]!.kill();
    await run.pause(200, 1_000);
    const startedMs = performance.now();
    await run.brokers[victim]!.start();
    readyMs.push(performance.now() - startedMs);
    await run.progressBy(20);
    victim = (victim + 1) % run.brokers.length;
  }
  run.note(`a broker was ready at most ${Math.round(Math.max(...readyMs))} ms after its start`);
}

export const killOne: FaultTest = {
  id: "F01",
  title: "the only broker is killed again and again",
  async run(run) {
    await run.startBrokers(1);
    await run.underLoad({}, () => killBrokers(run));
  },
};

const killOneOfThree: FaultTest = {
  id: "F02",
  title: "three brokers, one after the other is killed",
  async run(run) {
    await run.startBrokers(3);
    await run.underLoad({}, () => killBrokers(run));
    // A client that its broker failed tries the next at once.
    const attempts = new Map<string, number>();
    for (const event of run.events)
      if (event.type === "push-sent") {
        const push = keyOf(event.items[0]!);
        attempts.set(push, (attempts.get(push) ?? 0) + 1);
      }
    const failed = [...attempts.values()].filter((count) => count > 1 + RETRIES_MAX).length;
    run.note(`${failed} of ${attempts.size} pushes needed more than ${RETRIES_MAX} retries`);
    run.expect(failed <= attempts.size * 0.01, `${failed} of ${attempts.size} pushes needed more retries`);
  },
};

const terminate: FaultTest = {
  id: "F04",
  title: "brokers are stopped in order",
  async run(run) {
    await run.startBrokers(2);
    await run.underLoad({}, async () => {
      for (let victim = 0; run.hasTime(KILL_EVERY_MS); victim = 1 - victim) {
        await run.pause(KILL_EVERY_MS * 0.5, KILL_EVERY_MS);
        run.fault(`broker ${victim} is stopped`);
        const code = await run.brokers[victim]!.stop();
        run.expect(code === 0, `a broker ended with code ${code}`);
        await run.brokers[victim]!.start();
        await run.progressBy(20);
      }
    });
  },
};

/** What a stopping broker leased for pops that it could not answer is free again when it has ended. */
const terminateParked: FaultTest = {
  id: "F04b",
  title: "a broker that is stopped leaves no lease of unanswered pops",
  async run(run) {
    await run.startBrokers(1);
    const client = run.client();
    await client.configure("q", { leaseTime: 300 });
    const pops = Array.from({ length: 50 }, (_, index) =>
      client.pop("q", { partition: `p${index}`, wait: true, timeout: 30_000 }).then(
        (answer) => answer.messages.length,
        () => 0,
      ),
    );
    await sleep(500);
    const items = Array.from({ length: 50 }, (_, index) => ({
      queue: "q",
      partition: `p${index}`,
      payload: index,
    }));
    const pushed = client.push(items).catch(() => []);
    run.fault("the broker is stopped while it answers");
    const code = await run.brokers[0]!.stop();
    run.expect(code === 0, `the broker ended with code ${code}`);
    const stored = (await pushed).length;
    const delivered = (await Promise.all(pops)).reduce((sum, count) => sum + count, 0);
    const [row] = await run.query(
      "select count(*)::int4 as held from queen.partition_consumers where lease_token is not null",
    );
    run.expect(row!.held === delivered, `${row!.held} leases are held, ${delivered} messages were delivered`);
    run.count({ load: "50 parked pops", pushed: stored, delivered });
  },
};

const freeze: FaultTest = {
  id: "F05",
  title: "a broker stands still for longer than leases last, and goes on",
  async run(run) {
    await run.startBrokers(2);
    const leaseSeconds = 2;
    await run.underLoad({ leaseSeconds }, async () => {
      while (run.hasTime(leaseSeconds * 2_000)) {
        const victim = run.brokers[Math.floor(run.random() * 2)]!;
        run.fault("a broker stands still");
        victim.freeze();
        await run.pause(leaseSeconds * 1_500, leaseSeconds * 2_500);
        victim.thaw();
        await run.progressBy(20);
      }
    });
  },
};

/** A lease that was taken for a client that never got its answer is given up with its broker. */
const killHolder: FaultTest = {
  id: "F36",
  title: "one of three brokers, with 500 parked pops, is killed",
  async run(run) {
    await run.startBrokers(3);
    const client = run.client(0);
    await client.configure("q", { leaseTime: 300 });
    await client.push(
      Array.from({ length: 500 }, (_, n) => ({ queue: "q", partition: `p${n}`, payload: "first" })),
    );
    const parked = run.client(1);
    const popAll = (from: typeof client) =>
      Array.from({ length: 500 }, (_, n) =>
        from.pop("q", {
          partition: `p${n}`,
          consumerGroup: "g",
          subscriptionMode: "new",
          wait: true,
          timeout: 30_000,
        }),
      );
    const lost = popAll(parked).map((pop) =>
      pop.then(
        () => "answered",
        () => "cut",
      ),
    );
    await until("all pops are parked", async () => {
      const { json } = await run.client(1).request("GET", "/metrics");
      return json.pops.parked === 500;
    });
    run.fault("the broker of the parked pops is killed");
    await run.brokers[1]!.kill();
    const cut = (await Promise.all(lost)).filter((end) => end === "cut").length;
    run.expect(cut === 500, `${500 - cut} parked pops were answered by a broker that was killed`);
    const again = popAll(run.client(2));
    await sleep(500);
    await client.push(
      Array.from({ length: 500 }, (_, n) => ({ queue: "q", partition: `p${n}`, payload: "second" })),
    );
    const answers = await Promise.all(again);
    const delivered = answers.filter(({ messages }) => messages[0]?.data === "second").length;
    run.expect(delivered === 500, `${500 - delivered} pops did not get what was pushed after the kill`);
    run.count({ load: "500 parked pops", pushed: 1_000, delivered });
  },
};

export const BROKER_TESTS: readonly FaultTest[] = [
  calm,
  killOne,
  killOneOfThree,
  terminate,
  terminateParked,
  freeze,
  killHolder,
];
