/**
 * A release is a state of the schema with a version: migrations, procedures, and the oldest broker that works with
 * them. The files are those of this package; its version is the broker's.
 */
import { readdirSync, readFileSync } from "node:fs";

export interface SqlFile {
  readonly name: string;
  readonly text: string;
}

export interface Release {
  readonly version: string;
  /** Brokers from this version on work with the schema, also those that do not know it. */
  readonly oldestBroker: string;
  readonly migrations: readonly SqlFile[];
  readonly procedures: readonly SqlFile[];
}

// Raised only by a release that takes something away which brokers of that age use (docs/upgrades.md).
const OLDEST_BROKER = "0.1.0";

const SQL = new URL("../../sql/", import.meta.url);
const PACKAGE = new URL("../../package.json", import.meta.url);

function readFolder(folder: string): SqlFile[] {
  return readdirSync(new URL(`${folder}/`, SQL))
    .filter((name) => name.endsWith(".sql"))
    .sort()
    .map((name) => ({
      name: `${folder}/${name}`,
      text: readFileSync(new URL(`${folder}/${name}`, SQL), "utf8"),
    }));
}

/** Tables and their changes: applied once, in order, never edited. */
export const migrations = (): SqlFile[] => readFolder("migrations");

/**
 * One function, trigger or view per file, replaced when its text changes. A function that another one names
 * in a body that is checked at once (`begin atomic`, `return`, a view) comes before it.
 */
export function procedures(): SqlFile[] {
  const first = [
    "message_id",
    "int4_at",
    "fragment_at",
    "offset_at",
    "count_failure",
    "pick_messages",
    "sql_pauses",
    "two_digits",
    "utc_seconds",
    "bury_range",
  ];
  const place = (file: SqlFile): number => {
    const index = first.indexOf(file.name.slice("procedures/".length, -".sql".length));
    return index < 0 ? first.length : index;
  };
  return readFolder("procedures").sort((a, b) => place(a) - place(b));
}

export function release(): Release {
  const { version } = JSON.parse(readFileSync(PACKAGE, "utf8")) as { version: string };
  return { version, oldestBroker: OLDEST_BROKER, migrations: migrations(), procedures: procedures() };
}

/** Below 0: the first is older. What follows the three numbers does not count. */
export function compareVersions(one: string, other: string): number {
  const [a, b] = [numbersOf(one), numbersOf(other)];
  const place = a.findIndex((number, index) => number !== b[index]);
  return place < 0 ? 0 : a[place]! - b[place]!;
}

function numbersOf(version: string): [number, number, number] {
  const [, major, minor, patch] = /^(\d+)\.(\d+)\.(\d+)/.exec(version) ?? [];
  return [Number(major ?? 0), Number(minor ?? 0), Number(patch ?? 0)];
}
