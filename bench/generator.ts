/**
 * The generator is a process of its own that runs one load and reports its figures, so that neither the
 * orchestrator's event loop nor the broker's is part of what it measures with.
 *
 *   orchestrator ──job──▶ generator ──phase──▶ orchestrator
 *                                   ──figures or failure──▶
 */
import { Accountant, type Accounted } from "./accounting.ts";
import type { Address } from "./http-connection.ts";
import { type Phase, Session, type Timing } from "./load.ts";
import { type Load, runLoad } from "./loads/index.ts";
import type { Figures } from "./measure.ts";
import type { Padding } from "./messages.ts";

export interface Job {
  /** Where brokers listen, or the HTTP floor, or the server of a peer; none where PostgreSQL itself is loaded. */
  readonly addresses: readonly Address[];
  readonly accounted: Accounted;
  readonly load: Load;
  readonly timing: Timing;
  readonly padding: Padding;
}

export type Report =
  | { readonly kind: "phase"; readonly phase: Phase }
  | { readonly kind: "figures"; readonly figures: Figures }
  | { readonly kind: "failure"; readonly message: string };

async function run(job: Job): Promise<Figures> {
  const { addresses, accounted, load, timing, padding } = job;
  const session = new Session(addresses, padding, load.kind === "push" ? load.payloadBytes : undefined);
  const accountant = new Accountant(accounted);
  await accountant.start();
  try {
    const enterPhase = (phase: Phase): void => report({ kind: "phase", phase });
    const { databaseUrl } = accounted;
    return await runLoad(load, { session, accountant, timing, addresses, databaseUrl, padding, enterPhase });
  } finally {
    session.close();
    await accountant.stop();
  }
}

function report(message: Report): void {
  process.send?.(message);
}

process.once("message", (job: Job) => {
  run(job).then(
    (figures) => report({ kind: "figures", figures }),
    (error: unknown) =>
      report({ kind: "failure", message: error instanceof Error ? error.message : String(error) }),
  );
});
// The orchestrator disconnects when it has the figures, and when it ends for any other reason.
process.once("disconnect", () => process.exit(0));
process.on("SIGINT", () => undefined);
