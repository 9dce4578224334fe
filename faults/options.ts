/** Options are what the command line asks for, read once and checked. */
import { parseArgs } from "node:util";

export interface Options {
  /** Ids of tests, or `mutants`; none: all tests. */
  readonly ids: readonly string[];
  readonly seed: number;
  readonly seconds: number;
  readonly rounds: number;
  readonly isList: boolean;
  readonly isTable: boolean;
  readonly isHelp: boolean;
}

export const USAGE = `usage: npm run faults -- [id …] [option …]

  id               F00 … F38; without any, all of them. Not among them, because of what they need or how long they take:
                   "patroni", a cluster of Debian's Patroni, etcd and HAProxy; "pgbouncer", PgBouncer in transaction
                   mode; "mutants", which breaks each mechanism of the broker on purpose, one by one, and shows that
                   the checker notices
  --seed N         the seed of the first round; it decides about the load and the times of faults (random)
  --seconds S      how long faults and load go on in each test (20)
  --rounds N       rounds of each test, with the seeds N, N + 1, … (1); odd seeds push without transactionIds
  --list           show the tests and end
  --table          write the table of the last results into docs/reliability.md and end`;

export function readOptions(args: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      seed: { type: "string" },
      seconds: { type: "string" },
      rounds: { type: "string" },
      list: { type: "boolean", default: false },
      table: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  return {
    ids: positionals,
    seed: integer("--seed", values.seed, Math.floor(Math.random() * 1_000_000), 0, 2 ** 31 - 1),
    seconds: integer("--seconds", values.seconds, 20, 1, 3_600),
    rounds: integer("--rounds", values.rounds, 1, 1, 1_000),
    isList: values.list,
    isTable: values.table,
    isHelp: values.help,
  };
}

function integer(
  name: string,
  text: string | undefined,
  byDefault: number,
  min: number,
  max: number,
): number {
  const value = text === undefined ? byDefault : Number(text);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new Error(`${name} must be an integer from ${min} to ${max}, got "${text}"`);
}
