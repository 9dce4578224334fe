/** The client in Bun and Deno, with the program that Node runs as well. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startTestQueen } from "@queen/testing";

const FOLDER = new URL("../../runtimes/", import.meta.url);
const PROGRAM = fileURLToPath(new URL("program.mjs", FOLDER));
const CLIENT = new URL("../src/index.js", import.meta.url).href;

/** The program that a package of this platform carries. */
function carried(scope: string, file: string): string | undefined {
  try {
    const folder = new URL(`node_modules/${scope}/`, FOLDER);
    return readdirSync(folder)
      .map((name) => fileURLToPath(new URL(`${name}/${file}`, folder)))
      .at(0);
  } catch {
    return undefined;
  }
}

const RUNTIMES = [
  { name: "Node", file: process.execPath, args: [] },
  { name: "Bun", file: carried("@oven", "bin/bun"), args: ["run"] },
  {
    name: "Deno",
    file: carried("@deno", "deno"),
    args: ["run", "--allow-net", "--allow-read", "--allow-env"],
  },
];

for (const { name, file, args } of RUNTIMES) {
  const skip = file === undefined && "Bun and Deno are not there: npm ci --prefix packages/client/runtimes";
  test(`a program pushes, consumes, iterates, transacts and buffers in ${name}`, {
    skip,
  }, async (context) => {
    const queen = await startTestQueen({ env: { QUEEN_LEASE_SWEEP_INTERVAL_MS: "200" } });
    context.after(() => queen.stop());
    const run = await promisify(execFile)(file!, [...args, PROGRAM, CLIENT, queen.url]);
    assert.deepEqual(JSON.parse(run.stdout), {
      status: "queued",
      deliveries: 1,
      consumed: { completed: 1, failed: 0 },
      left: 0,
      iterated: [1, 2],
      givenBack: [2, 3],
      bills: [1],
      buffered: [1],
    });
  });
}
