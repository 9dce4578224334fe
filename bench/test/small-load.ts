/** Runs a load that is small on brokers and a database of its own, and lets the test look at what became of it. */
import { Accountant } from "../accounting.ts";
import { Session } from "../load.ts";
import { type Load, runLoad } from "../loads/index.ts";
import type { Figures } from "../measure.ts";
import { startBrokers } from "../processes/broker.ts";
import { startDatabaseServer } from "../processes/database-server.ts";

let databases = 0;

export async function runSmallLoad(
  load: Load,
  brokerCount: number,
  look: (databaseUrl: string, figures: Figures) => Promise<void>,
): Promise<void> {
  const server = await startDatabaseServer(process.env.QUEEN_TEST_DATABASE_URL!, () => undefined);
  const name = `bench_small_load_${process.pid}_${databases++}`;
  try {
    const databaseUrl = await server.createDatabase(name);
    const brokers = await startBrokers(databaseUrl, { brokers: brokerCount, workers: 1 });
    const session = new Session(brokers.addresses, "plain");
    try {
      const figures = await runLoad(load, {
        session,
        accountant: new Accountant({ brokerPids: brokers.pids, postmasterPid: null, databaseUrl: null }),
        timing: { warmupSeconds: 0.2, seconds: 0.2 },
        addresses: brokers.addresses,
        databaseUrl,
        padding: "plain",
        enterPhase: () => undefined,
      });
      await look(databaseUrl, figures);
    } finally {
      session.close();
      await brokers.stop();
    }
  } finally {
    await server.dropDatabase(name);
    await server.stop();
  }
}
