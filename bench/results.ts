/** Results are what runs have measured, a JSON line each in bench/results, with all that is needed to compare them. */
import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import type { Figures } from "./measure.ts";
import type { Options } from "./options.ts";
import type { PeerServer } from "./peers/peer.ts";
import type { DatabaseServer } from "./processes/database-server.ts";
import type { Measured, Scenario, SuiteName } from "./suites/scenario.ts";

/** One run of one scenario. It has no figures if it failed, and no rate if its verdict is wrong. */
export interface Run {
  readonly scenario: Scenario;
  readonly round: number;
  readonly load: Measured;
  readonly figures?: Figures;
  readonly failure?: string;
  /** Why it cannot be measured on this machine, which is no failure. */
  readonly missing?: string;
  /** Of a peer. */
  readonly server?: Pick<PeerServer, "version" | "settings" | "answersAfterFsync">;
}

/** Whether the run's figures count: it ended, and what it received is what was sent. */
export const isValid = (run: Run): run is Run & { figures: Figures } =>
  run.figures !== undefined && (run.figures.verdict?.correct ?? true);

/** How much of the machine its host gave to others, beyond which that would be what is measured. */
export const STOLEN_PERCENT_MAX = 15;

export const stolenPercent = (figures: Pick<Figures, "cost">): number =>
  figures.cost.systemPercent?.steal ?? 0;

/** Whether it is worth measuring again. A run that received something else than was sent is to be told as it is. */
export const isDisturbed = (run: Run): run is Run & { figures: Figures } =>
  isValid(run) && stolenPercent(run.figures) > STOLEN_PERCENT_MAX;

export interface ResultLine {
  readonly at: string;
  /** When the command was started: what was measured together has it in common. */
  readonly session: string;
  readonly suite: SuiteName;
  /** Lines that the session has if it was not ended early. Undefined: nobody noted it. */
  readonly runs?: number;
  readonly commit: string | null;
  readonly isDirty: boolean | null;
  readonly scenario: string;
  readonly round: number;
  readonly isValid: boolean;
  readonly failure?: string;
  readonly missing?: string;
  readonly figures?: Omit<Figures, "perSecond"> & { readonly perSecond: number | null };
  readonly load: Measured;
  readonly server?: Run["server"];
  readonly settings: {
    readonly seconds: number;
    readonly warmupSeconds: number;
    readonly workers: number | null;
    readonly padding: string;
    readonly isQuick: boolean;
    readonly database: "embedded" | "given";
  };
  readonly node: string;
  readonly postgres: ({ readonly version: string } & Readonly<Record<string, string>>) | null;
  readonly machine: { readonly cores: number; readonly cpu: string; readonly memoryGb: number };
}

const FOLDER = fileURLToPath(new URL("../results/", import.meta.url));

/** Makes the lines of one session, and writes those that are to be recorded. */
export class Recorder {
  readonly lines: ResultLine[] = [];
  readonly #options: Options;
  readonly #runs: number;
  readonly #session = new Date().toISOString();
  readonly #revision = revision();

  /** `runs`: those that the session is to have. */
  constructor(options: Options, runs: number) {
    this.#options = options;
    this.#runs = runs;
  }

  record(run: Run, database: DatabaseServer | undefined): void {
    const line = this.#line(run, database);
    this.lines.push(line);
    if (!this.#options.isRecorded) return;
    mkdirSync(FOLDER, { recursive: true });
    appendFileSync(`${FOLDER}${this.#session.slice(0, 10)}.jsonl`, `${JSON.stringify(line)}\n`);
  }

  #line(run: Run, database: DatabaseServer | undefined): ResultLine {
    const { suite, seconds, warmupSeconds, workers, padding, isQuick, databaseUrl } = this.#options;
    const { scenario, round, figures, failure, missing, server } = run;
    return {
      at: new Date().toISOString(),
      session: this.#session,
      suite,
      runs: this.#runs,
      ...this.#revision,
      scenario: scenario.id,
      round,
      isValid: isValid(run),
      ...(failure === undefined ? {} : { failure }),
      ...(missing === undefined ? {} : { missing }),
      ...(figures === undefined ? {} : { figures: isValid(run) ? figures : { ...figures, perSecond: null } }),
      load: run.load,
      ...(server === undefined ? {} : { server }),
      settings: {
        seconds,
        warmupSeconds,
        workers,
        padding,
        isQuick,
        database: databaseUrl === null ? "embedded" : "given",
      },
      node: process.version,
      postgres: database ? { version: database.version, ...database.settings } : null,
      machine: {
        cores: cpus().length,
        cpu: cpus()[0]?.model ?? "unknown",
        memoryGb: Math.round(totalmem() / 1024 ** 3),
      },
    };
  }
}

/** Every line that has been recorded. Lines from before there were suites are of the scenarios. */
export function readResults(folder = FOLDER): ResultLine[] {
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .sort();
  return files.flatMap((name) => parseLines(readFileSync(`${folder}${name}`, "utf8"), name));
}

export function parseLines(text: string, name: string): ResultLine[] {
  return text.split("\n").flatMap((line, index) => {
    if (line.trim() === "") return [];
    try {
      return [{ suite: "scenarios", ...JSON.parse(line) } as ResultLine];
    } catch (error) {
      throw new Error(`${name}, line ${index + 1} is not JSON: repair or remove it`, { cause: error });
    }
  });
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
