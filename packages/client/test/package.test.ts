/** The package as users get it: packed, installed elsewhere, imported, with types, and without Node's modules. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { publint } from "publint";
import { formatMessage } from "publint/utils";

const PACKAGE = fileURLToPath(new URL("../../", import.meta.url));
const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "queen-packed-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const run = (program: string, args: readonly string[], cwd: string): string =>
  execFileSync(program, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

test("its exports are right for every kind of importer", async () => {
  const { messages, pkg } = await publint({ pkgDir: PACKAGE, strict: true });
  assert.deepEqual(
    messages.map((message) => formatMessage(message, pkg)),
    [],
  );
});

test("packed and installed elsewhere, it can be imported, and its types hold", () => {
  const [packed] = JSON.parse(
    run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], PACKAGE),
  ) as [{ filename: string; files: { path: string }[] }];
  const paths = packed.files.map(({ path }) => path);
  assert.ok(paths.includes("README.md") && paths.includes("dist/src/lease-worker.js"));
  assert.ok(!paths.some((path) => path.includes("test")), "tests are not published");

  const installed = join(folder, "node_modules/@queen/client");
  mkdirSync(installed, { recursive: true });
  run("tar", ["-xzf", join(folder, packed.filename), "-C", installed, "--strip-components=1"], folder);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(
    join(folder, "use.ts"),
    `import { Queen, ServerError, type Message } from "@queen/client";
     const queen = new Queen({ urls: ["http://localhost:1"], retries: 0 });
     interface Order { total: number }
     const orders = queen.queue<Order>("orders").group("billing");
     // @ts-expect-error: not an order
     const wrong = () => orders.push({ data: { total: "much" } });
     const totals = async (messages: readonly Message<Order>[]): Promise<number[]> => messages.map(({ data }) => data.total);
     const each = () => orders.each().consume(async (message) => message.data.total.toFixed(2));
     const batch = () => orders.batch(10).consume(totals).onError(() => "dlq");
     export const unused = [wrong, each, batch];
     const error = await queen.queue("a").pop().catch((reason: unknown) => reason);
     console.log(error instanceof ServerError, (error as Error).name);
     await queen.close();
    `,
  );
  const options = [
    "--strict",
    "--noEmit",
    "--module",
    "nodenext",
    "--target",
    "es2023",
    "--lib",
    "es2023,dom",
  ];
  run(
    process.execPath,
    [join(ROOT, "node_modules/typescript/bin/tsc"), ...options, "--types", "", "use.ts"],
    folder,
  );
  run(
    process.execPath,
    [
      join(ROOT, "node_modules/typescript/bin/tsc"),
      ...options.filter((each) => each !== "--noEmit"),
      "--types",
      "",
      "use.ts",
    ],
    folder,
  );
  assert.equal(run(process.execPath, ["use.js"], folder).trim(), "false ConnectionError");
});

test("it has no dependencies, and imports nothing that a browser lacks", () => {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8"));
  assert.deepEqual([dependencies, peerDependencies], [undefined, undefined]);
  const files = readdirSync(join(PACKAGE, "dist/src"), { recursive: true, encoding: "utf8" });
  for (const file of files.filter((name) => name.endsWith(".js"))) {
    const text = readFileSync(join(PACKAGE, "dist/src", file), "utf8");
    for (const [, target] of text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g))
      assert.match(target!, /^\.\.?\//, `${file} imports ${target}`);
  }
});
