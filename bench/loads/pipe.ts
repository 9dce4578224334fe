/**
 * A pipe load: workers move messages from one queue to another. Each message is acknowledged and a new one pushed,
 * in one transaction or, for comparison, by an ack and a push apart. The latency is that of moving one message.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Ledger, mergeVerdicts } from "../check.ts";
import type { HttpConnection } from "../http-connection.ts";
import { type LoadContext, preload, QUEUE, readBack } from "../load.ts";
import { distribution, type Figures, ratePerSecond } from "../measure.ts";
import { type PoppedMessage, popPath } from "../messages.ts";

export interface PipeLoad {
  readonly kind: "pipe";
  readonly workers: number;
  readonly partitions: number;
  readonly messagesPerPartition: number;
  readonly by: "transaction" | "ack and push";
}

const TARGET_QUEUE = "bench-target";
// Messages per pop: enough that the pop is a small part, few enough that a worker soon notices the end.
const POP_BATCH = 50;

export async function runPipe(load: PipeLoad, context: LoadContext): Promise<Figures> {
  const { session, accountant, timing, enterPhase } = context;
  const source = new Ledger({ partitions: load.partitions, producers: 1 });
  const target = new Ledger({ partitions: load.partitions, producers: load.workers });
  enterPhase("preloading");
  await preload(session, source, load.messagesPerPartition);

  const sourceReader = source.reader();
  const latencies: number[] = [];
  let isMeasuring = false;
  let isOver = false;
  const move = async (connection: HttpConnection, worker: number, message: PoppedMessage): Promise<void> => {
    const partition = source.partitionOf(message.data.s) ?? 0;
    if (load.by === "transaction") {
      const place = { ledger: target, queue: TARGET_QUEUE, partition };
      await session.transact(connection, { ledger: source, message }, place);
      return;
    }
    // The ack may free the partition for another worker before this one has pushed, so that the order of the
    // target is one per worker. A transaction has no such gap: its order is one for all.
    await session.ack(connection, source, message);
    await session.push(connection, {
      queue: TARGET_QUEUE,
      ledger: target,
      producer: worker,
      count: 1,
      partition: () => partition,
    });
  };
  const work = async (connection: HttpConnection, worker: number): Promise<void> => {
    const path = popPath({ queue: QUEUE, batch: POP_BATCH });
    while (!isOver) {
      const outcome = await session.pop(connection, path);
      if (!outcome || outcome.messages.length === 0) {
        await sleep(5);
        continue;
      }
      sourceReader.receive(outcome.messages, Infinity, outcome.answeredAtMs);
      for (const message of outcome.messages) {
        const startedAtMs = performance.now();
        await move(connection, worker, message);
        if (isMeasuring) latencies.push(performance.now() - startedAtMs);
      }
    }
  };

  enterPhase("warming up");
  const working = (await session.connect(load.workers)).map(work);
  await sleep(timing.warmupSeconds * 1000);
  const opening = await accountant.open();
  enterPhase("measuring");
  isMeasuring = true;
  await sleep(timing.seconds * 1000);
  const closing = accountant.read();
  isMeasuring = false;
  isOver = true;
  const messages = latencies.length;
  const cost = await accountant.cost(opening, closing, messages);
  await Promise.all(working);

  enterPhase("checking");
  await readBack(session, TARGET_QUEUE, target, target.reader());
  await readBack(session, QUEUE, source, sourceReader);
  return {
    messages,
    perSecond: ratePerSecond(messages, closing.atMs - opening.atMs),
    latencyMs: distribution(latencies),
    cost,
    verdict: mergeVerdicts([source.verdict(), target.verdict()]),
    extra: {},
    errors: session.errors,
  };
}
