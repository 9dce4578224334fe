/** What the command line says about API keys. */
import { parseArgs } from "node:util";
import { isRole, ROLES, type Role } from "../access/roles.ts";
import { ConfigError } from "../config.ts";

export type KeysOrder = { readonly json: boolean } & (
  | { readonly action: "help" }
  | { readonly action: "list" }
  | { readonly action: "revoke"; readonly id: number }
  | {
      readonly action: "create";
      readonly name: string;
      readonly role: Role;
      /** Undefined: every queue. */
      readonly queues: readonly string[] | undefined;
      /** Undefined: never. */
      readonly expiresAt: Date | undefined;
    }
);

export const KEYS_HELP = `API keys, for those without an identity provider

Usage: queen-broker keys create --name NAME --role ROLE [--queues PATTERN]... [--expires WHEN] [--json]
       queen-broker keys list [--json]
       queen-broker keys revoke ID [--json]

  --name NAME        Who or what uses the key; stamped on the messages that it pushes.
  --role ROLE        ${ROLES.join(", ")}.
  --queues PATTERN   Queues that it may use, such as 'orders.*'; repeated, or with commas. Without it: every queue.
  --expires WHEN     After a while, as in 12h, 30d, 8w or 1y, or at a time, as in 2030-01-01T00:00:00Z. Without it: never.
  --json             For scripts.

The command works on the database itself, which it finds as the broker does (DATABASE_URL, PG_HOST, PGHOST,
QUEEN_DATA_DIR), whether a broker runs or not. Brokers ask for keys where QUEEN_API_KEYS or QUEEN_ADMIN_KEY is set.
`;

const OPTIONS = {
  name: { type: "string" },
  role: { type: "string" },
  queues: { type: "string", multiple: true },
  expires: { type: "string" },
  json: { type: "boolean" },
  help: { type: "boolean" },
} as const;

const NAME_LENGTH_MAX = 255;
const QUEUES_MAX = 100;
const UNIT_MS: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
  y: 365 * 86_400_000,
};

/** Throws a ConfigError that names every mistake. */
export function parseKeysArguments(argv: readonly string[], nowMs: number): KeysOrder {
  const { values, positionals } = parse(argv);
  const json = values.json === true;
  const [action, id, ...more] = positionals;
  if (values.help || (action === undefined && argv.length === 0)) return { action: "help", json };
  const problems: string[] = [];
  const only = (...allowed: string[]): void => {
    for (const name of Object.keys(values)) {
      if (![...allowed, "json"].includes(name)) problems.push(`keys ${action} takes no --${name}`);
    }
  };
  let order: KeysOrder = { action: "list", json };
  if (action === "list") only();
  else if (action === "revoke") {
    only();
    if (!/^\d{1,15}$/.test(id ?? ""))
      problems.push("keys revoke needs the id of a key; keys list shows them");
    order = { action, id: Number(id), json };
  } else if (action === "create") {
    only("name", "role", "queues", "expires");
    order = { action, ...newKey(values, nowMs, problems), json };
  } else
    problems.push(
      `${action ? `"${action}" is no command` : "A command is missing"}: keys takes create, list or revoke`,
    );
  const tooMany = action === "revoke" ? more : [id, ...more].filter((each) => each !== undefined);
  for (const extra of tooMany) problems.push(`Unexpected argument "${extra}"; see keys --help`);
  if (problems.length > 0) throw new ConfigError(problems);
  return order;
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    const [sentence] = (error as Error).message.split(". ");
    throw new ConfigError([`${sentence}; see keys --help`]);
  }
}

function newKey(
  values: { name?: string; role?: string; queues?: string[]; expires?: string },
  nowMs: number,
  problems: string[],
): { name: string; role: Role; queues: readonly string[] | undefined; expiresAt: Date | undefined } {
  const { name = "", role } = values;
  if (name === "" || [...name].length > NAME_LENGTH_MAX)
    problems.push(`--name is needed, with 1 to ${NAME_LENGTH_MAX} characters, as in --name billing`);
  if (!isRole(role))
    problems.push(`--role must be one of ${ROLES.join(", ")}${role ? `, got "${role}"` : ""}`);
  const queues = values.queues?.flatMap((each) => each.split(",")).map((each) => each.trim());
  if (queues?.some((each) => each === "" || [...each].length > NAME_LENGTH_MAX))
    problems.push(
      `--queues must be patterns of 1 to ${NAME_LENGTH_MAX} characters, as in --queues 'orders.*'`,
    );
  if (queues && queues.length > QUEUES_MAX) problems.push(`--queues takes ${QUEUES_MAX} patterns at most`);
  const expiresAt = values.expires === undefined ? undefined : timeOf(values.expires, nowMs);
  if (values.expires !== undefined && !expiresAt)
    problems.push(
      `--expires must be a while, as in 30d, or a time to come, as in 2030-01-01T00:00:00Z, got "${values.expires}"`,
    );
  return { name, role: role as Role, queues, expiresAt };
}

/** Undefined: the text means no time to come. */
function timeOf(text: string, nowMs: number): Date | undefined {
  const [, count, unit] = /^(\d{1,6})([mhdwy])$/.exec(text) ?? [];
  const ms = unit ? nowMs + Number(count) * UNIT_MS[unit]! : Date.parse(text);
  const isTime = /^\d{4}-/.test(text) || unit !== undefined;
  // Beyond, neither JavaScript nor PostgreSQL writes a year with four digits.
  return isTime && ms > nowMs && ms < Date.UTC(9999, 0) ? new Date(ms) : undefined;
}
