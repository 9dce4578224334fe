/**
 * The primary process: arguments, configuration, start, signals, exit code. It owns the database's start and serves no
 * request.
 *
 *   configuration ──▶ port free? ──▶ fork workers ──▶ embedded PostgreSQL, ──▶ orders to the workers,
 *         │               │                           if none is given         which listen and answer 503
 *         └── mistakes ───┴──▶ exit 1                                                      │
 *                                                                                          ▼
 *   exit 0 ◀── stop PostgreSQL ◀── stop workers ◀── signal ◀── banner ◀── workers work ◀── migrate
 *
 * Once configured, only three things end it: a signal, a port that cannot be had, and a migration that the
 * database refuses. A worker or an embedded PostgreSQL that dies is started again, and a database that is
 * away is waited for.
 */
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ListenError, type ServiceListener, Supervisor } from "./cluster/supervisor.ts";
import { helpText, parseArguments } from "./command-line.ts";
import { type Config, ConfigError, type Environment, printConfig } from "./config.ts";
import { type DatabaseSettings, describe } from "./postgres/database-settings.ts";
import { FolderInUseError } from "./postgres/embedded-owner.ts";
import { defaultDataDir, type EmbeddedServer, startEmbeddedServer } from "./postgres/embedded-server.ts";
import { DatabaseRefusedError, prepareDatabase } from "./postgres/prepare-database.ts";
import { readSettings } from "./settings.ts";
import type { ToKeeper } from "./spooling/conversation.ts";
import { Keeper } from "./spooling/keeper.ts";
import { type Log, processLog } from "./telemetry.ts";
import type { WorkerOrders } from "./worker-orders.ts";

// What a worker may take beyond the time for requests in flight: to give leases back and close connections.
const STOP_EXTRA_MS = 2_000;
// npm passes on the SIGINT that the terminal has sent to the broker already. Nobody types that fast.
const SAME_SIGNAL_WITHIN_MS = 300;
const EMBEDDED_PAUSE_MS_MIN = 100;
const EMBEDDED_PAUSE_MS_MAX = 5_000;
// An embedded PostgreSQL that ran so long did not die of its start: the next pause is the shortest again.
const EMBEDDED_STEADY_AFTER_MS = 60_000;

// Workers run it, too.
const MAIN = fileURLToPath(new URL("./main.js", import.meta.url));

/** Resolves with the exit code, when everything that was started has ended. */
export async function runPrimary(argv: readonly string[], env: Environment): Promise<number> {
  process.title = "queen";
  process.stdout.on("error", () => {}); // a closed pipe is no reason to stop
  if (argv[0] === "keys") {
    const { keysCommand } = await import("./commands/keys.ts");
    return keysCommand(argv.slice(1), () => readSettings(env), process);
  }
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  try {
    const { action, overrides } = parseArguments(argv);
    if (action === "help") return print(helpText(version));
    if (action === "version") return print(`${version}\n`);
    const { config, database, warnings } = readSettings({ ...env, ...overrides });
    if (action === "print-config") return print(printConfig(config));
    const log = processLog(config.logLevel);
    for (const message of warnings) log.warn({ message }, "config.warning");
    return await serve({ ...config, port: await freePort(config) }, database, version, log);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const problem of error.problems) complain(problem);
    return 1;
  }
}

/**
 * The port that the workers will listen on: the one configured if it can be had, or any free one for 0. A
 * worker that is replaced listens on the same one again.
 */
function freePort({ host, port }: Config): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) =>
      reject(new ConfigError([listenProblem(error.code ?? "", error.message, host, port)])),
    );
    server.listen({ host, port }, () => {
      const { port: found } = server.address() as AddressInfo;
      server.close(() => resolve(found));
    });
  });
}

function listenProblem(code: string, message: string, host: string, port: number): string {
  if (code === "EADDRINUSE") {
    const other = port < 65_535 ? port + 1 : port - 1;
    return `Port ${port} is in use by another process: stop that one, or set PORT to another port, as in PORT=${other}.`;
  }
  if (code === "EACCES") return `Port ${port} is only for privileged users: set PORT to one from 1024 up.`;
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
    return `HOST=${host} is no address of this machine: set HOST to one, or to 0.0.0.0 for all of them.`;
  }
  return `The broker cannot listen on ${host}:${port} (${message}): set HOST and PORT to an address that it can have.`;
}

