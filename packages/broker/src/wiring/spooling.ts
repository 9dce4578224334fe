/** Where pushes wait while the database is away, and how they get there afterwards. */
import type { PrimaryLine } from "../cluster/supervisor.ts";
import { NO_SPOOL, type SpoolFigures } from "../control/spool-figures.ts";
import type { Directory } from "../lanes/directory.ts";
import type { Keyring } from "../operations/encryption.ts";
import type { Slots } from "../postgres/slots.ts";
import * as statements from "../postgres/statements.ts";
import type { Pusher } from "../pushing/pusher.ts";
import type { ToWorker } from "../spooling/conversation.ts";
import { Drainer } from "../spooling/drainer.ts";
import { recordSeal } from "../spooling/record-seal.ts";
import { Spool } from "../spooling/spool.ts";
import type { Log } from "../telemetry.ts";
import type { Use } from "./connections.ts";

export interface SpoolingOptions {
  readonly line: PrimaryLine;
  /** Undefined: this broker has no spool. */
  readonly folder: string | undefined;
  readonly keyring: Keyring;
  readonly directory: Directory;
  readonly pusher: Pusher;
  /** The connections of pushes. */
  readonly slots: Slots;
  readonly use: Use;
  readonly now: () => number;
  readonly log: Log;
}

export interface Spooling {
  readonly seal: ReturnType<typeof recordSeal>;
  readonly drainer: Drainer;
  readonly spool: Spool;
  figures(): SpoolFigures;
}

export function spoolingOf(options: SpoolingOptions): Spooling {
  const { line, folder, keyring, directory, pusher, slots, use, now, log } = options;
  const seal = recordSeal(keyring);
  const drainer = new Drainer({ directory, pusher, seal, use, now, clock: Date.now });
  const spool = new Spool({
    line: folder === undefined ? undefined : line,
    seal,
    pusher,
    drainer,
    probe: async () => {
      await slots.whenAvailable();
      await slots.use((session) => session.run(statements.ping, []));
    },
    log,
  });
  line.onMessage((message) => spool.received(message as ToWorker));
  line.onEnd(() => spool.stop());
  const figures = (): SpoolFigures => {
    const { latest } = spool;
    return latest
      ? {
          pending: latest.pending,
          failed: latest.rejected,
          failedFiles: latest.rejected,
          failedBytes: latest.rejectedBytes,
          healthy: latest.isHealthy,
        }
      : NO_SPOOL;
  };
  return { seal, drainer, spool, figures };
}
