/**
 * A burst load: one pop for every partition, all sent at once, round after round until the partitions are empty.
 * The figure of a round is the time from the first request to the last answer.
 */
import { Ledger } from "../check.ts";
import { type LoadContext, preload, QUEUE } from "../load.ts";
import { distribution, type Figures, median, ratePerSecond } from "../measure.ts";
import { popPath } from "../messages.ts";

export interface BurstLoad {
  readonly kind: "burst";
  readonly partitions: number;
  readonly messagesPerPartition: number;
  /** Messages per pop; there are as many rounds as it takes to empty a partition. */
  readonly batch: number;
}

export async function runBurst(load: BurstLoad, context: LoadContext): Promise<Figures> {
  const { session, accountant, enterPhase } = context;
  const ledger = new Ledger({ partitions: load.partitions, producers: 1 });
  enterPhase("preloading");
  await preload(session, ledger, load.messagesPerPartition);

  const reader = ledger.reader();
  const connections = await session.connect(load.partitions);
  const paths = connections.map((_, partition) =>
    popPath({ queue: QUEUE, partition, batch: load.batch, autoAck: true }),
  );
  const roundsMs: number[] = [];
  const rounds = Math.ceil(load.messagesPerPartition / load.batch);
  const opening = await accountant.open();
  enterPhase("measuring");
  for (let round = 0; round < rounds; round += 1) {
    const startedAtMs = performance.now();
    const outcomes = await Promise.all(
      connections.map((connection, partition) => session.pop(connection, paths[partition]!)),
    );
    roundsMs.push(performance.now() - startedAtMs);
    for (const outcome of outcomes) {
      if (outcome) reader.receive(outcome.messages, outcome.sentAtMs, outcome.answeredAtMs);
    }
  }
  const closing = accountant.read();
  const messages = reader.received;
  const [first = 0, ...warm] = roundsMs;
  return {
    messages,
    perSecond: ratePerSecond(messages, closing.atMs - opening.atMs),
    latencyMs: distribution(warm),
    cost: await accountant.cost(opening, closing, messages),
    verdict: ledger.verdict(),
    extra: { "first ms": first, "warm ms": median(warm) ?? first, "last ms": roundsMs.at(-1) ?? first },
    errors: session.errors,
  };
}
