/**
 * A broker process is the compiled broker as users run it: `node …/main.js` with environment variables, on a
 * free port of 127.0.0.1. What a test leaves running ends with the test's process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { get } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export interface BrokerProcess {
  readonly url: string;
  readonly pid: number;
  /** Asks it to end (SIGTERM) and returns its exit code. */
  stop(): Promise<number>;
  /** Sends a signal, and waits for the end where the signal ends a process at once. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** What it wrote to stdout and stderr so far. */
  output(): string;
  workerPids(): number[];
}

const MAIN = fileURLToPath(new URL("../../../packages/broker/dist/src/main.js", import.meta.url));
// A start on a busy machine, migration included, takes a few seconds.
const READY_MS_MAX = 60_000;
// The broker itself waits 10 s for requests in flight.
const STOP_MS_MAX = 30_000;
const OUTPUT_CHARACTERS_MAX = 1_000_000;

const running = new Set<ChildProcess>();
let spools: string | undefined;
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
  if (spools !== undefined) rmSync(spools, { recursive: true, force: true });
});

/** A broker that is started again on its port finds what it had spooled there. */
function spoolOf(port: string): string {
  spools ??= mkdtempSync(join(tmpdir(), "queen-spools-"));
  return join(spools, port);
}
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const) {
  process.once(signal, () => process.exit(code)); // through "exit", which a signal by itself passes over
}

export async function startBrokerProcess(options: {
  databaseUrl: string;
  env?: Record<string, string>;
}): Promise<BrokerProcess> {
  const port = options.env?.PORT ?? String(await freePort());
  const child = spawn(process.execPath, ["--enable-source-maps", MAIN], {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      DATABASE_URL: throughPooler(options.databaseUrl),
      HOST: "127.0.0.1",
      PORT: port,
      QUEEN_SPOOL_DIR: spoolOf(port),
      ...options.env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  let output = "";
  const keep = (chunk: string): void => {
    output = (output + chunk).slice(-OUTPUT_CHARACTERS_MAX);
  };
  child.stdout.setEncoding("utf8").on("data", keep);
  child.stderr.setEncoding("utf8").on("data", keep);
  const ended = new Promise<number>((resolve) => {
    const end = (code: number): void => {
      running.delete(child);
      resolve(code);
    };
    child.once("error", (error) => {
      keep(`${error.message}\n`);
      end(-1);
    });
    // As shells count: a process that a signal ended has no code of its own.
    child.once("exit", (code, signal) => end(code ?? (signal === "SIGKILL" ? 137 : 143)));
  });

  const url = `http://127.0.0.1:${port}`;
  const broker: BrokerProcess = {
    url,
    pid: child.pid ?? -1,
    async stop() {
      child.kill("SIGTERM");
      const deadline = new AbortController();
      const code = await Promise.race([
        ended,
        sleep(STOP_MS_MAX, undefined, { signal: deadline.signal, ref: false }).catch(() => undefined),
      ]);
      deadline.abort();
      if (code !== undefined) return code;
      child.kill("SIGKILL");
      throw new Error(`the broker did not end within ${STOP_MS_MAX} ms of SIGTERM; it wrote:\n${output}`);
    },
    async kill(signal) {
      child.kill(signal);
      if (signal === "SIGKILL" || signal === "SIGABRT") await ended;
    },
    output: () => output,
    workerPids: () => childrenOf(broker.pid),
  };

  let hasEnded = false;
  void ended.then(() => {
    hasEnded = true;
  });
  for (const startedMs = performance.now(); performance.now() - startedMs < READY_MS_MAX; await sleep(20)) {
    if (hasEnded)
      throw new Error(`the broker ended with code ${await ended} before it was ready:\n${output}`);
    // Whoever asks by TLS may need a certificate; the log says it, too. One that is to crash may never answer.
    const isReady =
      (options.env?.QUEEN_CRASH_AT && output.includes("worker.died")) ||
      (options.env?.QUEEN_TLS_CERT_FILE
        ? output.includes("broker.ready")
        : (await statusOf(`${url}/readyz`)) === 200);
    if (isReady) return broker;
  }
  await broker.kill("SIGKILL");
  throw new Error(`the broker was not ready within ${READY_MS_MAX} ms; it wrote:\n${output}`);
}

/** Where the tests run with a pooler before their server, brokers on that server use it (scripts/test.mjs). */
function throughPooler(databaseUrl: string): string {
  const { QUEEN_TEST_PGBOUNCER_PORT: port, QUEEN_TEST_DATABASE_URL: server } = process.env;
  if (!port || !server || !URL.canParse(databaseUrl)) return databaseUrl;
  const url = new URL(databaseUrl);
  if (url.host !== new URL(server).host) return databaseUrl;
  url.host = `127.0.0.1:${port}`;
  return url.href;
}

/** A port that nobody listens on now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The status of the answer; undefined where nobody answers. */
function statusOf(url: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, timeout: 2_000 }, (response) => {
      response.resume();
      response.once("error", () => resolve(undefined));
      response.once("end", () => resolve(response.statusCode));
    });
    request.once("timeout", () => request.destroy());
    request.once("error", () => resolve(undefined));
  });
}

/** The other processes of its parent. */
export function siblingsOf(pid: number): number[] {
  const parent = processes().find((each) => each.pid === pid)?.parent;
  return parent === undefined ? [] : childrenOf(parent).filter((each) => each !== pid);
}

const childrenOf = (pid: number): number[] =>
  processes()
    .filter(({ parent, state }) => parent === pid && state !== "Z")
    .map((each) => each.pid)
    .sort((a, b) => a - b);

/** In /proc/…/stat the state and the parent's id come after the name. */
function processes(): { pid: number; state: string; parent: number }[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        return [{ pid: Number(name), state: state!, parent: Number(parent) }];
      } catch {
        return []; // it ended meanwhile
      }
    });
}
