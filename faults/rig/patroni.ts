/**
 * A Patroni cluster on this machine: one etcd, three nodes with PostgreSQL, synchronous replication, and HAProxy,
 * which sends its clients to the node whose Patroni says that it is the primary. All of it is Debian's, runs in a
 * temporary folder on 127.0.0.1, and ends with the run.
 */
import { spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@queen/test/support/broker";
import { until } from "@queen/test/support/moments";
import { account, installedPrograms } from "./postgres.ts";
import { disown, familyOf, isAlive, own, signal, untilGone } from "./processes.ts";

const PROGRAMS = { etcd: "/usr/bin/etcd", patroni: "/usr/bin/patroni", haproxy: "/usr/sbin/haproxy" };
const PACKAGES = "apt-get install postgresql patroni etcd-server haproxy";
const NODES = 3;
const START_MS_MAX = 120_000;
const ANSWER_MS_MAX = 1_000;
// The shortest that Patroni takes: after so long without a word from its primary it elects another one. The other
// two are how often it looks and how long it tries to, in proportion.
const TTL_SECONDS = 20;
const LOOP_SECONDS = 5;
const RETRY_SECONDS = 5;

interface Node {
  readonly name: string;
  readonly folder: string;
  readonly port: number;
  readonly restPort: number;
  pid: number;
}

export interface Member {
  readonly name: string;
  readonly role: string;
  readonly state: string;
}

export class PatroniCluster {
  readonly #folder: string;
  readonly #programs: string;
  readonly #nodes: Node[] = [];
  #etcdPid = -1;
  #etcdPort = 0;
  #haproxyPid = -1;
  #haproxyPort = 0;
  readonly #endWithProcess = (): void => this.#killAll();

  static async start(tell: (phase: string) => void): Promise<PatroniCluster> {
    const programs = installedPrograms();
    if (programs === undefined || Object.values(PROGRAMS).some((path) => !existsSync(path)))
      throw new Error(`a Patroni cluster needs Debian's packages: ${PACKAGES}`);
    const cluster = new PatroniCluster(programs);
    try {
      tell("starting etcd");
      await cluster.#startEtcd();
      for (let index = 0; index < NODES; index++) {
        tell(`starting node ${index + 1} of ${NODES} with Patroni`);
        await cluster.#addNode(`n${index + 1}`);
      }
      tell("waiting for synchronous replication");
      await cluster.untilWhole();
      tell("starting HAProxy");
      await cluster.#startHaproxy();
      return cluster;
    } catch (error) {
      await cluster.dispose();
      throw error;
    }
  }

  private constructor(programs: string) {
    this.#programs = programs;
    this.#folder = mkdtempSync(join(tmpdir(), "queen-faults-patroni-"));
    chmodSync(this.#folder, 0o711);
    // PostgreSQL is no child of Patroni's: its process is known by the file in its folder only.
    process.on("exit", this.#endWithProcess);
  }

  /** Through HAProxy, which knows the primary. */
  urlOf(database: string): string {
    return `postgres://postgres@127.0.0.1:${this.#haproxyPort}/${database}`;
  }

  /** All nodes: who connects looks for the primary. */
  directUrlOf(database: string): string {
    return `postgres://postgres@${this.#nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}/${database}`;
  }

  /** The name of the node whose Patroni says that it is the primary; undefined: none does. */
  async primary(): Promise<string | undefined> {
    const answers = await Promise.all(
      this.#nodes.map(async ({ name, restPort }) =>
        (await ask(restPort, "/primary")) === 200 ? name : undefined,
      ),
    );
    return answers.find((name) => name !== undefined);
  }

  /** Resolves when there is a primary, a synchronous standby, and another standby that streams. */
  async untilWhole(): Promise<void> {
    await until(
      "the cluster is whole",
      async () => {
        const primary = await this.primary();
        if (primary === undefined) return false;
        const members = await this.#members(this.#node(primary));
        const isFine = ({ role, state }: Member): boolean =>
          role === "leader" ? state === "running" : ["running", "streaming"].includes(state);
        return (
          members.length === NODES &&
          members.every(isFine) &&
          members.some(({ role }) => role === "sync_standby")
        );
      },
      START_MS_MAX,
    );
  }

  /** Asks Patroni to make another node the primary, in order. */
  async switchOver(): Promise<void> {
    const primary = await this.primary();
    if (primary === undefined) throw new Error("there is no primary to switch over from");
    const body = JSON.stringify({ leader: primary });
    const status = await ask(this.#node(primary).restPort, "/switchover", { body, msMax: 60_000 });
    if (status !== 200) throw new Error(`Patroni answered the switchover with ${status}`);
  }

  /** Kills Patroni and PostgreSQL of the primary at once, as when its machine is lost. Returns its name. */
  async killPrimary(): Promise<string> {
    const primary = await this.primary();
    if (primary === undefined) throw new Error("there is no primary to kill");
    await this.#kill(this.#node(primary));
    return primary;
  }

  /** Starts Patroni again on a node that was killed. */
  revive(name: string): void {
    this.#startNode(this.#node(name));
  }

  async dispose(): Promise<void> {
    process.off("exit", this.#endWithProcess);
    const pids = [this.#haproxyPid, this.#etcdPid, ...this.#nodes.flatMap(pidsOf)].filter((pid) => pid > 0);
    this.#killAll();
    await untilGone(pids, 10_000);
    for (const pid of pids) disown(pid);
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  #killAll(): void {
    for (const node of this.#nodes) for (const pid of pidsOf(node)) signal(pid, "SIGKILL");
    for (const pid of [this.#haproxyPid, this.#etcdPid]) if (pid > 0) signal(pid, "SIGKILL");
  }

  async #kill(node: Node): Promise<void> {
    const pids = pidsOf(node);
    for (const pid of pids) signal(pid, "SIGKILL");
    if (!(await untilGone(pids, 10_000))) throw new Error(`the processes of ${node.name} did not end`);
    disown(node.pid);
    node.pid = -1;
  }

  #node(name: string): Node {
    return this.#nodes.find((node) => node.name === name)!;
  }

  async #members({ restPort }: Node): Promise<readonly Member[]> {
    const answer = await read(restPort, "/cluster");
    return answer === undefined ? [] : (JSON.parse(answer) as { members: Member[] }).members;
  }

  /** A folder that only the server's account may look into. */
  #makeFolder(name: string): string {
    const folder = join(this.#folder, name);
    mkdirSync(folder, { mode: 0o700 });
    const { uid, gid } = account();
    if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
    return folder;
  }

  #spawn(program: string, args: readonly string[], name: string): number {
    const log = openSync(join(this.#folder, `${name}.log`), "a");
    const child = spawn(program, args, {
      ...account(),
      cwd: "/",
      env: { PATH: process.env.PATH, HOME: this.#folder, LC_ALL: "C.UTF-8", TZ: "UTC" },
      detached: true,
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    own(child.pid!);
    return child.pid!;
  }

  async #startEtcd(): Promise<void> {
    this.#etcdPort = await freePort();
    const clients = `http://127.0.0.1:${this.#etcdPort}`;
    const peers = `http://127.0.0.1:${await freePort()}`;
    const options = {
      name: "queen",
      "data-dir": this.#makeFolder("etcd"),
      "listen-client-urls": clients,
      "advertise-client-urls": clients,
      "listen-peer-urls": peers,
      "initial-advertise-peer-urls": peers,
      "initial-cluster": `queen=${peers}`,
    };
    const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
    this.#etcdPid = this.#spawn(PROGRAMS.etcd, args, "etcd");
    await until("etcd answers", async () => (await ask(this.#etcdPort, "/health")) === 200, START_MS_MAX);
  }

  async #addNode(name: string): Promise<void> {
    const folder = this.#makeFolder(name);
    const node: Node = { name, folder, port: await freePort(), restPort: await freePort(), pid: -1 };
    const settings = {
      scope: "queen",
      name,
      restapi: { listen: `127.0.0.1:${node.restPort}`, connect_address: `127.0.0.1:${node.restPort}` },
      etcd3: { hosts: [`127.0.0.1:${this.#etcdPort}`] },
      bootstrap: {
        dcs: {
          ttl: TTL_SECONDS,
          loop_wait: LOOP_SECONDS,
          retry_timeout: RETRY_SECONDS,
          synchronous_mode: true,
          postgresql: {
            use_pg_rewind: true,
            parameters: { max_connections: 200, max_prepared_transactions: 10 },
          },
        },
        initdb: [{ encoding: "UTF8" }, { locale: "C" }],
      },
      postgresql: {
        listen: `127.0.0.1:${node.port}`,
        connect_address: `127.0.0.1:${node.port}`,
        data_dir: join(folder, "data"),
        bin_dir: this.#programs,
        pgpass: join(folder, "pgpass"),
        pg_hba: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
        parameters: { unix_socket_directories: folder },
        authentication: {
          superuser: { username: "postgres", password: "queen" },
          replication: { username: "replicator", password: "queen" },
        },
      },
    };
    const file = join(this.#folder, `${name}.yml`);
    writeFileSync(file, JSON.stringify(settings, null, 2)); // JSON is YAML, too
    chmodSync(file, 0o644);
    this.#nodes.push(node);
    this.#startNode(node);
    // The first one makes the cluster; the others copy it.
    await until(`${name} runs`, async () => (await ask(node.restPort, "/health")) === 200, START_MS_MAX);
  }

  #startNode(node: Node): void {
    node.pid = this.#spawn(PROGRAMS.patroni, [join(this.#folder, `${node.name}.yml`)], node.name);
  }

  async #startHaproxy(): Promise<void> {
    this.#haproxyPort = await freePort();
    const servers = this.#nodes.map(
      ({ name, port, restPort }) => `  server ${name} 127.0.0.1:${port} maxconn 200 check port ${restPort}`,
    );
    const text = `global
  maxconn 1000
defaults
  mode tcp
  retries 2
  timeout client 30m
  timeout connect 4s
  timeout server 30m
  timeout check 5s
listen primary
  bind 127.0.0.1:${this.#haproxyPort}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join("\n")}
`;
    const file = join(this.#folder, "haproxy.cfg");
    writeFileSync(file, text);
    chmodSync(file, 0o644);
    this.#haproxyPid = this.#spawn(PROGRAMS.haproxy, ["-db", "-f", file], "haproxy");
  }
}

/** Patroni's processes and those of its PostgreSQL. */
function pidsOf(node: Node): number[] {
  let postmaster = -1;
  try {
    postmaster = Number(readFileSync(join(node.folder, "data", "postmaster.pid"), "utf8").split("\n")[0]);
  } catch {} // it is not started, or ended in order
  return [node.pid, postmaster].filter((pid) => pid > 0 && isAlive(pid)).flatMap(familyOf);
}

/** The status of the answer; undefined: there was none. */
async function ask(
  port: number,
  path: string,
  { body, msMax = ANSWER_MS_MAX }: { body?: string; msMax?: number } = {},
): Promise<number | undefined> {
  return (await exchange(port, path, body, msMax))?.status;
}

async function read(port: number, path: string): Promise<string | undefined> {
  return (await exchange(port, path, undefined, ANSWER_MS_MAX))?.text;
}

function exchange(
  port: number,
  path: string,
  body: string | undefined,
  msMax: number,
): Promise<{ status: number; text: string } | undefined> {
  return new Promise((resolve) => {
    const method = body === undefined ? "GET" : "POST";
    const sent = request(
      { host: "127.0.0.1", port, path, method, timeout: msMax, agent: false },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        answer.once("error", () => resolve(undefined));
        answer.once("end", () => resolve({ status: answer.statusCode!, text }));
      },
    );
    sent.once("timeout", () => sent.destroy());
    sent.once("error", () => resolve(undefined));
    sent.end(body);
  });
}
