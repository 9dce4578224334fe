/** Options are what the command line asks for, read once and checked. */
import { parseArgs } from "node:util";
import type { Padding } from "./messages.ts";
import type { SuiteName } from "./suites/scenario.ts";

export interface Options {
  readonly suite: SuiteName;
  /** Rows of the suite, by id or family. */
  readonly names: readonly string[];
  readonly rounds: number;
  readonly seconds: number;
  readonly warmupSeconds: number;
  readonly databaseUrl: string | null;
  /** Worker processes of the broker; null leaves the broker's own default. */
  readonly workers: number | null;
  readonly padding: Padding;
  /** Sizes of the points of growth; null leaves those of the axis. */
  readonly sizes: readonly number[] | null;
  readonly isQuick: boolean;
  readonly isFull: boolean;
  /** Whether lines go to bench/results. */
  readonly isRecorded: boolean;
  readonly isReport: boolean;
  /** The beginning of the time of the session to report; null is the newest of each suite. */
  readonly session: string | null;
  readonly isList: boolean;
  readonly isHelp: boolean;
}

export const USAGE = `usage: npm run bench -- [scenario …] [option …]
       npm run bench -- --peers [peer …] [option …]
       npm run bench -- growth [axis …] [option …]
       npm run bench -- memory [row …] [option …]
       npm run bench -- --report [--session TIME]

  scenario             S1 … S14, a row such as S7-50-auto, or floors; without any, all of them
  --peers              queues that users would pick instead, in the same run as this one; without names, all of them
  growth               what an operation costs while partitions, groups, retained messages … grow
  memory               what a broker takes, and how soon it serves
  --report             draw the charts and write the tables of docs/benchmarks.md from bench/results
  --rounds N           rounds of each row, in random order (3)
  --seconds N          length of a measured window (8)
  --warmup N           seconds before the window opens (5)
  --database-url URL   a PostgreSQL server to create the databases in; without it an embedded one is started
  --workers N          worker processes of the broker
  --payload KIND       padding of the payloads: plain, which compresses well, or random (plain)
  --sizes N,N,…        for growth: other sizes than those of the axis
  --quick              one short round with fewer messages: shows that it works, not how fast; nothing is recorded
  --full               also S11 with 1,000,000 partitions and S12 with 10,000 consumers
  --session TIME       for --report: the session that began then (2026-11-16T09), not the newest
  --list               show the rows and end`;

const SUITES_BY_WORD: Readonly<Record<string, SuiteName>> = { growth: "growth", memory: "memory" };

export function readOptions(args: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      peers: { type: "boolean", default: false },
      report: { type: "boolean", default: false },
      session: { type: "string" },
      rounds: { type: "string" },
      seconds: { type: "string" },
      warmup: { type: "string" },
      "database-url": { type: "string" },
      workers: { type: "string" },
      payload: { type: "string", default: "plain" },
      sizes: { type: "string" },
      quick: { type: "boolean", default: false },
      full: { type: "boolean", default: false },
      list: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.payload !== "plain" && values.payload !== "random") {
    throw new Error(`--payload must be plain or random, got "${values.payload}"`);
  }
  const byWord = SUITES_BY_WORD[positionals[0] ?? ""];
  if (byWord && values.peers)
    throw new Error(`--peers and ${byWord} are two runs: ask for one after the other`);
  const suite = values.peers ? "peers" : (byWord ?? "scenarios");
  if (values.sizes !== undefined && suite !== "growth") throw new Error("--sizes are those of growth");
  return {
    suite,
    names: byWord ? positionals.slice(1) : positionals,
    rounds: count("--rounds", values.rounds, values.quick ? 1 : 3, 1, 100),
    seconds: quantity("--seconds", values.seconds, values.quick ? 1 : 8, 0.1, 600),
    warmupSeconds: quantity("--warmup", values.warmup, values.quick ? 0.5 : 5, 0, 600),
    databaseUrl: values["database-url"] ?? null,
    workers: values.workers === undefined ? null : count("--workers", values.workers, 1, 1, 64),
    padding: values.payload,
    sizes: values.sizes?.split(",").map((text) => count("--sizes", text, 1, 1, 1_000_000_000)) ?? null,
    isQuick: values.quick,
    isFull: values.full,
    isRecorded: !values.quick,
    isReport: values.report,
    session: values.session ?? null,
    isList: values.list,
    isHelp: values.help,
  };
}

function quantity(
  name: string,
  text: string | undefined,
  byDefault: number,
  min: number,
  max: number,
): number {
  const value = text === undefined ? byDefault : Number(text);
  if (value >= min && value <= max) return value;
  throw new Error(`${name} must be a number from ${min} to ${max}, got "${text}"`);
}

function count(name: string, text: string | undefined, byDefault: number, min: number, max: number): number {
  const value = quantity(name, text, byDefault, min, max);
  if (Number.isInteger(value)) return value;
  throw new Error(`${name} must be an integer, got "${text}"`);
}
