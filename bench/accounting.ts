/**
 * Accounting tells what a run has cost: CPU of the generator, of the broker and of PostgreSQL, and bytes of WAL.
 *
 * CPU comes from /proc. A process counts with all its descendants: live ones by their own time, ended ones by
 * the time that their parent collected when it waited for them. Where /proc is missing, or PostgreSQL runs on
 * another machine, those figures are null. WAL is the distance between two `pg_current_wal_lsn()`.
 */
import { readdirSync, readFileSync } from "node:fs";
import { cpus } from "node:os";
import pg from "pg";

export interface Reading {
  readonly atMs: number;
  readonly cpuMs: { generator: number; broker: number | null; postgres: number | null };
  readonly system: SystemTicks | null;
  /** Resident memory of the broker's processes now, and the highest that one of them, a worker, ever had. */
  readonly brokerRssKb: number | null;
  readonly workerPeakRssKb: number | null;
}

/** A reading together with the WAL position, taken when a window opens. */
export interface Opening extends Reading {
  readonly walBytes: number | null;
}

interface SystemTicks {
  readonly total: number;
  readonly idle: number;
  readonly iowait: number;
  readonly steal: number;
}

export interface Shares<T> {
  readonly generator: number;
  readonly broker: T;
  readonly postgres: T;
}

export interface Cost {
  readonly seconds: number;
  readonly cpuSecondsPerMillion: Shares<number | null>;
  readonly cpuPercent: Shares<number | null>;
  /** Of the whole machine; `other` is CPU of processes outside the run, 100 being one core. */
  readonly systemPercent: { idle: number; iowait: number; steal: number; other: number } | null;
  readonly walBytesPerMessage: number | null;
  readonly brokerRssMb: number | null;
  readonly workerPeakRssMb: number | null;
}

export interface Accounted {
  /** Brokers, or the server of a peer; empty where PostgreSQL is the server. */
  readonly brokerPids: readonly number[];
  readonly postmasterPid: number | null;
  readonly databaseUrl: string | null;
}

/** Of what is not accounted for. */
export const NO_COST: Cost = {
  seconds: 0,
  cpuSecondsPerMillion: { generator: 0, broker: null, postgres: null },
  cpuPercent: { generator: 0, broker: null, postgres: null },
  systemPercent: null,
  walBytesPerMessage: null,
  brokerRssMb: null,
  workerPeakRssMb: null,
};

// The unit of /proc/<pid>/stat is USER_HZ, which Linux fixes at 100 a second for programs.
const MS_PER_TICK = 10;
// A kernel can be built without the lists of children; half a process tree would be a wrong figure.
const KNOWS_CHILDREN = readProc(`self/task/${process.pid}/children`) !== null;

export class Accountant {
  readonly #accounted: Accounted;
  #client: pg.Client | undefined;

  constructor(accounted: Accounted) {
    this.#accounted = accounted;
  }

  get brokerPids(): readonly number[] {
    return this.#accounted.brokerPids;
  }

  async start(): Promise<void> {
    if (this.#accounted.databaseUrl === null) return;
    this.#client = new pg.Client({ connectionString: this.#accounted.databaseUrl });
    // A server that goes away is noticed by the next query.
    this.#client.on("error", () => undefined);
    await this.#client.connect();
  }

  async stop(): Promise<void> {
    await this.#client?.end();
    this.#client = undefined;
  }

  async open(): Promise<Opening> {
    const walBytes = await this.#walBytes();
    return { walBytes, ...this.read() };
  }

  read(): Reading {
    const own = process.cpuUsage();
    const { brokerPids, postmasterPid } = this.#accounted;
    return {
      atMs: performance.now(),
      cpuMs: {
        generator: (own.user + own.system) / 1000,
        broker: sumOf(brokerPids.map(treeCpuMs)),
        postgres: postmasterPid === null ? null : treeCpuMs(postmasterPid),
      },
      system: systemTicks(),
      brokerRssKb: sumOf(brokerPids.flatMap((pid) => treeMemoryKb(pid, "VmRSS"))),
      workerPeakRssKb: largestOf(brokerPids.flatMap((pid) => treeMemoryKb(pid, "VmHWM"))),
    };
  }

  /** What lay between the two readings, per message; the WAL position is read now. */
  async cost(from: Opening, to: Reading, messages: number): Promise<Cost> {
    const walBytes = await this.#walBytes();
    const elapsedMs = to.atMs - from.atMs;
    const cpuMs = {
      generator: to.cpuMs.generator - from.cpuMs.generator,
      broker: difference(from.cpuMs.broker, to.cpuMs.broker),
      postgres: difference(from.cpuMs.postgres, to.cpuMs.postgres),
    };
    const perMillion = (ms: number): number => round((ms * 1000) / Math.max(1, messages), 3);
    const percent = (ms: number): number => round((100 * ms) / elapsedMs, 1);
    const walSpent = difference(from.walBytes, walBytes);
    return {
      seconds: round(elapsedMs / 1000, 3),
      cpuSecondsPerMillion: mapShares(cpuMs, perMillion),
      cpuPercent: mapShares(cpuMs, percent),
      systemPercent: systemPercent(from, to),
      walBytesPerMessage: walSpent === null ? null : round(walSpent / Math.max(1, messages), 1),
      brokerRssMb: megabytes(to.brokerRssKb),
      workerPeakRssMb: megabytes(to.workerPeakRssKb),
    };
  }

  async #walBytes(): Promise<number | null> {
    if (!this.#client) return null;
    const result = await this.#client.query<{ bytes: string }>(
      "select pg_current_wal_lsn() - '0/0'::pg_lsn as bytes",
    );
    return Number(result.rows[0]!.bytes);
  }
}

