/**
 * The bench runs each row of a suite some rounds, in random order, each on a fresh database and with a fresh server,
 * and checks what was received.
 *
 *   database server ─┬─▶ per run: create database ──▶ brokers, floor or peer ──▶ generator ──▶ figures ──▶ stop, drop
 *                    └─▶ at the end, on Ctrl-C and on failure: stop
 */
import { NO_COST } from "./accounting.ts";
import { measureFsync } from "./floors/fsync-rate.ts";
import type { Job } from "./generator.ts";
import type { Load } from "./loads/index.ts";
import { distribution, type Figures } from "./measure.ts";
import type { Options } from "./options.ts";
import { peerNamed } from "./peers/index.ts";
import { installPackages } from "./peers/packages.ts";
import type { Peer } from "./peers/peer.ts";
import { startBrokers, startHttpFloor, type Target } from "./processes/broker.ts";
import { temporaryFolder } from "./processes/children.ts";
import { type DatabaseServer, startDatabaseServer } from "./processes/database-server.ts";
import { runGenerator } from "./processes/generator.ts";
import { describeRun, type Progress } from "./report/progress.ts";
import { isDisturbed, isValid, type Recorder, type Run, stolenPercent } from "./results.ts";
import { measureStart } from "./start-time.ts";
import { type Measured, quickened, type Scenario, type Suite } from "./suites/scenario.ts";

// Preparing, measuring and checking together; the loads keep well below it by themselves.
const RUN_MS_MAX = 30 * 60_000;

type Outcome = Pick<Run, "figures" | "server" | "missing">;

export class Bench {
  readonly #suite: Suite;
  readonly #options: Options;
  readonly #progress: Progress;
  readonly #recorder: Recorder;
  readonly #abort: AbortSignal;
  #server: DatabaseServer | undefined;

  constructor(suite: Suite, options: Options, progress: Progress, recorder: Recorder, abort: AbortSignal) {
    this.#suite = suite;
    this.#options = options;
    this.#progress = progress;
    this.#recorder = recorder;
    this.#abort = abort;
  }

