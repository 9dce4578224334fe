/**
 * Asks the registry for known faults of what is shipped (`npm audit`).
 *
 *   node scripts/audit.mjs    exits with 1 where a fault is high or critical
 *
 * A registry that cannot be reached, or a mirror that answers no audits, is said and fails nothing.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const SERIOUS = ["high", "critical"];
const SECONDS_MAX = 20;

const { stdout, error } = spawnSync(
  "npm",
  ["audit", "--json", "--omit=dev", "--fetch-retries=0", `--fetch-timeout=${SECONDS_MAX * 1000}`],
  { cwd: fileURLToPath(new URL("../", import.meta.url)), encoding: "utf8", timeout: 2 * SECONDS_MAX * 1000 },
);
const report = parsed(stdout);
if (report?.vulnerabilities === undefined) {
  console.log(
    `audit: nothing was checked, the registry gives no answer (${report?.message ?? error?.message ?? "none"})`,
  );
} else {
  const found = Object.values(report.vulnerabilities);
  for (const { name, severity, range, fixAvailable } of found) {
    const fix = fixAvailable ? "npm audit fix mends it" : "there is no fix yet";
    console.log(`audit: ${name} ${range}: ${severity}; ${fix}`);
  }
  const serious = found.filter(({ severity }) => SERIOUS.includes(severity)).length;
  console.log(`audit: ${found.length} packages with known faults, ${serious} of them high or critical`);
  process.exitCode = serious > 0 ? 1 : 0;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
