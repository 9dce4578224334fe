/** A drain load: a preloaded queue is read to its end by wildcard pops, by one or by several consumer groups. */
import type { Reading } from "../accounting.ts";
import { Ledger } from "../check.ts";
import type { HttpConnection } from "../http-connection.ts";
import { consume, DrainWatch, type LoadContext, preload, QUEUE } from "../load.ts";
import { distribution, type Figures, type Mark, ratePerSecond, steadyPart } from "../measure.ts";

export interface DrainLoad {
  readonly kind: "drain";
  readonly consumers: number;
  readonly batch: number;
  readonly partitions: number;
  readonly messagesPerPartition: number;
  readonly ack: "auto" | "batch" | "range";
  /** Named consumer groups that each read everything; 0 is queue mode. */
  readonly groups: number;
}

export async function runDrain(load: DrainLoad, context: LoadContext): Promise<Figures> {
  const { session, accountant, enterPhase } = context;
  const ledger = new Ledger({ partitions: load.partitions, producers: 1 });
  enterPhase("preloading");
  await preload(session, ledger, load.messagesPerPartition);

  const readers = Array.from({ length: Math.max(1, load.groups) }, () => ledger.reader());
  const total = ledger.confirmedCount * readers.length;
  const latencies: Mark[] = [];
  const marks: Mark[] = [];
  let done = 0;
  let pops = 0;
  let closing: Reading | undefined;
  const watch = new DrainWatch();
  const run = async (connection: HttpConnection, index: number): Promise<void> => {
    const reader = readers[index % readers.length]!;
    const group = load.groups > 0 ? `g${index % readers.length}` : undefined;
    await consume(session, connection, {
      pop: {
        queue: QUEUE,
        batch: load.batch,
        autoAck: load.ack === "auto",
        ...(group === undefined ? {} : { group }),
      },
      acksRanges: load.ack === "range",
      ledger,
      reader,
      isOver: (wasEmpty) => (wasEmpty && reader.complete) || watch.isTooLong,
      onReceived: (outcome) => {
        pops += 1;
        watch.touch();
        latencies.push({ atMs: outcome.answeredAtMs, total: outcome.answeredAtMs - outcome.sentAtMs });
      },
      onDone: (count) => {
        done += count;
        marks.push({ atMs: performance.now(), total: done });
        if (done >= total) closing ??= accountant.read();
      },
    });
  };

  const connections = await session.connect(load.consumers);
  const opening = await accountant.open();
  enterPhase("measuring");
  await Promise.all(connections.map(run));
  closing ??= accountant.read();
  const cost = await accountant.cost(opening, closing, done);

  const steady = steadyPart(marks, 0.1, 0.95);
  const isSteady = (mark: Mark): boolean => mark.atMs >= steady.from.atMs && mark.atMs <= steady.to.atMs;
  return {
    messages: done,
    perSecond: ratePerSecond(steady.to.total - steady.from.total, steady.to.atMs - steady.from.atMs),
    latencyMs: distribution(latencies.filter(isSteady).map((mark) => mark.total)),
    cost,
    verdict: ledger.verdict(),
    extra: {
      "overall msgs/s": ratePerSecond(done, closing.atMs - opening.atMs),
      "msgs per pop": Math.round(done / Math.max(1, pops)),
    },
    errors: session.errors,
  };
}
