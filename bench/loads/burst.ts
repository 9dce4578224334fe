/**
 * A burst load: one pop for every partition, all sent at once, round after round until the partitions are empty.
 * The figure of a round is the time from the first request to the last answer. The partitions are filled twice: the
 * first round of the first filling is the first time, those of the second filling are warm.
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
  const reader = ledger.reader();
  const connections = await session.connect(load.partitions);
  const paths = connections.map((_, partition) =>
    popPath({ queue: QUEUE, partition, batch: load.batch, autoAck: true }),
  );
  const rounds = Math.ceil(load.messagesPerPartition / load.batch);

  const fill = (): Promise<void> => {
    enterPhase("preloading");
    return preload(session, ledger, load.messagesPerPartition);
  };
  /** Returns how long each round took, in milliseconds. */
  const popAll = async (): Promise<number[]> => {
    const roundsMs: number[] = [];
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
    return roundsMs;
  };

  await fill();
  enterPhase("warming up");
  const [first = 0] = await popAll();
  await fill();
  enterPhase("measuring");
  const receivedBefore = reader.received;
  const opening = await accountant.open();
  const warm = await popAll();
  const closing = accountant.read();
  const messages = reader.received - receivedBefore;
  return {
    messages,
    perSecond: ratePerSecond(messages, closing.atMs - opening.atMs),
    latencyMs: distribution(warm),
    cost: await accountant.cost(opening, closing, messages),
    verdict: ledger.verdict(),
    extra: { "first ms": first, "warm ms": median(warm) ?? first },
    errors: session.errors,
  };
}
