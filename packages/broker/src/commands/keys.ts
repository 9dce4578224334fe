/**
 * API keys from the command line: the way to the first key where nobody has one yet. Who can read the
 * database's password may do anything with it in any case, so nobody is asked for a role here; what was done
 * is in the audit log.
 */
import { hostname, userInfo } from "node:os";
import { BrokerError } from "@queen/protocol";
import { type Config, ConfigError } from "../config.ts";
import { ApiKeys, type ListedApiKeyRow } from "../control/api-keys.ts";
import { AuditEntries } from "../control/audit-entries.ts";
import { isoMilliseconds, unixMilliseconds } from "../operations/timestamp.ts";
import type { DatabaseSettings } from "../postgres/database-settings.ts";
import { KEYS_HELP, type KeysOrder, parseKeysArguments } from "./keys-arguments.ts";
import { textTable } from "./text-table.ts";
import { type UseSession, VisitError, visitDatabase } from "./visit-database.ts";

export interface CommandOutput {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
}

type Change = { readonly action: string; readonly target: string; readonly status: number };

/** Takes the arguments after `keys`. Resolves with the exit code; every mistake is a sentence on stderr. */
export async function keysCommand(
  argv: readonly string[],
  settings: () => { readonly config: Config; readonly database: DatabaseSettings | undefined },
  output: CommandOutput,
): Promise<number> {
  try {
    const order = parseKeysArguments(argv, Date.now());
    if (order.action === "help") output.stdout.write(KEYS_HELP);
    else {
      const { config, database } = settings();
      const text = await visitDatabase(config, database, (use) => carryOut(order, use));
      output.stdout.write(text);
    }
    return 0;
  } catch (error) {
    const isSaid = error instanceof VisitError || error instanceof BrokerError;
    const problems =
      error instanceof ConfigError
        ? error.problems
        : [isSaid ? error.message : String((error as Error).stack)];
    for (const problem of problems) output.stderr.write(`queen-broker: ${problem}\n`);
    return 1;
  }
}

async function carryOut(order: Exclude<KeysOrder, { action: "help" }>, use: UseSession): Promise<string> {
  const keys = new ApiKeys(use);
  const actor = `command line (${userInfo().username}@${hostname()})`;
  const audit = async (change: Change): Promise<void> => {
    const at = new Date().toISOString();
    await new AuditEntries(use).write([{ ...change, actor, address: "", at, times: 1 }]);
  };
  if (order.action === "list") {
    const rows = await keys.list();
    return order.json ? jsonLine({ keys: rows.map(asJson) }) : listText(rows, Date.now());
  }
  if (order.action === "revoke") {
    const { id } = order;
    await keys.revoke(id).catch((error: unknown) => {
      if (!(error instanceof BrokerError)) throw error;
      throw new VisitError(`There is no key ${id}; keys list shows them.`);
    });
    await audit({ action: "keys revoke", target: `key=${id}`, status: 200 });
    if (order.json) return jsonLine({ revoked: true, id: String(id) });
    return `Key ${id} is revoked; brokers refuse it within a second.\n`;
  }
  const { name, role, queues } = order;
  const expiresAt = order.expiresAt?.toISOString();
  const made = await keys.make({ name, role, queues, expiresAt, createdBy: actor });
  await audit({ action: "keys create", target: `key=${made.id} name=${name}`, status: 201 });
  const shown = {
    id: String(made.id),
    name,
    role,
    queues: queues ?? null,
    createdAt: isoMilliseconds(made.createdAtUs),
    expiresAt: expiresAt ?? null,
    key: made.key,
  };
  if (order.json) return jsonLine(shown);
  const where = queues ? `queues ${queues.join(", ")}` : "every queue";
  return `Key ${made.id} (${name}) has the role ${role} for ${where} and expires ${expiresAt ?? "never"}.
It is shown this once. Send it with each request as  Authorization: Bearer <key>

${made.key}
`;
}

const jsonLine = (value: unknown): string => `${JSON.stringify(value)}\n`;

const timeOrNull = (us: number | null): string | null => (us === null ? null : isoMilliseconds(us));

function asJson({ id, createdAtUs, expiresAtUs, revokedAtUs, ...row }: ListedApiKeyRow): object {
  return {
    id: String(id),
    ...row,
    createdAt: isoMilliseconds(createdAtUs),
    expiresAt: timeOrNull(expiresAtUs),
    revokedAt: timeOrNull(revokedAtUs),
  };
}

function listText(rows: readonly ListedApiKeyRow[], nowMs: number): string {
  if (rows.length === 0) return "There are no keys yet; keys create makes one.\n";
  const state = ({ revokedAtUs, expiresAtUs }: ListedApiKeyRow): string => {
    if (revokedAtUs !== null) return "revoked";
    return expiresAtUs !== null && unixMilliseconds(expiresAtUs) <= nowMs ? "expired" : "valid";
  };
  return textTable(
    ["ID", "NAME", "ROLE", "QUEUES", "STATE", "EXPIRES", "CREATED", "BY"],
    rows.map((row) => [
      String(row.id),
      row.name,
      row.role,
      row.queues?.join(",") ?? "*",
      state(row),
      timeOrNull(row.expiresAtUs) ?? "never",
      isoMilliseconds(row.createdAtUs),
      row.createdBy,
    ]),
  );
}
