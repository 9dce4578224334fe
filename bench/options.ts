/** Options are what the command line asks for, read once and checked. */
import { parseArgs } from "node:util";
import type { Padding } from "./messages.ts";

export interface Options {
  readonly scenarios: readonly string[];
  readonly rounds: number;
  readonly seconds: number;
  readonly warmupSeconds: number;
  readonly databaseUrl: string | null;
  /** Worker processes of the broker; null leaves the broker's own default. */
  readonly workers: number | null;
  readonly padding: Padding;
  readonly isQuick: boolean;
  readonly isFull: boolean;
  readonly isList: boolean;
  readonly isHelp: boolean;
}

export const USAGE = `usage: npm run bench -- [scenario …] [option …]

  scenario             S1 … S13, a row such as S7-50-auto, or HTTP for the floor; without any, all of them
  --rounds N           rounds of each scenario, in random order (3)
  --seconds N          length of a measured window (8)
  --warmup N           seconds before the window opens (2)
  --database-url URL   a PostgreSQL server to create the databases in; without it an embedded one is started
  --workers N          worker processes of the broker
  --payload KIND       padding of the payloads: plain, which compresses well, or random (plain)
  --quick              one short round with fewer messages: shows that it works, not how fast
  --full               also S11 with 1,000,000 partitions and S12 with 10,000 consumers
  --list               show the scenarios and end`;

export function readOptions(args: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      rounds: { type: "string" },
      seconds: { type: "string" },
      warmup: { type: "string" },
      "database-url": { type: "string" },
      workers: { type: "string" },
      payload: { type: "string", default: "plain" },
      quick: { type: "boolean", default: false },
      full: { type: "boolean", default: false },
      list: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.payload !== "plain" && values.payload !== "random") {
    throw new Error(`--payload must be plain or random, got "${values.payload}"`);
  }
  return {
    scenarios: positionals,
    rounds: count("--rounds", values.rounds, values.quick ? 1 : 3, 1, 100),
    seconds: quantity("--seconds", values.seconds, values.quick ? 1.5 : 8, 0.1, 600),
    warmupSeconds: quantity("--warmup", values.warmup, values.quick ? 0.5 : 2, 0, 600),
    databaseUrl: values["database-url"] ?? null,
    workers: values.workers === undefined ? null : count("--workers", values.workers, 1, 1, 64),
    padding: values.payload,
    isQuick: values.quick,
    isFull: values.full,
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
