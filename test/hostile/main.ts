/**
 * The hostile programme against a broker of its own, with a PostgreSQL of its own:
 *
 *   npm run hostile -- [ids] [--seed N] [--share 0.1]
 *
 * One line per attack: what was tried, what came back. Exits with 1 if anything came back that should not have.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startBrokerProcess } from "../support/broker.ts";
import { PROGRAMME, runAttack } from "./programme.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: "string" }, share: { type: "string", default: "1" } },
});
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const share = Number(values.share);
const chosen = PROGRAMME.filter(({ id }) => positionals.length === 0 || positionals.includes(id));
if (chosen.length === 0 || !Number.isInteger(seed) || !(share > 0 && share <= 1)) {
  console.error(
    `Usage: npm run hostile -- [ids] [--seed N] [--share 0.1]\nids: ${PROGRAMME.map(({ id }) => id).join(" ")}`,
  );
  process.exit(1);
}

console.log(`seed ${seed}; repeat with: npm run hostile -- ${[...positionals, `--seed ${seed}`].join(" ")}`);
const dataDir = mkdtempSync(join(tmpdir(), "queen-hostile-"));
const broker = await startBrokerProcess({ databaseUrl: "", env: { QUEEN_DATA_DIR: dataDir } });
let failed = 0;
try {
  for (const attack of chosen) {
    const startedAtMs = performance.now();
    process.stdout.write(`${attack.id.padEnd(8)} ${attack.what} …\n`);
    const { notes, controlRequests, rssMb } = await runAttack(attack, broker, { seed, share });
    const answers = [...notes.answers].sort((a, b) => b[1] - a[1]).slice(0, 8);
    const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
    console.log(
      `         ${notes.problems.length === 0 ? "held" : "FAILED"}: ${notes.tried} tried in ${seconds} s; ` +
        `${answers.map(([answer, count]) => `${answer} × ${count}`).join(", ")}; ` +
        `${controlRequests} requests beside it; ${rssMb} MB`,
    );
    for (const problem of notes.problems) console.log(`         - ${problem}`);
    if (notes.problems.length > 0) failed += 1;
  }
} finally {
  await broker.stop();
  rmSync(dataDir, { recursive: true, force: true });
}
console.log(failed === 0 ? "all held" : `${failed} of ${chosen.length} failed`);
process.exit(failed === 0 ? 0 : 1);
