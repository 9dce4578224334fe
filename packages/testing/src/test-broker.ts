/** A broker as users run it: a process of its own, on a free port of 127.0.0.1. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "./until.ts";

export interface TestBroker {
  /** Through the broker's proxy, where it has one. */
  readonly url: string;
  readonly isRunning: boolean;
  /** What it wrote to stdout and stderr so far. */
  output(): string;
  /** Asks it to end (SIGTERM), and waits for that. */
  stop(): Promise<void>;
  /** Ends it as a crash would, at once. */
  kill(): Promise<void>;
  /** Starts it again on its port, after stop or kill. */
  start(): Promise<void>;
}

export interface BrokerSettings {
  readonly port: number;
  readonly databaseUrl: string;
  readonly env: Readonly<Record<string, string>>;
}

const MAIN = fileURLToPath(new URL("./main.js", import.meta.resolve("@queen/broker")));
// A start on a busy machine, migration included, takes a few seconds.
const READY_MILLIS = 60_000;
// The broker itself waits 10 s for requests in flight.
const STOP_MILLIS = 30_000;
const OUTPUT_CHARACTERS_MAX = 1_000_000;

const running = new Set<ChildProcess>();
const spools = new Set<string>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
  for (const folder of spools) rmSync(folder, { recursive: true, force: true });
});

export class BrokerProcess {
  readonly #settings: BrokerSettings;
  readonly #spool: string;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #output = "";

  constructor(settings: BrokerSettings) {
    this.#settings = settings;
    this.#spool = mkdtempSync(join(tmpdir(), "queen-testing-spool-"));
    spools.add(this.#spool);
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  output(): string {
    return this.#output;
  }

  async start(): Promise<void> {
    if (this.#child) return;
    const { port, databaseUrl, env } = this.#settings;
    const child = spawn(process.execPath, ["--enable-source-maps", MAIN], {
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        DATABASE_URL: databaseUrl,
        HOST: "127.0.0.1",
        PORT: String(port),
        QUEEN_SPOOL_DIR: this.#spool,
        ...env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    running.add(child);
    const keep = (chunk: string): void => {
      this.#output = (this.#output + chunk).slice(-OUTPUT_CHARACTERS_MAX);
    };
    child.stdout.setEncoding("utf8").on("data", keep);
    child.stderr.setEncoding("utf8").on("data", keep);
    this.#ended = new Promise((resolve) => {
      const end = (): void => {
        running.delete(child);
        this.#child = undefined;
        resolve();
      };
      child.once("exit", end);
      child.once("error", (error) => {
        keep(`${error.message}\n`);
        end();
      });
    });
    let isOver = false;
    try {
      await until(
        "the broker is ready",
        async () => {
          isOver = this.#child === undefined;
          return isOver || (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200;
        },
        { timeoutMillis: READY_MILLIS },
      );
    } catch (error) {
      await this.kill();
      throw new Error(`The broker was not ready; it wrote:\n${this.#output}`, { cause: error });
    }
    if (isOver) throw new Error(`The broker ended before it was ready; it wrote:\n${this.#output}`);
  }

  async stop(): Promise<void> {
    this.#child?.kill("SIGTERM");
    const timer = setTimeout(() => this.#child?.kill("SIGKILL"), STOP_MILLIS);
    await this.#ended;
    clearTimeout(timer);
  }

  async kill(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.#ended;
  }

  /** Ends it and removes what it left on the disk. */
  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#spool, { recursive: true, force: true });
    spools.delete(this.#spool);
  }
}

/** A port that nobody listens on now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
