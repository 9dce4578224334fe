/**
 * A parked load: many consumers wait on many queues with nothing to read; then each gets one message. It shows
 * what a waiting consumer costs, and how soon all of them are woken when work comes everywhere at once.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { round } from "../accounting.ts";
import { Ledger } from "../check.ts";
import type { HttpConnection } from "../http-connection.ts";
import { DrainWatch, type LoadContext } from "../load.ts";
import { distribution, type Figures, ratePerSecond } from "../measure.ts";
import { popPath } from "../messages.ts";

export interface ParkedLoad {
  readonly kind: "parked";
  readonly consumers: number;
  readonly queues: number;
}

const POP_WAIT_MS = 30_000;
const PRODUCERS = 32;

export async function runParked(load: ParkedLoad, context: LoadContext): Promise<Figures> {
  const { session, accountant, timing, enterPhase } = context;
  const consumersPerQueue = load.consumers / load.queues;
  // Each consumer has a partition of its own to be woken by; the partitions of queue q begin at its share.
  const ledger = new Ledger({ partitions: load.consumers, producers: 1 });
  const reader = ledger.reader();
  const queueName = (queue: number): string => `bench-${queue}`;
  const latencies: number[] = [];
  let watch: DrainWatch | undefined;
  let timeouts = 0;
  let lastAtMs = 0;
  const wait = async (connection: HttpConnection, index: number): Promise<void> => {
    const path = popPath({
      queue: queueName(index % load.queues),
      batch: 1,
      autoAck: true,
      waitMs: POP_WAIT_MS,
    });
    while (!watch?.isTooLong) {
      const outcome = await session.pop(connection, path);
      if (!outcome || outcome.messages.length === 0) {
        timeouts += 1;
        continue;
      }
      reader.receive(outcome.messages, outcome.sentAtMs, outcome.answeredAtMs);
      latencies.push(outcome.answeredAtMs - outcome.messages[0]!.data.t);
      lastAtMs = outcome.answeredAtMs;
      watch?.touch();
      return;
    }
  };

  const before = accountant.read();
  enterPhase("parking");
  const waiting = (await session.connect(load.consumers)).map(wait);
  await sleep(timing.warmupSeconds * 1000);
  const parked = await accountant.open();
  await sleep(timing.seconds * 1000);
  const stillParked = accountant.read();
  const parkedCost = await accountant.cost(parked, stillParked, load.consumers);

  enterPhase("measuring");
  const producers = await session.connect(PRODUCERS);
  watch = new DrainWatch();
  const opening = await accountant.open();
  let nextQueue = 0;
  const produce = async (connection: HttpConnection): Promise<void> => {
    while (nextQueue < load.queues) {
      const queue = nextQueue;
      nextQueue += 1;
      await session.push(connection, {
        queue: queueName(queue),
        ledger,
        producer: 0,
        count: consumersPerQueue,
        partition: (index) => queue * consumersPerQueue + index,
      });
    }
  };
  await Promise.all(producers.map(produce));
  await Promise.all(waiting);
  const closing = accountant.read();
  const kbBefore = before.brokerRssKb;
  const kbParked = stillParked.brokerRssKb;
  return {
    messages: latencies.length,
    perSecond: ratePerSecond(latencies.length, lastAtMs - opening.atMs),
    latencyMs: distribution(latencies),
    cost: await accountant.cost(opening, closing, latencies.length),
    verdict: ledger.verdict(),
    extra: {
      ...(kbBefore === null || kbParked === null
        ? {}
        : { "KB each": round((kbParked - kbBefore) / load.consumers, 1) }),
      "broker % while parked": parkedCost.cpuPercent.broker ?? 0,
      "postgres % while parked": parkedCost.cpuPercent.postgres ?? 0,
      "early empty answers": timeouts,
    },
    errors: session.errors,
  };
}
