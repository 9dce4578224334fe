/**
 * The process of a soak's clients. Producers push at the rate that the rig says, or as fast as the consumers can
 * follow; the check looks at everything as it happens.
 */
import type { Violation } from "@queen/test/checker/rules";
import { consume } from "./consumer.ts";
import { produce } from "./producer.ts";
import { GROUPS } from "./shape.ts";
import { type Figures, type Job, SoakLoad } from "./soak-load.ts";

export type ToLoad =
  | { readonly kind: "job"; readonly job: Job }
  /** Messages per second; null: as fast as it goes. */
  | { readonly kind: "rate"; readonly perSecond: number | null }
  | { readonly kind: "enough" }
  /** Everything is consumed; these are dead letters: group, lane, offset. */
  | { readonly kind: "over"; readonly dead: readonly (readonly [string, string, number])[] };
export type FromLoad =
  | { readonly kind: "figures"; readonly figures: Figures }
  | { readonly kind: "pushes-ended" }
  | {
      readonly kind: "verdict";
      readonly counts: Readonly<Record<string, number>>;
      readonly examples: readonly Violation[];
    };

const TELL_EVERY_MS = 500;

function send(message: FromLoad): void {
  process.send!(message);
}

async function run(load: SoakLoad): Promise<void> {
  const { shape } = load;
  const tell = (): void => send({ kind: "figures", figures: load.read() });
  const telling = setInterval(tell, TELL_EVERY_MS);
  const producers = Array.from({ length: shape.producers }, (_, index) => produce(load, index));
  const consumers = GROUPS.flatMap((group, place) =>
    Array.from({ length: shape.consumersPerGroup }, (_, index) =>
      consume(load, group, place * shape.consumersPerGroup + index),
    ),
  );
  await Promise.all(producers);
  send({ kind: "pushes-ended" });
  await Promise.all(consumers);
  clearInterval(telling);
  tell();
}

let load: SoakLoad | undefined;
let ended: Promise<void> | undefined;

process.on("message", (message: ToLoad) => {
  if (message.kind === "job") {
    load = new SoakLoad(message.job);
    ended = run(load);
    ended.catch((error: unknown) => {
      console.error(error);
      process.exit(1);
    });
  } else if (message.kind === "rate") load!.ratePerSecond = message.perSecond;
  else if (message.kind === "enough") load!.isEnough = true;
  else {
    load!.isEnough = true;
    load!.isOver = true;
    const dead = new Set(message.dead.map(([group, lane, offset]) => `${group} ${lane}@${offset}`));
    void ended!.then(() => {
      const { check } = load!;
      check.finish((group, lane, offset) => dead.has(`${group} ${lane}@${offset}`));
      send({ kind: "verdict", counts: Object.fromEntries(check.counts), examples: check.violations });
      process.disconnect();
    });
  }
});
// The rig is gone: nobody will hear the verdict.
process.on("disconnect", () => {
  if (!load?.isOver) process.exit(1);
});
