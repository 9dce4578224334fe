/** A worker that dies between two steps of an operation (packages/broker/src/crash-point.ts). */
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "@queen/test/support/moments";
import type { FaultTest } from "../fault-test.ts";
import { isAlive } from "../rig/processes.ts";

const POINTS = [
  ...["push", "pop", "ack", "transaction"].flatMap((kind) => [
    `${kind}-unsent`,
    `${kind}-sent`,
    `${kind}-done`,
  ]),
  "answer-half",
];
const SPOOL_POINTS = [
  "spool-before-write",
  "spool-before-sync",
  "spool-after-sync",
  "drain-before-append",
  "drain-after-append",
  "drain-after-settle",
  "spool-before-unlink",
];
const PASSES_MAX = 30;

export const CRASH_POINT_TESTS: readonly FaultTest[] = [
  {
    id: "F03",
    title: "a worker dies inside of each step",
    async run(run) {
      await run.startBrokers(1);
      const [victim] = run.brokers;
      const deaths = (): number => victim!.output.split("worker.died").length - 1;
      await run.underLoad({}, async () => {
        // Every point once, however little time there is: that is what the test is for.
        for (const point of POINTS.toSorted(() => run.random() - 0.5)) {
          const passes = 1 + Math.floor(run.random() * PASSES_MAX);
          await victim!.kill();
          const before = deaths();
          await victim!.start({ QUEEN_CRASH_AT: `${point}:${passes}` });
          run.fault(`${point}, time ${passes}`);
          await until(`a worker died at ${point}`, () => deaths() > before);
        }
        await victim!.kill();
        await victim!.start();
      });
    },
  },
  {
    id: "F03b",
    title: "a broker dies inside of each step of its spool",
    async run(run) {
      await run.startBrokers(1);
      const [victim] = run.brokers;
      const deaths = (): number => victim!.output.split("worker.died").length - 1;
      await run.underLoad({}, async () => {
        for (const point of SPOOL_POINTS.toSorted(() => run.random() - 0.5)) {
          const passes = 1 + Math.floor(run.random() * (point === "spool-before-unlink" ? 1 : 3));
          await victim!.kill();
          const before = deaths();
          const isDead = (): boolean => !isAlive(victim!.pid) || deaths() > before;
          run.fault(`${point}, time ${passes}`);
          // Pushes that meet a starting broker go through its spool: it may die before it is ready.
          await victim!.start({ QUEEN_CRASH_AT: `${point}:${passes}` }).catch(() => undefined);
          await run.postgres.kill();
          // Longer than it takes until pushes go to the disk.
          for (let waitedMs = 0; waitedMs < 5_000 && !isDead(); waitedMs += 100) await sleep(100);
          await run.postgres.start();
          await until(`the broker died at ${point}`, isDead, 60_000);
          await victim!.kill();
          await victim!.start();
          await run.progressBy(20);
        }
      });
    },
  },
];
