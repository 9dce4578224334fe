/**
 * A fleet is two brokers on one database: the first with one worker, the second with two. Tests run what must
 * hold everywhere on all three workers, with the bus and without it.
 */
import { type BrokerProcess, startBrokerProcess } from "./broker.ts";
import { createDatabase, type TestDatabase } from "./database.ts";
import { HttpClient, type PopAnswer, type PopQuery } from "./http.ts";
import { until } from "./moments.ts";
import { isPooled } from "./pooled.ts";

export type Bus = "on" | "off";

export interface FleetWorker {
  readonly name: string;
  readonly client: HttpClient;
  /** A second connection to the same worker. */
  readonly watch: HttpClient;
}

export interface Fleet {
  readonly database: TestDatabase;
  readonly workers: readonly [FleetWorker, FleetWorker, FleetWorker];
  /** One more broker, with one worker. */
  another(env?: Record<string, string>): Promise<FleetWorker>;
  stop(): Promise<void>;
}

// With the bus, everything is told; a broker that looks so seldom does not find it by looking.
const NEVER_LOOKS = { POP_WAIT_MAX_INTERVAL_MS: "60000" };

export async function startFleet(wanted: Bus, settings: Record<string, string> = {}): Promise<Fleet> {
  const bus = isPooled ? "off" : wanted;
  const database = await createDatabase();
  const brokers: BrokerProcess[] = [];
  const clients: HttpClient[] = [];
  const env = { QUEEN_BUS: bus, ...(bus === "on" ? NEVER_LOOKS : {}), ...settings };
  const start = async (more: Record<string, string>): Promise<BrokerProcess> => {
    const broker = await startBrokerProcess({ databaseUrl: database.url, env: { ...env, ...more } });
    brokers.push(broker);
    return broker;
  };
  const client = (broker: BrokerProcess): HttpClient => {
    const created = new HttpClient(broker.url);
    clients.push(created);
    return created;
  };
  const alone = async (more: Record<string, string> = {}): Promise<FleetWorker> => {
    const broker = await start({ NUM_WORKERS: "1", ...more });
    return { name: "a broker with one worker", client: client(broker), watch: client(broker) };
  };

  const [first, pair] = await Promise.all([alone(), start({ NUM_WORKERS: "2", QUEEN_PLACEMENT: "even" })]);
  const both = await connectToBoth(pair, client);
  const workerOf = (id: number): FleetWorker => {
    const [one, two] = both.get(id)!;
    return { name: `worker ${id} of two`, client: one!, watch: two! };
  };
  const workers = [first, workerOf(0), workerOf(1)] as const;
  if (bus === "on") {
    for (const { client: each } of workers) {
      await until("the bus knows all workers", async () => {
        const { bus: figures } = (await each.request("GET", "/metrics")).json;
        return figures.state === "listening" && figures.peers === 2;
      });
    }
  }
  return {
    database,
    workers,
    another: alone,
    async stop() {
      for (const each of clients) each.close();
      await Promise.all(brokers.map((broker) => broker.kill("SIGKILL")));
      await database.drop();
    },
  };
}

/** Two connections to each of the two workers of a broker, by the worker's id. */
export async function connectToBoth(
  broker: BrokerProcess,
  client: (broker: BrokerProcess) => HttpClient,
): Promise<Map<number, HttpClient[]>> {
  const found = new Map<number, HttpClient[]>();
  return until("both workers were met", async () => {
    const each = client(broker);
    const { id } = (await each.request("GET", "/metrics")).json.worker;
    found.set(id, [...(found.get(id) ?? []), each]);
    return found.size === 2 && [...found.values()].every((clients) => clients.length >= 2)
      ? found
      : undefined;
  });
}

export interface Parked {
  readonly answer: Promise<PopAnswer>;
  isAnswered(): boolean;
}

/** A pop that waits; resolves when the worker has parked it. */
export async function park(
  { client, watch }: FleetWorker,
  queue: string,
  query: PopQuery = {},
): Promise<Parked> {
  const parkedCount = async (): Promise<number> => (await watch.request("GET", "/metrics")).json.pops.parked;
  const before = await parkedCount();
  let isAnswered = false;
  const answer = client.pop(queue, { wait: true, timeout: 30_000, ...query }).finally(() => {
    isAnswered = true;
  });
  answer.catch(() => undefined); // whoever awaits it is told
  await until("the pop is parked", async () => (await parkedCount()) > before);
  return { answer, isAnswered: () => isAnswered };
}
