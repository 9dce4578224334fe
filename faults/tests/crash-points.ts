/** A worker that dies between two steps of an operation (packages/broker/src/crash-point.ts). */
import { until } from "@queen/test/support/moments";
import type { FaultTest } from "../fault-test.ts";

const POINTS = [
  ...["push", "pop", "ack", "transaction"].flatMap((kind) => [
    `${kind}-unsent`,
    `${kind}-sent`,
    `${kind}-done`,
  ]),
  "answer-half",
];
const PASSES_MAX = 30;

export const CRASH_POINT_TESTS: readonly FaultTest[] = [
  {
    id: "F03",
    title: "a worker dies inside of each step",
    async run(run) {
      await run.startBrokers(1);
      const [victim] = run.brokers;
      await run.underLoad({}, async () => {
        // Every point once, however little time there is: that is what the test is for.
        for (const point of POINTS.toSorted(() => run.random() - 0.5)) {
          const passes = 1 + Math.floor(run.random() * PASSES_MAX);
          await victim!.kill();
          await victim!.start({ QUEEN_CRASH_AT: `${point}:${passes}` });
          const deaths = (): number => victim!.output.split("worker.died").length - 1;
          const before = deaths();
          run.fault(`${point}, time ${passes}`);
          await until(`a worker died at ${point}`, () => deaths() > before);
        }
        await victim!.kill();
        await victim!.start();
      });
    },
  },
];
