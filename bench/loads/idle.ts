/** An idle load: nothing is sent, and the broker's memory is read at the end of the window. */
import { setTimeout as sleep } from "node:timers/promises";
import { familyRssKb, round } from "../accounting.ts";
import type { LoadContext } from "../load.ts";
import { distribution, type Figures } from "../measure.ts";

export interface IdleLoad {
  readonly kind: "idle";
}

export async function runIdle(_load: IdleLoad, context: LoadContext): Promise<Figures> {
  const { accountant, timing, enterPhase } = context;
  await sleep(timing.warmupSeconds * 1000);
  const opening = await accountant.open();
  enterPhase("measuring");
  await sleep(timing.seconds * 1000);
  const closing = accountant.read();
  const families = accountant.brokerPids.map(familyRssKb);
  const workers = families.flatMap((family) => family?.children ?? []);
  const workersKb = workers.reduce((total, kb) => total + kb, 0);
  return {
    messages: 0,
    perSecond: 0,
    latencyMs: distribution([]),
    cost: await accountant.cost(opening, closing, 1),
    verdict: null,
    extra: {
      ...(families[0] ? { "primary MB": round(families[0].own / 1024, 1) } : {}),
      ...(workers.length > 0 ? { "MB a worker": round(workersKb / workers.length / 1024, 1) } : {}),
    },
    errors: {},
  };
}
