/**
 * The hostile programme against a broker of its own, with a PostgreSQL of its own:
 *
 *   npm run hostile -- [ids] [--seed N] [--share 0.1] [--report]
 *
 * Two lines per attack: what was tried, what came back. With --report the table in docs/security.md is written
 * anew. Exits with 1 if anything came back that should not have.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startEmbeddedServer } from "@queen/broker";
import { startSystem } from "../support/system.ts";
import { type AttackResult, PROGRAMME, runAttack } from "./programme.ts";
import { answersOf, writeReport } from "./report.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: "string" }, share: { type: "string", default: "1" }, report: { type: "boolean" } },
});
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const share = Number(values.share);
const chosen = PROGRAMME.filter(({ id }) => positionals.length === 0 || positionals.includes(id));
if (chosen.length === 0 || !Number.isInteger(seed) || !(share > 0 && share <= 1)) {
  console.error(
    "Usage: npm run hostile -- [ids] [--seed N] [--share 0.1] [--report]\n" +
      `ids: ${PROGRAMME.map(({ id }) => id).join(" ")}`,
  );
  process.exit(1);
}

console.log(`seed ${seed}; repeat with: npm run hostile -- ${[...positionals, `--seed ${seed}`].join(" ")}`);
const folder = mkdtempSync(join(tmpdir(), "queen-hostile-"));
chmodSync(folder, 0o711); // as root, PostgreSQL runs as another user, who must get in
const server = await startEmbeddedServer({ dataDir: join(folder, "data"), log: () => undefined });
const { hosts, user, password, database } = server.settings;
process.env.QUEEN_TEST_DATABASE_URL = `postgres://${user}:${password}@127.0.0.1:${hosts[0]!.port}/${database}`;
const results: AttackResult[] = [];
try {
  const system = await startSystem({ NUM_WORKERS: "1" });
  for (const attack of chosen) {
    const startedAtMs = performance.now();
    process.stdout.write(`${attack.id.padEnd(8)} ${attack.what} …\n`);
    const result = await runAttack(attack, system, { seed, share });
    const { notes, control, rssMb } = result;
    const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
    console.log(
      `         ${notes.problems.length === 0 ? "held" : "FAILED"}: ${notes.tried} tried in ${seconds} s; ` +
        `${answersOf(result)}; ${control.requests} requests beside it, 99 % within ${control.p99Ms.toFixed(0)} ms; ${rssMb[0]} to ${rssMb[1]} MB`,
    );
    for (const problem of notes.problems) console.log(`         - ${problem}`);
    results.push(result);
  }
  await system.stop();
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}
if (values.report) writeReport(results, seed);
const failed = results.filter(({ notes }) => notes.problems.length > 0).length;
console.log(failed === 0 ? "all held" : `${failed} of ${chosen.length} failed`);
process.exit(failed === 0 ? 0 : 1);
