#!/usr/bin/env node
/**
 * `queen` in a clone. npm links this file, which is in git; what it runs is built, and is built now if it is not there.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const main = new URL("../dist/src/main.js", import.meta.url);

if (!existsSync(main)) {
  const root = fileURLToPath(new URL("../../../", import.meta.url));
  process.stderr.write("queen: building, which is done once…\n");
  const build = spawnSync("npm", ["run", "--silent", "build"], { cwd: root, stdio: ["ignore", 2, 2] });
  if (build.status !== 0 || !existsSync(main)) {
    process.stderr.write(`queen: it is not built. Run  npm ci && npm run build  in ${root}\n`);
    process.exit(2);
  }
}
process.setSourceMapsEnabled(true);
await import(main.href);
