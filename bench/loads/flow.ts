/**
 * A flow load: producers and long-polling consumers at the same time. Its latency is end to end, from the
 * sending of the push to the arrival of the message at a consumer. At a fixed rate, the first half of the warm-up is a
 * closed loop, so that code has run in: at 50 a second that would take minutes.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Ledger } from "../check.ts";
import type { HttpConnection } from "../http-connection.ts";
import { consume, DrainWatch, type LoadContext, QUEUE } from "../load.ts";
import { distribution, type Figures, ratePerSecond } from "../measure.ts";

export interface FlowLoad {
  readonly kind: "flow";
  readonly producers: number;
  readonly pushBatch: number;
  readonly consumers: number;
  readonly popBatch: number;
  readonly partitions: number;
  /** Messages a second over all producers; null is a closed loop. */
  readonly messagesPerSecond: number | null;
}

const POP_WAIT_MS = 5_000;
// Time for the consumers to be parked before the first message.
const PARK_MS = 300;
const STRAGGLER_MS = 500;

export async function runFlow(load: FlowLoad, context: LoadContext): Promise<Figures> {
  const { session, accountant, timing, enterPhase } = context;
  const ledger = new Ledger({ partitions: load.partitions, producers: load.producers });
  const reader = ledger.reader();
  const latencies: number[] = [];
  let isMeasuring = false;
  let isRunningIn = load.messagesPerSecond !== null;
  let areProducersOver = false;
  let isCut = false;
  let pushed = 0;
  let received = 0;
  let watch = new DrainWatch();

  const intervalMs =
    load.messagesPerSecond === null ? 0 : (1000 * load.pushBatch * load.producers) / load.messagesPerSecond;
  const produce = async (connection: HttpConnection, producer: number): Promise<void> => {
    let dueAtMs = 0;
    while (!areProducersOver) {
      if (isRunningIn) dueAtMs = performance.now() + Math.random() * intervalMs;
      else if (intervalMs > 0) {
        await sleep(Math.max(0, dueAtMs - performance.now()));
        dueAtMs += intervalMs;
        if (areProducersOver) return;
      }
      const chosen = (Math.random() * load.partitions) | 0;
      const outcome = await session.push(connection, {
        queue: QUEUE,
        ledger,
        producer,
        count: load.pushBatch,
        partition: () => chosen,
      });
      if (isMeasuring) pushed += outcome.queued;
    }
  };
  const run = (connection: HttpConnection): Promise<void> =>
    consume(session, connection, {
      pop: { queue: QUEUE, batch: load.popBatch, waitMs: POP_WAIT_MS },
      ledger,
      reader,
      isOver: () => isCut,
      onReceived: (outcome) => {
        watch.touch();
        if (!isMeasuring) return;
        received += outcome.messages.length;
        for (const message of outcome.messages) latencies.push(outcome.answeredAtMs - message.data.t);
      },
    });

  const consuming = (await session.connect(load.consumers)).map(run);
  const producers = await session.connect(load.producers);
  await sleep(PARK_MS);
  enterPhase("warming up");
  // Every lane is met once: what the first message of a new lane takes is another question.
  for (let partition = 0; partition < load.partitions; partition += 1) {
    await session.push(producers[0]!, {
      queue: QUEUE,
      ledger,
      producer: 0,
      count: 1,
      partition: () => partition,
    });
  }
  const producing = producers.map(produce);
  await sleep(timing.warmupSeconds * 500);
  isRunningIn = false;
  await sleep(timing.warmupSeconds * 500);
  const opening = await accountant.open();
  enterPhase("measuring");
  isMeasuring = true;
  await sleep(timing.seconds * 1000);
  const closing = accountant.read();
  isMeasuring = false;
  areProducersOver = true;
  watch = new DrainWatch();
  const cost = await accountant.cost(opening, closing, received);
  const backlog = Math.max(0, ledger.confirmedCount - reader.distinct);
  enterPhase("draining");
  await Promise.all(producing);
  while (!reader.complete && !watch.isTooLong) await sleep(50);
  // A moment for a duplicate to show itself; then the long polls that are still parked are cut.
  await sleep(STRAGGLER_MS);
  isCut = true;
  session.close();
  await Promise.all(consuming);

  const elapsedMs = closing.atMs - opening.atMs;
  return {
    messages: received,
    perSecond: ratePerSecond(received, elapsedMs),
    latencyMs: distribution(latencies),
    cost,
    verdict: ledger.verdict(),
    extra: { "pushed msgs/s": ratePerSecond(pushed, elapsedMs), "backlog at end": backlog },
    errors: session.errors,
  };
}
