/**
 * The bench measures the broker: it runs each scenario some rounds, in random order, each on a fresh database,
 * checks what was received, and prints medians with their spread. One JSON line per run goes to bench/results.
 *
 *   database server ─┬─▶ per run: create database ──▶ broker ──▶ generator ──▶ figures ──▶ stop, drop
 *                    └─▶ at the end, on Ctrl-C and on failure: stop
 *
 * It ends with 1 if any run failed or received anything but what was sent.
 */
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import { type Options, readOptions, USAGE } from "./options.ts";
import {
  type DatabaseServer,
  runGenerator,
  startBroker,
  startDatabaseServer,
  startFloor,
  type Target,
} from "./processes.ts";
import { describeRun, isValid, listing, Progress, type Run, table } from "./report.ts";
import { FLOOR, quickened, SCENARIOS, type Scenario, selectScenarios } from "./scenarios.ts";

// Preparing, measuring and checking together; the loads keep well below it by themselves.
const RUN_MS_MAX = 15 * 60_000;

class Bench {
  readonly #options: Options;
  readonly #scenarios: readonly Scenario[];
  readonly #progress: Progress;
  readonly #abort: AbortSignal;
  readonly #runs: Run[] = [];
  readonly #record: (run: Run, server: DatabaseServer | undefined) => void;

  constructor(options: Options, progress: Progress, abort: AbortSignal) {
    this.#options = options;
    this.#progress = progress;
    this.#abort = abort;
    this.#scenarios = selectScenarios(options.scenarios, options.isFull);
    this.#record = recorder(options);
  }

  /** Whether every run ended and received exactly what was sent. */
  async run(): Promise<boolean> {
    const needsServer = this.#scenarios.some((scenario) => scenario.id !== FLOOR.id);
    const log = (line: string): void => this.#progress.say(line);
    this.#progress.begin("PostgreSQL");
    const server = needsServer ? await startDatabaseServer(this.#options.databaseUrl, log) : undefined;
    try {
      await this.#runAll(server);
    } finally {
      this.#progress.end();
      await server?.stop();
      if (this.#runs.length > 0) console.log(`\n${table(this.#scenarios, this.#runs)}`);
    }
    return this.#runs.every(isValid);
  }

  async #runAll(server: DatabaseServer | undefined): Promise<void> {
    const { rounds } = this.#options;
    const pairs = shuffled(
      this.#scenarios.flatMap((scenario) =>
        Array.from({ length: rounds }, (_, index) => ({ scenario, round: index + 1 })),
      ),
    );
    for (const [index, { scenario, round }] of pairs.entries()) {
      this.#abort.throwIfAborted();
      this.#progress.begin(`[${index + 1}/${pairs.length}] ${scenario.id} round ${round}/${rounds}`);
      const run = await this.#runOne(scenario, round, server, `bench_${process.pid}_${index + 1}`);
      this.#runs.push(run);
      this.#record(run, server);
      this.#progress.say(describeRun(run));
    }
  }

  async #runOne(
    scenario: Scenario,
    round: number,
    server: DatabaseServer | undefined,
    databaseName: string,
  ): Promise<Run> {
    if (scenario.id === FLOOR.id) return this.#load(scenario, round, await startFloor(), null, null);
    const databaseUrl = await server!.createDatabase(databaseName);
    try {
      const broker = await startBroker(databaseUrl, this.#options.workers);
      return await this.#load(scenario, round, broker, databaseUrl, server!.postmasterPid);
    } finally {
      await server!.dropDatabase(databaseName);
    }
  }

  /** Runs the load against the target and stops the target. A load that fails is a run that failed. */
  async #load(
    scenario: Scenario,
    round: number,
    target: Target,
    databaseUrl: string | null,
    postmasterPid: number | null,
  ): Promise<Run> {
    const { isQuick, seconds, warmupSeconds, padding } = this.#options;
    const load = isQuick ? quickened(scenario.load) : scenario.load;
    try {
      const figures = await runGenerator(
        {
          address: target.address,
          accounted: { brokerPid: target.pid, postmasterPid, databaseUrl },
          load,
          timing: { warmupSeconds, seconds: isQuick ? seconds : Math.max(seconds, scenario.secondsMin ?? 0) },
          padding,
        },
        (phase) => this.#progress.enter(phase),
        AbortSignal.any([this.#abort, AbortSignal.timeout(RUN_MS_MAX)]),
      );
      return { scenario, round, load, figures };
    } catch (error) {
      this.#abort.throwIfAborted();
      return { scenario, round, load, failure: error instanceof Error ? error.message : String(error) };
    } finally {
      await target.stop();
    }
  }
}

/** Writes one line per run, with all that is needed to compare it with a run of another day. */
function recorder(options: Options): (run: Run, server: DatabaseServer | undefined) => void {
  const folder = fileURLToPath(new URL("../results/", import.meta.url));
  const startedAt = new Date().toISOString();
  const machine = {
    cores: cpus().length,
    cpu: cpus()[0]?.model ?? "unknown",
    memoryGb: Math.round(totalmem() / 1024 ** 3),
  };
  const { commit, isDirty } = revision();
  return (run, server) => {
    mkdirSync(folder, { recursive: true });
    const { seconds, warmupSeconds, workers, padding, isQuick, databaseUrl } = options;
    const line = {
      at: new Date().toISOString(),
      session: startedAt,
      commit,
      isDirty,
      scenario: run.scenario.id,
      round: run.round,
      isValid: isValid(run),
      ...(run.failure === undefined ? {} : { failure: run.failure }),
      figures: run.figures && !isValid(run) ? { ...run.figures, perSecond: null } : run.figures,
      load: run.load,
      settings: {
        seconds,
        warmupSeconds,
        workers,
        padding,
        isQuick,
        database: databaseUrl === null ? "embedded" : "given",
      },
      node: process.version,
      postgres: server ? { version: server.version, ...server.settings } : null,
      machine,
    };
    appendFileSync(`${folder}${startedAt.slice(0, 10)}.jsonl`, `${JSON.stringify(line)}\n`);
  };
}

function revision(): { commit: string | null; isDirty: boolean | null } {
  const git = (...args: string[]): string =>
    execFileSync("git", args, {
      cwd: fileURLToPath(new URL("..", import.meta.url)),
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  try {
    // New result files do not make the code another one.
    return {
      commit: git("rev-parse", "HEAD"),
      isDirty: git("status", "--porcelain", "--", ":/", ":(exclude)results") !== "",
    };
  } catch {
    return { commit: null, isDirty: null };
  }
}

/** A random order (Fisher and Yates), so that no scenario always runs on a warm or a tired machine. */
function shuffled<T>(items: readonly T[]): T[] {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last -= 1) {
    const other = Math.floor(Math.random() * (last + 1));
    [result[last], result[other]] = [result[other]!, result[last]!];
  }
  return result;
}

/** The exit code. */
async function main(args: readonly string[]): Promise<number> {
  let options: Options;
  try {
    options = readOptions(args);
    selectScenarios(options.scenarios, options.isFull);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    return 2;
  }
  if (options.isHelp || options.isList) {
    console.log(options.isHelp ? USAGE : listing([FLOOR, ...SCENARIOS]));
    return 0;
  }
  const interruption = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => interruption.abort(new Error(`stopped by ${signal}`)));
  }
  const progress = new Progress(process.stdout);
  try {
    return (await new Bench(options, progress, interruption.signal).run()) ? 0 : 1;
  } catch (error) {
    progress.end();
    console.error(error instanceof Error ? error.message : error);
    return interruption.signal.aborted ? 130 : 1;
  }
}

process.exitCode = await main(process.argv.slice(2));
