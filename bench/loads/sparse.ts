/**
 * A sparse load: of many partitions exactly one has work. One worker pushes a message to a partition at random
 * and takes it back by a wildcard pop; the latency is that of the pop. The queue may have a history: messages that
 * the group has behind it and that are still there.
 */
import { Ledger } from "../check.ts";
import { writeHistory } from "../history.ts";
import { type LoadContext, preloadOneEach, QUEUE, readBack } from "../load.ts";
import { distribution, type Figures, ratePerSecond } from "../measure.ts";
import { popPath } from "../messages.ts";

export interface SparseLoad {
  readonly kind: "sparse";
  readonly partitions: number;
  /** Messages that are kept in the partitions; without it, those that made the partitions. */
  readonly retained?: number;
}

const POPS_PER_MESSAGE_MAX = 1_000;
// The group that has the history behind it.
const NEWCOMER = "newcomer";

export async function runSparse(load: SparseLoad, context: LoadContext): Promise<Figures> {
  const { session, accountant, timing, enterPhase } = context;
  const ledger = new Ledger({ partitions: load.partitions, producers: 1 });
  const reader = ledger.reader();
  enterPhase("preloading");
  await preloadOneEach(session, ledger);
  await readBack(session, QUEUE, ledger, reader);
  const [connection] = await session.connect(1);
  const pop = { queue: QUEUE, batch: 1, autoAck: true };
  const path = popPath(load.retained === undefined ? pop : { ...pop, group: NEWCOMER, isFromNow: true });
  if (load.retained !== undefined) {
    await writeHistory(context.databaseUrl!, QUEUE, load.retained);
    // The first pop of a group makes it, behind the history. Then every lane is met once: what a broker has to
    // read again, because somebody else wrote the history, is not what an operation costs.
    await session.pop(connection!, path);
    await preloadOneEach(session, ledger);
    await readBack(session, QUEUE, ledger, reader, NEWCOMER);
  }
  const latencies: number[] = [];
  const pushLatencies: number[] = [];
  let emptyPops = 0;
  const pushAndPop = async (): Promise<number> => {
    const partition = (Math.random() * load.partitions) | 0;
    const pushed = await session.push(connection!, {
      queue: QUEUE,
      ledger,
      producer: 0,
      count: 1,
      partition: () => partition,
    });
    pushLatencies.push(pushed.answeredAtMs - pushed.sentAtMs);
    const startedAtMs = performance.now();
    for (let attempt = 0; attempt < POPS_PER_MESSAGE_MAX; attempt += 1) {
      const outcome = await session.pop(connection!, path);
      if (outcome && outcome.messages.length > 0) {
        reader.receive(outcome.messages, Infinity, outcome.answeredAtMs);
        return performance.now() - startedAtMs;
      }
      emptyPops += 1;
    }
    throw new Error(`${POPS_PER_MESSAGE_MAX} pops in a row did not find the message that was pushed`);
  };

  enterPhase("warming up");
  const warmUntilMs = performance.now() + timing.warmupSeconds * 1000;
  while (performance.now() < warmUntilMs) await pushAndPop();
  emptyPops = 0;
  pushLatencies.length = 0;
  const opening = await accountant.open();
  enterPhase("measuring");
  const untilMs = opening.atMs + timing.seconds * 1000;
  while (performance.now() < untilMs) latencies.push(await pushAndPop());
  const closing = accountant.read();
  return {
    messages: latencies.length,
    perSecond: ratePerSecond(latencies.length, closing.atMs - opening.atMs),
    latencyMs: distribution(latencies),
    cost: await accountant.cost(opening, closing, latencies.length),
    verdict: ledger.verdict(),
    extra: { "push p50 ms": distribution(pushLatencies).p50 ?? 0, "empty pops": emptyPops },
    errors: session.errors,
  };
}
