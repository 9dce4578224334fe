/** A push load: producers in a closed loop, each with one request in flight; then everything is read back. */
import { setTimeout as sleep } from "node:timers/promises";
import { Ledger } from "../check.ts";
import type { HttpConnection } from "../http-connection.ts";
import { type LoadContext, preloadOneEach, QUEUE, readBack } from "../load.ts";
import { distribution, type Figures, ratePerSecond } from "../measure.ts";

export interface PushLoad {
  readonly kind: "push";
  readonly producers: number;
  readonly batch: number;
  readonly partitions: number;
  /** Whether the partition is chosen once per request or for each message, or is the producer's own. */
  readonly spread: "request" | "message" | "producer";
  /** Without it, about 100. */
  readonly payloadBytes?: number;
  /** Each partition had a message before, and a consumer of the queue has read it. */
  readonly isMet?: true;
  /** A floor stores nothing, so nothing can be read back from it. */
  readonly isFloor?: true;
}

export async function runPush(load: PushLoad, context: LoadContext): Promise<Figures> {
  const { session, accountant, timing, enterPhase } = context;
  const ledger = new Ledger({ partitions: load.partitions, producers: load.producers });
  const latencies: number[] = [];
  let isMeasuring = false;
  let isOver = false;
  let messages = 0;
  const anyPartition = (): number => (Math.random() * load.partitions) | 0;
  const produce = async (connection: HttpConnection, producer: number): Promise<void> => {
    while (!isOver) {
      const chosen = load.spread === "producer" ? producer % load.partitions : anyPartition();
      const partition = load.spread === "message" ? anyPartition : () => chosen;
      const outcome = await session.push(connection, {
        queue: QUEUE,
        ledger,
        producer,
        count: load.batch,
        partition,
      });
      if (!isMeasuring || outcome.queued === 0) continue;
      messages += outcome.queued;
      latencies.push(outcome.answeredAtMs - outcome.sentAtMs);
    }
  };

  const reader = ledger.reader();
  if (load.isMet) {
    enterPhase("preloading");
    await preloadOneEach(session, ledger);
    await readBack(session, QUEUE, ledger, reader);
  }
  const connections = await session.connect(load.producers);
  enterPhase("warming up");
  const producing = connections.map(produce);
  await sleep(timing.warmupSeconds * 1000);
  const opening = await accountant.open();
  enterPhase("measuring");
  isMeasuring = true;
  await sleep(timing.seconds * 1000);
  const closing = accountant.read();
  isMeasuring = false;
  isOver = true;
  const cost = await accountant.cost(opening, closing, messages);
  await Promise.all(producing);

  const elapsedMs = closing.atMs - opening.atMs;
  if (!load.isFloor) {
    enterPhase("checking");
    await readBack(session, QUEUE, ledger, reader);
  }
  return {
    messages,
    perSecond: ratePerSecond(messages, elapsedMs),
    latencyMs: distribution(latencies),
    cost,
    verdict: load.isFloor ? null : ledger.verdict(),
    extra: {},
    errors: session.errors,
  };
}
