/**
 * The TypeScript in the documentation is compiled, strictly, and what can be pasted is run against a live broker:
 * each `console.log(…); // …` prints what its comment says.
 */
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startTestQueen, type TestQueen } from "@queen/testing";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
// Inside the package, so that imports are found as its users' are.
const folder = mkdtempSync(fileURLToPath(new URL("../readme-", import.meta.url)));
const README_URL = "http://localhost:6632";
const OPTIONS = [
  "--ignoreConfig",
  "--strict",
  "--module",
  "nodenext",
  "--target",
  "es2023",
  "--lib",
  "es2023,dom",
  "--types",
  "node",
];

interface Page {
  readonly path: string;
  /** Of this section only. */
  readonly section?: string;
  readonly prelude?: string;
}

const RUN = {
  quickstart: { path: "README.md", section: "## Use it from TypeScript" },
  client: { path: "packages/client/README.md" },
  testing: { path: "packages/testing/README.md" },
} satisfies Record<string, Page>;
const COMPILED_ONLY = {
  guide: { path: "docs/client.md", prelude: 'import { Queen } from "@queen/client";' },
} satisfies Record<string, Page>;

function codeOf({ path, section, prelude }: Page): string {
  const page = readFileSync(join(ROOT, path), "utf8");
  const from = section === undefined ? 0 : page.indexOf(`${section}\n`);
  assert.notEqual(from, -1, `${path} has no ${section}`);
  const to = section === undefined ? page.length : page.indexOf("\n## ", from + 1);
  const blocks = [...page.slice(from, to).matchAll(/^```ts\n(.*?)^```$/gms)].map(([, block]) => block!);
  assert.ok(blocks.length > 0, `${path} has no TypeScript`);
  return [prelude ?? "", ...blocks].join("\n");
}

let system: TestQueen;
const programs = new Map<string, string>();
before(async () => {
  for (const [name, page] of Object.entries<Page>({ ...RUN, ...COMPILED_ONLY })) {
    const code = codeOf(page);
    programs.set(name, code);
    writeFileSync(join(folder, `${name}.ts`), code);
  }
  const files = [...programs.keys()].map((name) => `${name}.ts`);
  try {
    execFileSync(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), ...OPTIONS, ...files], {
      cwd: folder,
      encoding: "utf8",
      stdio: "pipe",
    });
  } catch (error) {
    assert.fail(`the documentation does not compile:\n${(error as { stdout: string }).stdout}`);
  }
  system = await startTestQueen();
});
after(async () => {
  await system?.stop();
  rmSync(folder, { recursive: true, force: true });
});

for (const [name, page] of Object.entries<Page>(RUN)) {
  test(`${page.path} does what it says`, async () => {
    const code = programs.get(name)!;
    const promised = [...code.matchAll(/console\.log\(.*\);? \/\/ (.*)$/gm)].map(([, text]) => text);
    assert.ok(promised.length > 0);
    const program = join(folder, `${name}.js`);
    writeFileSync(program, readFileSync(program, "utf8").replaceAll(README_URL, system.url));
    const { stdout } = await promisify(execFile)(process.execPath, [program], { timeout: 60_000 });
    assert.deepEqual(stdout.trimEnd().split("\n"), promised);
  });
}