/** The server's main process, if its backends are processes of this machine; otherwise null. */
export async function findPostmaster(client: pg.Client): Promise<number | null> {
  const result = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  const backend = readStat(result.rows[0]!.pid);
  return backend?.command === "postgres" ? backend.parentPid : null;
}

interface ProcessStat {
  readonly command: string;
  readonly parentPid: number;
  readonly ticks: number;
}

/** CPU of the process and of every descendant, ended ones included; null if there is no such process. */
export function treeCpuMs(pid: number): number | null {
  if (!KNOWS_CHILDREN) return null;
  let ticks = 0;
  for (const member of processTree(pid)) ticks += readStat(member)?.ticks ?? 0;
  return readStat(pid) ? ticks * MS_PER_TICK : null;
}

/** Resident memory of the process and of each descendant: now (VmRSS) or at its highest (VmHWM). */
function treeMemoryKb(pid: number, field: "VmRSS" | "VmHWM"): number[] {
  if (!KNOWS_CHILDREN) return [];
  return processTree(pid).flatMap((member) => memoryKb(member, field) ?? []);
}

function memoryKb(pid: number, field: "VmRSS" | "VmHWM"): number | null {
  const match = new RegExp(`${field}:\\s+(\\d+)`).exec(readProc(`${pid}/status`) ?? "");
  return match ? Number(match[1]) : null;
}

/** The resident memory of the process itself and of each of its children; null where /proc is missing. */
export function familyRssKb(pid: number): { own: number; children: number[] } | null {
  const own = memoryKb(pid, "VmRSS");
  if (!KNOWS_CHILDREN || own === null) return null;
  return { own, children: childrenOf(pid).flatMap((child) => memoryKb(child, "VmRSS") ?? []) };
}

function processTree(root: number): number[] {
  const members = [root];
  // The list grows while it is walked: children of children are found in their turn.
  for (const member of members) members.push(...childrenOf(member));
  return members;
}

/** A process may start children from any of its threads, so each thread has a list of its own. */
function childrenOf(pid: number): number[] {
  let threads: string[];
  try {
    threads = readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
  const lists = threads.map((thread) => readProc(`${pid}/task/${thread}/children`) ?? "");
  return lists.join(" ").split(/\s+/).filter(Boolean).map(Number);
}

function readStat(pid: number): ProcessStat | null {
  const text = readProc(`${pid}/stat`);
  if (text === null) return null;
  const nameEnd = text.lastIndexOf(")");
  const fields = text.slice(nameEnd + 2).split(" ");
  // Fields 14 to 17 of proc(5): utime, stime, and the same of ended children that were waited for.
  const ticks = fields.slice(11, 15).reduce((total, field) => total + Number(field), 0);
  return { command: text.slice(text.indexOf("(") + 1, nameEnd), parentPid: Number(fields[1]), ticks };
}

function systemTicks(): SystemTicks | null {
  const line = readProc("stat")?.split("\n")[0];
  if (!line) return null;
  const fields = line.trim().split(/\s+/).slice(1, 9).map(Number);
  return {
    total: fields.reduce((total, field) => total + field, 0),
    idle: fields[3]!,
    iowait: fields[4]!,
    steal: fields[7]!,
  };
}

function systemPercent(from: Reading, to: Reading): Cost["systemPercent"] {
  if (!from.system || !to.system || to.system.total === from.system.total) return null;
  const total = to.system.total - from.system.total;
  const idle = to.system.idle - from.system.idle;
  const iowait = to.system.iowait - from.system.iowait;
  const steal = to.system.steal - from.system.steal;
  const cores = cpus().length;
  const cpuMsOfRun = (reading: Reading): number =>
    reading.cpuMs.generator + (reading.cpuMs.broker ?? 0) + (reading.cpuMs.postgres ?? 0);
  const runPercent = (100 * (cpuMsOfRun(to) - cpuMsOfRun(from))) / (to.atMs - from.atMs);
  const busyPercent = (cores * 100 * (total - idle - iowait - steal)) / total;
  return {
    idle: round((100 * idle) / total, 1),
    iowait: round((100 * iowait) / total, 1),
    steal: round((100 * steal) / total, 1),
    other: round(busyPercent - runPercent, 1),
  };
}

function readProc(path: string): string | null {
  try {
    return readFileSync(`/proc/${path}`, "latin1");
  } catch {
    return null;
  }
}

const difference = (from: number | null, to: number | null): number | null =>
  from === null || to === null ? null : to - from;

const mapShares = (shares: Shares<number | null>, map: (value: number) => number): Shares<number | null> => ({
  generator: map(shares.generator),
  broker: shares.broker === null ? null : map(shares.broker),
  postgres: shares.postgres === null ? null : map(shares.postgres),
});

const megabytes = (kb: number | null): number | null => (kb === null ? null : Math.round(kb / 1024));

const largestOf = (values: readonly number[]): number | null =>
  values.length === 0 ? null : Math.max(...values);

/** Null if there is nothing to add, or something is not known. */
function sumOf(values: readonly (number | null)[]): number | null {
  if (values.length === 0) return null;
  return values.reduce((sum, value) => (sum === null || value === null ? null : sum + value), 0);
}

export const round = (value: number, digits: number): number => Number(value.toFixed(digits));
