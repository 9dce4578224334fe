/**
 * The PostgreSQL server of a run: its own data in a temporary folder, to be killed, stopped in its tracks and
 * started again. The newest of Debian's packages is used where there is one, because it brings everything
 * for replicas; otherwise the one that the broker has built in.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startEmbeddedServer } from "@queen/broker";
import { freePort } from "@queen/test/support/broker";
import pg from "pg";
import { disown, familyOf, isAlive, own, signal, untilGone } from "./processes.ts";

export interface PostgresOptions {
  readonly settings?: Readonly<Record<string, string>>;
  /** Environment variables of the server, such as LD_PRELOAD. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface PostgresServer {
  readonly port: number;
  readonly pid: number;
  urlOf(database: string): string;
  /** The postmaster is killed; returns when all its processes are gone. */
  kill(): Promise<void>;
  /** An orderly end, or one without a last checkpoint. */
  stop(mode: "fast" | "immediate"): Promise<void>;
  /** On the same port and data; returns when it answers. */
  start(): Promise<void>;
  /** Stops or continues every process of the server. */
  freeze(): void;
  thaw(): void;
  dispose(): Promise<void>;
}

const START_MS_MAX = 60_000;
const GONE_MS_MAX = 30_000;
const SETTINGS: Readonly<Record<string, string>> = {
  max_connections: "200",
  shared_buffers: "128MB",
  max_prepared_transactions: "10",
};

/** The folder of Debian's programs, the newest version first; undefined: none is installed. */
export function installedPrograms(): string | undefined {
  const root = "/usr/lib/postgresql";
  if (!existsSync(root)) return undefined;
  return readdirSync(root)
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(root, version, "bin"))
    .find((folder) => Number(folder.split("/").at(-2)) >= 15 && existsSync(join(folder, "pg_basebackup")));
}

export function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const programs = installedPrograms();
  return programs === undefined ? startEmbedded(options) : InstalledServer.create(programs, options);
}

/** A copy of the primary that follows it. */
export async function startStandby(
  primary: InstalledServer,
  name: string,
  options: PostgresOptions = {},
): Promise<InstalledServer> {
  return InstalledServer.create(primary.programs, options, (folder) => [
    "pg_basebackup",
    [
      "-D",
      folder,
      "-d",
      `host=127.0.0.1 port=${primary.port} user=postgres application_name=${name}`,
      "-R",
      "-X",
      "stream",
      "--checkpoint=fast",
    ],
  ]);
}

export async function query(
  url: string,
  text: string,
  values: unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}

abstract class Processes {
  abstract readonly pid: number;

  async kill(): Promise<void> {
    const family = familyOf(this.pid);
    signal(this.pid, "SIGKILL");
    if (!(await untilGone(family, GONE_MS_MAX))) throw new Error("PostgreSQL's processes did not end");
  }

  freeze(): void {
    for (const pid of familyOf(this.pid)) signal(pid, "SIGSTOP");
  }

  thaw(): void {
    for (const pid of familyOf(this.pid)) signal(pid, "SIGCONT");
  }
}

