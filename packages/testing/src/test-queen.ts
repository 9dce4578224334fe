/**
 * A test's own Queen: PostgreSQL, one or several brokers on it, and clients of them. Everything is gone after
 * `stop`, and with the test's process.
 */
import { QUEUE_MODE_GROUP, Queen, type QueenOptions } from "@queen/client";
import { expireLeases, jump } from "./clock.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";
import { BrokerProcess, freePort, type TestBroker } from "./test-broker.ts";
import { startTestDatabase } from "./test-database.ts";
import { type UntilOptions, until } from "./until.ts";

export interface TestQueenOptions {
  /** How many; 1 unless said. */
  readonly brokers?: number;
  /** The brokers' environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Puts a proxy before each broker and before the database, so that connections can be broken. */
  readonly breakable?: boolean;
  /**
   * A PostgreSQL server on which it may create a database. Unless said, the one that QUEEN_TEST_DATABASE_URL
   * names, otherwise one of its own.
   */
  readonly serverUrl?: string;
}

/** Connections that a test can break. */
export interface Network {
  /** Resets all connections; new ones work. Returns how many there were. */
  cut(): number;
  /** Nothing passes, and nobody is told, until `restore`. */
  hold(): void;
  restore(): void;
}

export interface TestQueen {
  /** Of the first broker. */
  readonly url: string;
  readonly urls: readonly string[];
  readonly brokers: readonly TestBroker[];
  readonly databaseUrl: string;
  /** Between clients and a broker, by the broker's place; with `breakable`. */
  readonly toBroker: readonly Network[];
  /** Between brokers and the database; with `breakable`. */
  readonly toDatabase: Network;
  /** A client of all brokers, closed by `stop`. */
  client(options?: Omit<QueenOptions, "url" | "urls">): Queen;
  /** Waits until a group, queue mode unless said, has finished every message of a queue. */
  drained(queue: string, group?: string, options?: UntilOptions): Promise<void>;
  /** Every lease runs out now; of one queue, if it is named. */
  expireLeases(queue?: string): Promise<void>;
  /** Makes everything older, so that delays are over. */
  jump(seconds: number): Promise<void>;
  /** Runs SQL in the test's database. */
  sql(text: string): Promise<void>;
  stop(): Promise<void>;
}

const CLOSE_MILLIS = 2_000;

export async function startTestQueen(options: TestQueenOptions = {}): Promise<TestQueen> {
  const undo: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    return await start(options, undo, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function start(
  options: TestQueenOptions,
  undo: (() => Promise<unknown>)[],
  stop: () => Promise<void>,
): Promise<TestQueen> {
  const database = await startTestDatabase(
    options.serverUrl ?? (process.env.QUEEN_TEST_DATABASE_URL || undefined),
  );
  undo.push(() => database.stop());
  const address = new URL(database.url);
  const databaseProxy = options.breakable
    ? await startTcpProxy({ host: address.hostname, port: Number(address.port || 5432) })
    : undefined;
  if (databaseProxy) undo.push(() => databaseProxy.close());
  const databaseUrl = databaseProxy?.urlOf(database.url) ?? database.url;

  const brokers: TestBroker[] = [];
  const processes: BrokerProcess[] = [];
  const proxies: TcpProxy[] = [];
  for (let index = 0; index < (options.brokers ?? 1); index++) {
    const port = await freePort();
    const broker = new BrokerProcess({ port, databaseUrl, env: options.env ?? {} });
    undo.push(() => broker.remove());
    const proxy = options.breakable ? await startTcpProxy({ host: "127.0.0.1", port }) : undefined;
    if (proxy) {
      proxies.push(proxy);
      undo.push(() => proxy.close());
    }
    processes.push(broker);
    brokers.push({
      url: `http://127.0.0.1:${proxy?.port ?? port}`,
      get isRunning() {
        return broker.isRunning;
      },
      output: () => broker.output(),
      start: () => broker.start(),
      stop: () => broker.stop(),
      kill: () => broker.kill(),
    });
  }
  await Promise.all(processes.map((each) => each.start()));
  const urls = brokers.map((broker) => broker.url);
  const client = (own: Omit<QueenOptions, "url" | "urls"> = {}): Queen => {
    const queen = new Queen({ ...own, urls });
    undo.push(() => queen.close({ timeoutMillis: CLOSE_MILLIS }).catch(() => undefined));
    return queen;
  };
  const own = new Queen({ urls });
  undo.push(() => own.close());
  /** Pops that wait know when a delay or a lease ends by the clock; they are told to look again. */
  const wakePops = async (queue?: string): Promise<void> => {
    const names = queue === undefined ? (await own.admin.queues()).queues.map(({ name }) => name) : [queue];
    for (const name of names) await own.admin.notify({ queue: name });
  };

  return {
    url: urls[0]!,
    urls,
    brokers,
    databaseUrl: database.url,
    toBroker: proxies.map(networkOf),
    get toDatabase() {
      if (databaseProxy) return networkOf(databaseProxy);
      throw new Error("Start with `breakable: true` to break connections.");
    },
    client,
    async drained(queue, group = QUEUE_MODE_GROUP, untilOptions) {
      await until(
        `${group} has finished every message of ${queue}`,
        async () => {
          const groups = await own.admin.consumerGroups({ queue });
          return groups.find(({ name }) => name === group)?.totalLag === 0;
        },
        untilOptions,
      );
    },
    async expireLeases(queue) {
      await expireLeases(database, queue);
      await wakePops(queue);
    },
    async jump(seconds) {
      await jump(database, seconds);
      await wakePops();
    },
    sql: (text) => database.run(text),
    stop,
  };
}

const networkOf = (proxy: TcpProxy): Network => ({
  cut: () => proxy.cut("reset"),
  hold: () => proxy.set({ kind: "hold" }),
  restore: () => proxy.set({ kind: "pass" }),
});
