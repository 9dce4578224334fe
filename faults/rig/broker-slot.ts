/** A broker slot is a place for a broker process: its port and its data stay while processes come and go. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type BrokerProcess, freePort, startBrokerProcess } from "@queen/test/support/broker";
import { familyOf, isAlive, signal, untilGone } from "./processes.ts";

export class BrokerSlot {
  readonly url: string;
  readonly folder: string;
  readonly #port: number;
  readonly #env: Readonly<Record<string, string>>;
  databaseUrl: string;
  #process: BrokerProcess | undefined;
  #output = "";

  static async create(folder: string, databaseUrl: string, env: Record<string, string>): Promise<BrokerSlot> {
    return new BrokerSlot(folder, databaseUrl, await freePort(), env);
  }

  private constructor(folder: string, databaseUrl: string, port: number, env: Record<string, string>) {
    mkdirSync(folder, { recursive: true });
    this.folder = folder;
    this.databaseUrl = databaseUrl;
    this.#port = port;
    this.#env = env;
    this.url = `http://127.0.0.1:${port}`;
  }

  get pid(): number {
    return this.#process?.pid ?? -1;
  }

  get pids(): number[] {
    return this.#process && isAlive(this.pid) ? familyOf(this.pid) : [];
  }

  /** Everything that its processes wrote. */
  get output(): string {
    return this.#output + (this.#process?.output() ?? "");
  }

  /** Returns when it is ready. */
  async start(more: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#output = this.output;
    this.#process = undefined;
    this.#process = await startBrokerProcess({
      databaseUrl: this.databaseUrl,
      env: {
        NUM_WORKERS: "1",
        QUEEN_DATA_DIR: join(this.folder, "data"),
        QUEEN_SPOOL_DIR: join(this.folder, "spool"),
        ...this.#env,
        ...more,
        PORT: String(this.#port),
      },
    });
  }

  /** The exit code after SIGTERM. */
  async stop(): Promise<number> {
    return (await this.#process?.stop()) ?? 0;
  }

  /** All of its processes at once. */
  async kill(): Promise<void> {
    const pids = this.pids;
    for (const pid of pids) signal(pid, "SIGKILL");
    await untilGone(pids, 10_000);
  }

  freeze(): void {
    for (const pid of this.pids) signal(pid, "SIGSTOP");
  }

  thaw(): void {
    for (const pid of this.pids) signal(pid, "SIGCONT");
  }
}