/** PostgreSQL refuses root: the account of Debian's package is used then. */
export function account(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

export class InstalledServer extends Processes implements PostgresServer {
  readonly programs: string;
  readonly port: number;
  readonly folder: string;
  readonly #options: PostgresOptions;
  #pid = -1;

  static async create(
    programs: string,
    options: PostgresOptions,
    make: (data: string) => [string, string[]] = (data) => [
      "initdb",
      ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
    ],
    parent = tmpdir(),
  ): Promise<InstalledServer> {
    const folder = mkdtempSync(join(parent, "queen-faults-pg-"));
    chmodSync(folder, 0o711);
    const server = new InstalledServer(programs, folder, await freePort(), options);
    const { uid, gid } = account();
    mkdirSync(server.data, { mode: 0o700 });
    if (uid !== undefined && gid !== undefined) chownSync(server.data, uid, gid);
    try {
      const [program, args] = make(server.data);
      await server.run(program, args);
      await server.start();
      return server;
    } catch (error) {
      await server.dispose();
      throw error;
    }
  }

  private constructor(programs: string, folder: string, port: number, options: PostgresOptions) {
    super();
    this.programs = programs;
    this.folder = folder;
    this.port = port;
    this.#options = options;
  }

  get data(): string {
    return join(this.folder, "data");
  }

  get pid(): number {
    return this.#pid;
  }

  urlOf(database: string): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  /** Runs one of PostgreSQL's programs to its end. */
  run(program: string, args: string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const child = spawn(join(this.programs, program), args, {
        ...account(),
        cwd: "/",
        stdio: ["ignore", "ignore", "pipe"],
      });
      let errors = "";
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        errors += text;
      });
      child.once("error", reject);
      child.once("exit", (code) =>
        code === 0 ? resolve() : reject(new Error(`${program} ended with ${code}: ${errors}`)),
      );
    });
  }

  /**
   * While the server was away, a connection of somebody else's may have got its port, or another process the id that its
   * lock file names: neither lasts, so that a server that ends is started again for a while.
   */
  async start(): Promise<void> {
    const endMs = performance.now() + START_MS_MAX;
    let child = this.#spawn();
    for (;;) {
      try {
        await query(this.urlOf("postgres"), "select 1");
        return;
      } catch (error) {
        const hasEnded = child.exitCode !== null;
        if (performance.now() > endMs)
          throw hasEnded ? new Error(`PostgreSQL ended: ${this.#lastWords()}`) : error;
        await sleep(hasEnded ? 1_000 : 50);
        if (hasEnded) child = this.#spawn();
      }
    }
  }

  #lastWords(): string {
    return readFileSync(join(this.folder, "server.log"), "utf8").split("\n").slice(-6).join(" ");
  }

  #spawn(): ChildProcess {
    const log = openSync(join(this.folder, "server.log"), "a");
    const settings = {
      ...SETTINGS,
      ...this.#options.settings,
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
    };
    const child = spawn(
      join(this.programs, "postgres"),
      [
        "-D",
        this.data,
        "-p",
        String(this.port),
        ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
      ],
      {
        ...account(),
        cwd: "/",
        env: { PATH: process.env.PATH, LC_ALL: "C", TZ: "UTC", ...this.#options.env },
        detached: true,
        stdio: ["ignore", log, log],
      },
    );
    closeSync(log);
    this.#pid = child.pid!;
    own(this.#pid);
    return child;
  }

  async stop(mode: "fast" | "immediate"): Promise<void> {
    if (!isAlive(this.#pid)) return;
    const family = familyOf(this.#pid);
    signal(this.#pid, mode === "fast" ? "SIGINT" : "SIGQUIT");
    if (!(await untilGone(family, GONE_MS_MAX))) await this.kill();
  }

  override async kill(): Promise<void> {
    await super.kill();
    disown(this.#pid);
  }

  async dispose(): Promise<void> {
    if (isAlive(this.#pid)) {
      this.thaw();
      await this.stop("immediate");
    }
    disown(this.#pid);
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

type Embedded = Awaited<ReturnType<typeof startEmbeddedServer>>;

async function startEmbedded(options: PostgresOptions): Promise<PostgresServer> {
  if (options.env)
    throw new Error("the built-in PostgreSQL takes no environment: install Debian's postgresql");
  const folder = mkdtempSync(join(tmpdir(), "queen-faults-pg-"));
  chmodSync(folder, 0o711);
  const start = (port?: number): Promise<Embedded> =>
    startEmbeddedServer({
      dataDir: join(folder, "data"),
      log: () => undefined,
      settings: { ...SETTINGS, ...options.settings },
      ...(port === undefined ? {} : { port }),
    });
  return new EmbeddedPostgres(folder, await start(), start);
}

class EmbeddedPostgres extends Processes implements PostgresServer {
  readonly port: number;
  readonly #folder: string;
  readonly #startOn: (port: number) => Promise<Embedded>;
  #server: Embedded;

  constructor(folder: string, server: Embedded, startOn: (port: number) => Promise<Embedded>) {
    super();
    this.#folder = folder;
    this.#server = server;
    this.#startOn = startOn;
    this.port = server.settings.hosts[0]!.port;
  }

  get pid(): number {
    return this.#server.pid;
  }

  urlOf(database: string): string {
    const { user, password } = this.#server.settings;
    return `postgres://${user}:${encodeURIComponent(password!)}@127.0.0.1:${this.port}/${database}`;
  }

  async stop(mode: "fast" | "immediate"): Promise<void> {
    const family = familyOf(this.pid);
    signal(this.pid, mode === "fast" ? "SIGINT" : "SIGQUIT");
    await untilGone(family, GONE_MS_MAX);
  }

  async start(): Promise<void> {
    await this.#server.stop();
    this.#server = await this.#startOn(this.port);
  }

  async dispose(): Promise<void> {
    this.thaw();
    await this.#server.stop();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