async function serve(
  config: Config,
  given: DatabaseSettings | undefined,
  version: string,
  log: Log,
): Promise<number> {
  const keeper = await openSpool(config, log);
  const supervisor = new Supervisor<WorkerOrders>({
    script: MAIN,
    workerCount: config.workerCount,
    placement: config.placement,
    stopMsMax: config.shutdownDelayMs + config.shutdownTimeoutMs + STOP_EXTRA_MS,
    listener: listenerOf(keeper),
    log,
  });
  const embedded =
    given === undefined ? new EmbeddedDatabase(config.dataDir ?? defaultDataDir(), log) : undefined;
  const end = new AbortController();
  let exitCode = 0;

  stopOnSignals(end, supervisor, log);
  process.on("uncaughtException", (error) => {
    log.error({ error }, "broker.uncaught");
    exitCode = 1;
    end.abort();
  });

  try {
    const startedMs = performance.now();
    supervisor.start();
    const database = given ?? (await untilAborted(embedded!.start(), end.signal));
    supervisor.give({ config, database, version, spoolFolder: keeper?.folder });
    const connectTimeoutMs = config.connectTimeoutMs;
    const prepared = prepareDatabase({ database, connectTimeoutMs, log, signal: end.signal });
    prepared.then(() => supervisor.databaseReady()).catch(() => {}); // awaited below
    const [port] = await untilAborted(Promise.all([supervisor.ready, prepared]), end.signal);
    const readyMs = Math.round(performance.now() - startedMs);
    log.info({ port, workers: config.workerCount, version, readyMs }, "broker.ready");
    const data = embedded?.dataDir ?? describe(database);
    print(banner(version, baseUrl(config, port), data, config, keeper?.folder));
    await untilAborted(new Promise<never>(() => {}), end.signal);
  } catch (error) {
    if (!end.signal.aborted) {
      exitCode = 1;
      complain(problemOf(error, config));
      end.abort();
    }
  }

  await supervisor.stop();
  await keeper?.close();
  try {
    await embedded?.stop();
  } catch (error) {
    log.error({ error }, "database.stop-failed");
    exitCode = 1;
  }
  log.info({ exitCode }, "broker.stopped");
  return exitCode;
}

/**
 * The spool, where it can be had. A folder that somebody else uses is a mistake to correct; a folder that cannot be
 * used is no reason to refuse service while PostgreSQL is there.
 */
async function openSpool(config: Config, log: Log): Promise<Keeper | undefined> {
  const { spoolDir, fileBufferDir, dataDir, spoolBytesMax: bytesMax, port } = config;
  if (bytesMax === 0) return undefined;
  const beside = `${resolve(dataDir ?? defaultDataDir())}-spool`;
  const folder = resolve(spoolDir ?? fileBufferDir ?? join(beside, String(port)));
  try {
    const keeper = await Keeper.open({ folder, bytesMax, log });
    const { pending, rejected, damaged } = keeper.figures;
    log.info({ folder, pending, rejected, damaged }, "spool.open");
    return keeper;
  } catch (error) {
    if (error instanceof FolderInUseError) throw new ConfigError([error.message]);
    const message =
      "pushes are refused while PostgreSQL is away: set QUEEN_SPOOL_DIR to a folder that can be written";
    log.warn({ message, folder, error }, "spool.unusable");
    return undefined;
  }
}

function listenerOf(keeper: Keeper | undefined): ServiceListener {
  return {
    received: (line, message) => keeper?.received(line, message as ToKeeper),
    left: (line) => keeper?.left(line),
  };
}

function problemOf(error: unknown, { host, port }: Config): string {
  if (error instanceof ListenError) return listenProblem(error.code, error.message, host, port);
  if (error instanceof DatabaseRefusedError || error instanceof EmbeddedStartError) return error.message;
  return (error as Error).stack ?? String(error);
}

/** The first signal asks everything to end in order; the second one does not wait for it. */
function stopOnSignals(end: AbortController, supervisor: Supervisor<WorkerOrders>, log: Log): void {
  let firstMs: number | undefined;
  const stop = (name: string, code: number): void => {
    if (firstMs === undefined) {
      firstMs = performance.now();
      log.info({ signal: name }, "broker.stopping");
      end.abort();
    } else if (performance.now() - firstMs > SAME_SIGNAL_WITHIN_MS) {
      supervisor.signal("SIGKILL");
      process.exit(code); // the embedded PostgreSQL is asked for its fast shutdown on the way out
    }
  };
  process.on("SIGINT", () => stop("SIGINT", 130));
  process.on("SIGTERM", () => stop("SIGTERM", 143));
  // The terminal was closed. Without one, SIGHUP keeps the meaning that nohup gave it.
  if (process.stdout.isTTY || process.stderr.isTTY) {
    process.once("SIGHUP", () => {
      supervisor.signal("SIGHUP"); // some shells tell only one process
      stop("SIGHUP", 129);
      // process.exit() would set the terminal back, and Node.js aborts where that terminal is gone. The
      // broker, when it has stopped, ends by the signal itself.
      process.once("exit", () => process.kill(process.pid, "SIGHUP"));
    });
  }
}

async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let abort = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** The embedded PostgreSQL did not start; the message says what to do. */
class EmbeddedStartError extends Error {
  override readonly name = "EmbeddedStartError";
}

