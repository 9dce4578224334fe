/** A worker process: the broker, by the orders of the primary. */
import { startBroker } from "./broker.ts";
import { obey } from "./cluster/worker-process.ts";
import { processLog } from "./telemetry.ts";
import type { WorkerOrders } from "./worker-orders.ts";

export function runWorker(): void {
  let log = processLog("info");
  obey<WorkerOrders>(
    ({ config, database, version, spoolFolder }, workerIndex, line, askOthers) => {
      process.title = `queen worker ${workerIndex + 1}`;
      log = processLog(config.logLevel).child({ worker: workerIndex + 1 });
      const orders = { config: Object.freeze(config), database, version, spoolFolder };
      return startBroker({ ...orders, log, workerIndex, line, askOthers });
    },
    () => log,
  );
}
