/** Options are what the command line asks for, read once and checked. */
import { parseArgs } from "node:util";

export interface Options {
  readonly hours: number;
  readonly seed: number;
  /** Messages per second; undefined: a share of what is found to be the most. */
  readonly rate: number | undefined;
  readonly isHelp: boolean;
}

export const USAGE = `usage: npm run soak -- [option …]

  --hours H        how long load and faults go on (1); starting, draining and checking come on top
  --seed N         decides about the load and the times of faults (random)
  --rate R         messages per second; without it, 30 % of what two brokers do for 20 seconds at their best`;

export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      hours: { type: "string" },
      seed: { type: "string" },
      rate: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const seed = number("--seed", values.seed ?? String(Math.floor(Math.random() * 1_000_000)), 0, 2 ** 31 - 1);
  if (!Number.isInteger(seed)) throw new Error(`--seed must be an integer, got "${values.seed}"`);
  return {
    hours: number("--hours", values.hours ?? "1", 0.01, 1_000),
    seed,
    rate: values.rate === undefined ? undefined : number("--rate", values.rate, 1, 1_000_000),
    isHelp: values.help,
  };
}

function number(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (text.trim() !== "" && value >= min && value <= max) return value;
  throw new Error(`${name} must be a number from ${min} to ${max}, got "${text}"`);
}