/** The embedded PostgreSQL, started again on the same address whenever it ends by itself. */
class EmbeddedDatabase {
  readonly #log: Log;
  readonly #stopRequested = new AbortController();
  #dataDir: string;
  #server: EmbeddedServer | undefined;
  #work: Promise<unknown> = Promise.resolve();

  constructor(dataDir: string, log: Log) {
    this.#dataDir = dataDir;
    this.#log = log;
  }

  get dataDir(): string {
    return this.#dataDir;
  }

  /** Rejects with an EmbeddedStartError: the first start is the one that a person watches. */
  async start(): Promise<DatabaseSettings> {
    const starting = this.#startServer(undefined);
    this.#work = starting.catch(() => {});
    try {
      const server = await starting;
      this.#dataDir = server.dataDir;
      void this.#keepRunning();
      return server.settings;
    } catch (error) {
      throw new EmbeddedStartError((error as Error).message, { cause: error });
    }
  }

  async stop(): Promise<void> {
    this.#stopRequested.abort();
    await this.#work;
    await this.#server?.stop();
  }

  async #startServer(port: number | undefined): Promise<EmbeddedServer> {
    const server = await startEmbeddedServer({
      dataDir: this.#dataDir,
      log: (message) => this.#log.info({ message }, "database.embedded"),
      ...(port === undefined ? {} : { port }),
    });
    this.#server = server;
    return server;
  }

  async #keepRunning(): Promise<void> {
    const { signal } = this.#stopRequested;
    let pauseMs = EMBEDDED_PAUSE_MS_MIN;
    while (!signal.aborted) {
      const startedMs = performance.now();
      const message = await this.#server!.exited;
      if (signal.aborted) return;
      this.#log.error({ message }, "database.died");
      if (performance.now() - startedMs >= EMBEDDED_STEADY_AFTER_MS) pauseMs = EMBEDDED_PAUSE_MS_MIN;
      const restarting = this.#restart(this.#server!, pauseMs);
      this.#work = restarting;
      pauseMs = await restarting;
    }
  }

  /** Returns when the server runs again or is no longer wanted, with the pause before a next restart. */
  async #restart(dead: EmbeddedServer, pauseMs: number): Promise<number> {
    const { signal } = this.#stopRequested;
    const { port } = dead.settings.hosts[0]!;
    for (;;) {
      await sleep(pauseMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return pauseMs;
      pauseMs = Math.min(2 * pauseMs, EMBEDDED_PAUSE_MS_MAX);
      try {
        await dead.stop(); // frees the folder
        await this.#startServer(port);
        return pauseMs;
      } catch (error) {
        this.#log.error({ error, pauseMs }, "database.restart-failed");
      }
    }
  }
}

/** Where a person reaches a broker that listens on this address. */
function baseUrl({ host, tlsCertificateFile }: Config, port: number): string {
  const scheme = tlsCertificateFile === undefined ? "http" : "https";
  if (["0.0.0.0", "::", "127.0.0.1"].includes(host)) return `${scheme}://localhost:${port}`;
  return `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

const asksForCredentials = ({ tokensEnabled, keysEnabled, adminKey }: Config): boolean =>
  tokensEnabled || keysEnabled || adminKey !== undefined;

/** Who may come in, in a sentence. */
function openness(config: Config): string {
  if (asksForCredentials(config)) return "Requests need a token or an API key; see docs/security.md.";
  if (["127.0.0.1", "::1", "localhost"].includes(config.host)) {
    return "Only this machine reaches it: there is no authentication. To open it, see docs/security.md.";
  }
  return `Everybody who reaches ${config.host} may do anything: there is no authentication; see docs/security.md.`;
}

/** The lines work when they are pasted one after the other, in any shell with curl and sed. */
function banner(
  version: string,
  url: string,
  data: string,
  config: Config,
  spool: string | undefined,
): string {
  const curl = asksForCredentials(config) ? 'curl -H "Authorization: Bearer $QUEEN_TOKEN"' : "curl";
  const item = '{"items":[{"queue":"demo","partition":"customer-1","payload":{"hello":"world"}}]}';
  const fields = ["transactionId", "partitionId", "leaseId"].map((name) => `("${name}":"[^"]*")`).join(".*");
  return `
Queen ${version} is ready at ${url}
Its data is in ${data}
${spool === undefined ? "It has no spool: pushes are refused while PostgreSQL is away" : `Pushes while PostgreSQL is away wait in ${spool}`}
${openness(config)}

Push a message, pop it, and acknowledge it:

  ${curl} -sw '\\n' ${url}/api/v1/push -d '${item}'

  popped=$(${curl} -s '${url}/api/v1/pop/queue/demo?batch=1'); echo "$popped"

  echo "$popped" | sed -E 's/.*${fields}.*/{\\1,\\2,\\3}/' | ${curl} -sw '\\n' ${url}/api/v1/ack -d @-

`;
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

function complain(problem: string): void {
  process.stderr.write(`queen-broker: ${problem}\n`);
}
