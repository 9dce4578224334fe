/** The handlers of the modes of maintenance, and of what waits on the broker's disk. */
import type { Maintenance } from "../control/maintenance.ts";
import type { SpoolFigures } from "../control/spool-figures.ts";
import { json } from "./answers.ts";
import type { Answer } from "./route.ts";

export interface MaintenanceRoutesOptions {
  readonly maintenance: Maintenance;
  readonly spool: () => SpoolFigures;
  /** Whether pushes can wait on the broker's disk. */
  readonly hasSpool: boolean;
  /** Whether the database can be used, as far as this worker knows. */
  readonly isDatabaseHealthy: () => boolean;
  readonly workerIndex: number;
}

export class MaintenanceRoutes {
  readonly #options: MaintenanceRoutesOptions;

  constructor(options: MaintenanceRoutesOptions) {
    this.#options = options;
  }

  async read(): Promise<Answer> {
    const { maintenance, spool, isDatabaseHealthy } = this.#options;
    const { push, pop } = await maintenance.read();
    const { pending, failed, failedFiles, failedBytes, healthy } = spool();
    return json(200, {
      maintenanceMode: push,
      popMaintenanceMode: pop,
      bufferedMessages: pending,
      bufferHealthy: healthy,
      bufferStats: {
        pendingCount: pending,
        failedCount: failed,
        dbHealthy: isDatabaseHealthy(),
        failedFiles: {
          count: failedFiles,
          totalBytes: failedBytes,
          totalMB: Math.round((failedBytes / 1024 ** 2) * 100) / 100,
          failoverCount: failedFiles,
          qos0Count: 0,
        },
      },
    });
  }

  async set(enabled: boolean): Promise<Answer> {
    const { maintenance, spool, hasSpool } = this.#options;
    await maintenance.set("push", enabled);
    const { pending, healthy } = spool();
    return json(200, {
      maintenanceMode: enabled,
      bufferedMessages: pending,
      bufferHealthy: healthy,
      message: !enabled
        ? "Push maintenance is off: pushes are stored."
        : hasSpool
          ? "Push maintenance is on: pushes wait on the disks of the brokers until it is switched off."
          : "Push maintenance is on: pushes are refused with 503 until it is switched off.",
    });
  }

  async readPop(): Promise<Answer> {
    return this.#popAnswer((await this.#options.maintenance.read()).pop);
  }

  async setPop(enabled: boolean): Promise<Answer> {
    await this.#options.maintenance.set("pop", enabled);
    return this.#popAnswer(enabled);
  }

  buffers(): Answer {
    const { spool, isDatabaseHealthy, workerIndex } = this.#options;
    const { pending, failed } = spool();
    return json(200, { pending, failed, dbHealthy: isDatabaseHealthy(), worker: workerIndex });
  }

  #popAnswer(isOn: boolean): Answer {
    return json(200, {
      popMaintenanceMode: isOn,
      message: isOn
        ? "Pop maintenance is on: every pop is answered at once, with nothing."
        : "Pop maintenance is off: pops get messages.",
    });
  }
}
