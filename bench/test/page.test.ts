/** The page is written from result lines: the right session, between the marks, and nothing else is touched. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { markdownTable, newestSession, replacePart, wholeSessions, writePage } from "../report/page.ts";
import { terminalTable } from "../report/table.ts";
import { parseLines, type ResultLine } from "../results.ts";
import { resultLine } from "./lines.ts";

const EARLIER = "2026-01-01T00:00:00.000Z";

test("the newest session that counts is reported, or the one that is named", () => {
  const { settings } = resultLine();
  const lines = [
    resultLine({ session: EARLIER }),
    resultLine(),
    resultLine({ session: "2026-01-03T00:00:00.000Z", settings: { ...settings, isQuick: true } }),
    resultLine({ session: "2026-01-04T00:00:00.000Z", suite: "growth" }),
  ];
  assert.deepEqual(newestSession(lines, "scenarios", null), [lines[1]]);
  assert.deepEqual(newestSession(lines, "scenarios", "2026-01-01"), [lines[0]]);
  assert.deepEqual(newestSession(lines, "peers", null), []);
  const given = resultLine({ session: EARLIER, settings: { ...settings, database: "given" } });
  assert.deepEqual(newestSession([...lines, given], "scenarios", null, "embedded"), [lines[1]]);
  assert.deepEqual(newestSession([...lines, given], "scenarios", null, "given"), [given]);
});

test("a session that was ended early is not reported", () => {
  const whole = [resultLine({ runs: 2 }), resultLine({ runs: 2, round: 2 })];
  const endedEarly = resultLine({ session: "2026-01-05T00:00:00.000Z", runs: 2 });
  const fromBefore = resultLine({ session: EARLIER });
  assert.deepEqual(wholeSessions([...whole, endedEarly, fromBefore]), [...whole, fromBefore]);
});

test("only the part between the marks is replaced", () => {
  const page = "before\n<!-- bench peers: begin -->\nold\n<!-- bench peers: end -->\nafter\n";
  const replaced = replacePart(page, "peers", "new");
  assert.equal(replaced, "before\n<!-- bench peers: begin -->\nnew\n<!-- bench peers: end -->\nafter\n");
  assert.equal(replacePart(replaced, "peers", "new"), replaced);
  assert.throws(() => replacePart(page, "growth", "new"), /no part for growth: add the lines/);
});

test("a table leaves out columns that are empty and keeps its cells apart", () => {
  const cells = [
    ["a", "b", "c"],
    ["1", "", "x|y"],
  ];
  assert.equal(markdownTable(cells), "| a | c |\n|---|---|\n| 1 | x\\|y |");
});

test("the page of the repository has a part for every suite, and gets its charts", () => {
  const folder = `${mkdtempSync(join(tmpdir(), "queen-bench-page-"))}/`;
  try {
    const page = fileURLToPath(new URL("../../../docs/benchmarks.md", import.meta.url));
    writeFileSync(`${folder}benchmarks.md`, readFileSync(page));
    const { settings } = resultLine();
    const lines = [
      resultLine(),
      resultLine({ scenario: "HTTP" }, 45_000),
      resultLine({ session: "2026-01-06T00:00:00.000Z", runs: 2 }, 9_000), // ended early
      resultLine({ settings: { ...settings, database: "given" } }, 2_000),
      resultLine({ suite: "peers", scenario: "queen-one" }),
      resultLine({ suite: "growth", scenario: "groups-1" }),
      resultLine({ suite: "memory", scenario: "idle-1" }),
    ];
    const files = writePage(lines, null, folder);
    const text = readFileSync(`${folder}benchmarks.md`, "utf8");
    for (const file of files.filter((name) => name.endsWith(".svg"))) {
      assert.ok(text.includes(`(${file.slice(folder.length)})`), file);
    }
    assert.match(
      text,
      /commit 0123456789ab; 2 cores \(a processor\), 8 GB; 2 times as fast as .* by bare HTTP; Node 20\.20\.0; PostgreSQL 18\.0/,
    );
    assert.match(text, /\| S1 \| 1,000 \|/);
    assert.match(text, /\(given\)[\s\S]*\| S1 \| 2,000 \|/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("each axis of growth is of its own newest session, and the page says of which", () => {
  const folder = `${mkdtempSync(join(tmpdir(), "queen-bench-page-"))}/`;
  try {
    const page = fileURLToPath(new URL("../../../docs/benchmarks.md", import.meta.url));
    writeFileSync(`${folder}benchmarks.md`, readFileSync(page));
    const line = (scenario: string, session: string, p50: number): ResultLine =>
      resultLine({ suite: "growth", scenario, session }, 1_000, p50);
    const LATER = "2026-01-05T00:00:00.000Z";
    writePage(
      [line("groups-1", EARLIER, 11), line("parked-1", EARLIER, 12), line("parked-1", LATER, 13)],
      null,
      folder,
    );
    const text = readFileSync(`${folder}benchmarks.md`, "utf8");
    assert.match(text, /Measured groups 2026-01-01: [\s\S]*Measured parked 2026-01-05: /);
    assert.match(text, /\| groups \| 1 \| 11/);
    assert.match(text, /\| parked \| 1 \| 13/);
    assert.doesNotMatch(text, /\| parked \| 1 \| 12/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a line that is not JSON is named", () => {
  assert.equal(parseLines('{"scenario":"S1"}\n\n', "a.jsonl")[0]?.suite, "scenarios");
  assert.throws(() => parseLines('{}\n{"half', "a.jsonl"), /a\.jsonl, line 2/);
});

test("peers say on the terminal what they lack", () => {
  const server = { version: "2.9", settings: "defaults", answersAfterFsync: false };
  const { figures: _, ...missing } = resultLine({
    suite: "peers",
    scenario: "bullmq-one",
    isValid: false,
    missing: "redis-server is missing",
  });
  const table = terminalTable("peers", [
    resultLine({ suite: "peers", scenario: "nats-one", server }),
    missing,
    resultLine({ suite: "peers", scenario: "FSYNC" }),
  ]);
  assert.match(table, /fdatasync +1,000$/m);
  assert.match(table, /NATS JetStream +1,000 \(2\.00 \/ 4\.00\) .* no +not awaited/);
  assert.match(table, /BullMQ on Redis +not available .*redis-server is missing/);
});
