/** A load of named pops: each connection owns some partitions and takes their messages one by one. */
import { setTimeout as sleep } from "node:timers/promises";
import { Ledger } from "../check.ts";
import type { HttpConnection } from "../http-connection.ts";
import { DRAIN_SECONDS_MAX, type LoadContext, preload, QUEUE } from "../load.ts";
import { distribution, type Figures, type Mark, ratePerSecond, steadyPart } from "../measure.ts";
import { popPath } from "../messages.ts";

export interface NamedPopsLoad {
  readonly kind: "named-pops";
  readonly connections: number;
  readonly partitions: number;
  readonly messagesPerPartition: number;
  readonly ack: "auto" | "batch";
}

const EMPTY_POPS_IN_A_ROW_MAX = 50;

export async function runNamedPops(load: NamedPopsLoad, context: LoadContext): Promise<Figures> {
  const { session, accountant, enterPhase } = context;
  const ledger = new Ledger({ partitions: load.partitions, producers: 1 });
  enterPhase("preloading");
  await preload(session, ledger, load.messagesPerPartition);

  const reader = ledger.reader();
  const latencies: Mark[] = [];
  const marks: Mark[] = [];
  let done = 0;
  const connections = await session.connect(load.connections);
  const opening = await accountant.open();
  const overAtMs = performance.now() + DRAIN_SECONDS_MAX * 1000;
  enterPhase("measuring");
  const emptyPartition = async (connection: HttpConnection, partition: number): Promise<void> => {
    const path = popPath({ queue: QUEUE, partition, batch: 1, autoAck: load.ack === "auto" });
    let emptyPops = 0;
    for (let taken = 0; taken < load.messagesPerPartition && performance.now() < overAtMs; ) {
      const outcome = await session.pop(connection, path);
      if (!outcome || outcome.messages.length === 0) {
        emptyPops += 1;
        if (emptyPops >= EMPTY_POPS_IN_A_ROW_MAX) return;
        await sleep(2);
        continue;
      }
      emptyPops = 0;
      taken += outcome.messages.length;
      // One connection alone pops this partition, so no two pops overlap.
      reader.receive(outcome.messages, Infinity, outcome.answeredAtMs);
      if (load.ack === "batch") await session.ackBatch(connection, ledger, outcome.messages);
      done += outcome.messages.length;
      latencies.push({ atMs: outcome.answeredAtMs, total: outcome.answeredAtMs - outcome.sentAtMs });
      marks.push({ atMs: performance.now(), total: done });
    }
  };
  await Promise.all(
    connections.map(async (connection, owner) => {
      for (let partition = owner; partition < load.partitions; partition += connections.length) {
        await emptyPartition(connection, partition);
      }
    }),
  );
  const closing = accountant.read();
  const cost = await accountant.cost(opening, closing, done);

  const steady = steadyPart(marks, 0.1, 0.9);
  const isSteady = (mark: Mark): boolean => mark.atMs >= steady.from.atMs && mark.atMs <= steady.to.atMs;
  return {
    messages: done,
    perSecond: ratePerSecond(steady.to.total - steady.from.total, steady.to.atMs - steady.from.atMs),
    latencyMs: distribution(latencies.filter(isSteady).map((mark) => mark.total)),
    cost,
    verdict: ledger.verdict(),
    extra: { "overall pops/s": ratePerSecond(done, closing.atMs - opening.atMs) },
    errors: session.errors,
  };
}
