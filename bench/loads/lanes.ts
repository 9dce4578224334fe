/** A load of lanes: one message to each of many partitions, to see what a partition costs that a broker remembers. */
import { round } from "../accounting.ts";
import { Ledger } from "../check.ts";
import { type LoadContext, preloadOneEach, QUEUE, readBack } from "../load.ts";
import { distribution, type Figures, ratePerSecond } from "../measure.ts";

export interface LanesLoad {
  readonly kind: "lanes";
  readonly partitions: number;
}

export async function runLanes(load: LanesLoad, context: LoadContext): Promise<Figures> {
  const { session, accountant, enterPhase } = context;
  // The first thousand partitions warm the broker up; the memory of its code is not that of partitions.
  const warmth = new Ledger({ partitions: 1_000, producers: 1 });
  await preloadOneEach(session, warmth, `${QUEUE}-warm`);
  const ledger = new Ledger({ partitions: load.partitions, producers: 1 });
  const opening = await accountant.open();
  enterPhase("measuring");
  await preloadOneEach(session, ledger, QUEUE);
  const closing = accountant.read();
  const cost = await accountant.cost(opening, closing, load.partitions);
  enterPhase("checking");
  await readBack(session, QUEUE, ledger, ledger.reader());
  const { brokerRssKb: before } = opening;
  const { brokerRssKb: after } = closing;
  return {
    messages: load.partitions,
    perSecond: ratePerSecond(load.partitions, closing.atMs - opening.atMs),
    latencyMs: distribution([]),
    cost,
    verdict: ledger.verdict(),
    extra:
      before === null || after === null ? {} : { "KB each": round((after - before) / load.partitions, 2) },
    errors: session.errors,
  };
}