  /** Whether every run that this machine can do ended and received exactly what was sent. */
  async run(): Promise<boolean> {
    const log = (line: string): void => this.#progress.say(line);
    if (this.#suite.name === "peers") installPackages(log);
    try {
      if (this.#suite.scenarios.some(({ load }) => needsDatabase(load))) {
        this.#progress.begin("PostgreSQL");
        this.#server = await startDatabaseServer(this.#options.databaseUrl, log);
      }
      return await this.#runAll();
    } finally {
      this.#progress.end();
      await this.#server?.stop();
    }
  }

  async #runAll(): Promise<boolean> {
    const { rounds } = this.#options;
    const pairs = shuffled(
      this.#suite.scenarios.flatMap((scenario) =>
        Array.from({ length: rounds }, (_, index) => ({ scenario, round: index + 1, isRepeated: false })),
      ),
    );
    let isAllValid = true;
    // What is put off comes at the end of the same list.
    for (const [index, { scenario, round, isRepeated }] of pairs.entries()) {
      this.#abort.throwIfAborted();
      this.#progress.begin(`[${index + 1}/${pairs.length}] ${scenario.id} round ${round}/${rounds}`);
      const run = await this.#runOne(scenario, round, `bench_${process.pid}_${index + 1}`);
      if (isDisturbed(run) && !isRepeated && !this.#options.isQuick) {
        pairs.push({ scenario, round, isRepeated: true });
        this.#progress.say(`${describeRun(run)}; ${stolenPercent(run.figures)} % stolen: again later`);
        continue;
      }
      if (!isValid(run) && run.missing === undefined) isAllValid = false;
      this.#recorder.record(run, this.#server);
      this.#progress.say(describeRun(run));
    }
    return isAllValid;
  }

  /** A run that fails is a run that failed; only an interruption ends the others. */
  async #runOne(scenario: Scenario, round: number, databaseName: string): Promise<Run> {
    const load = this.#options.isQuick ? quickened(scenario.load) : scenario.load;
    const signal = AbortSignal.any([this.#abort, AbortSignal.timeout(RUN_MS_MAX)]);
    try {
      return { scenario, round, load, ...(await this.#measure(scenario, load, databaseName, signal)) };
    } catch (error) {
      this.#abort.throwIfAborted();
      return { scenario, round, load, failure: error instanceof Error ? error.message : String(error) };
    }
  }

  async #measure(
    scenario: Scenario,
    load: Measured,
    databaseName: string,
    signal: AbortSignal,
  ): Promise<Outcome> {
    if (load.kind === "fsync") {
      const { perSecond, by } = await measureFsync(this.#options.seconds);
      return { figures: plainFigures(perSecond, 1000 / perSecond, by) };
    }
    if (load.kind === "start") {
      const startMs = await measureStart(load.from, signal);
      return { figures: plainFigures(0, startMs, "npm start to the first push") };
    }
    if (!needsDatabase(load)) return this.#load(scenario, load, null, signal);
    const databaseUrl = await this.#server!.createDatabase(databaseName);
    try {
      return await this.#load(scenario, load, databaseUrl, signal);
    } finally {
      await this.#server!.dropDatabase(databaseName);
    }
  }

  /** Starts what is loaded, runs the load, and stops what was started. */
  async #load(
    scenario: Scenario,
    load: Load,
    databaseUrl: string | null,
    signal: AbortSignal,
  ): Promise<Outcome> {
    if (load.kind === "peer")
      return this.#loadPeer(scenario, load, peerNamed(load.peer), databaseUrl, signal);
    if (load.kind === "append") {
      return {
        figures: await this.#generate(scenario, load, { addresses: [], pids: [] }, databaseUrl, signal),
      };
    }
    const target =
      load.kind === "push" && load.isFloor
        ? await startHttpFloor(load.batch)
        : await startBrokers(
            databaseUrl!,
            scenario.topology ?? { brokers: 1, workers: this.#options.workers },
          );
    try {
      return { figures: await this.#generate(scenario, load, target, databaseUrl, signal) };
    } finally {
      await target.stop();
    }
  }

  async #loadPeer(
    scenario: Scenario,
    load: Load,
    peer: Peer,
    databaseUrl: string | null,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const missing = peer.missing();
    if (missing !== null) return { missing };
    const folder = temporaryFolder(peer.name);
    try {
      const started = await peer.startServer({ folder: folder.path, databaseUrl });
      try {
        const { version, settings, answersAfterFsync } = started;
        const figures = await this.#generate(scenario, load, started, databaseUrl, signal);
        return { figures, server: { version, settings, answersAfterFsync } };
      } finally {
        await started.stop();
      }
    } finally {
      folder.remove();
    }
  }

  #generate(
    scenario: Scenario,
    load: Load,
    target: Pick<Target, "addresses" | "pids">,
    databaseUrl: string | null,
    signal: AbortSignal,
  ): Promise<Figures> {
    const { isQuick, padding } = this.#options;
    const atLeast = (option: number, min = 0): number => Math.max(option, isQuick ? 0 : min);
    const seconds = atLeast(this.#options.seconds, scenario.secondsMin);
    const warmupSeconds = atLeast(this.#options.warmupSeconds, scenario.warmupSecondsMin);
    const postmasterPid = databaseUrl === null ? null : (this.#server?.postmasterPid ?? null);
    const job: Job = {
      addresses: target.addresses,
      accounted: { brokerPids: target.pids, postmasterPid, databaseUrl },
      load,
      timing: { warmupSeconds, seconds },
      padding,
    };
    return runGenerator(job, (phase) => this.#progress.enter(phase), signal);
  }
}

function needsDatabase(load: Measured): boolean {
  if (load.kind === "fsync" || load.kind === "start") return false;
  if (load.kind === "peer") return peerNamed(load.peer).usesPostgres;
  return !(load.kind === "push" && load.isFloor);
}

const plainFigures = (perSecond: number, ms: number, note: string): Figures => ({
  messages: 0,
  perSecond,
  latencyMs: distribution([ms]),
  cost: NO_COST,
  verdict: null,
  extra: {},
  errors: {},
  note,
});

/** A random order (Fisher and Yates), so that no row always runs on a warm or a tired machine. */
function shuffled<T>(items: readonly T[]): T[] {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last -= 1) {
    const other = Math.floor(Math.random() * (last + 1));
    [result[last], result[other]] = [result[other]!, result[last]!];
  }
  return result;
}
