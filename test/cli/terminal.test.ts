/** The `queen` command in a real terminal: tables that fit, bars that move, questions, and Ctrl-C. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { until } from "../support/moments.ts";
import { OtherQueen } from "../support/other-queen.ts";
import { newQueue, numbered, type System, startSystem } from "../support/system.ts";
import { Terminal, terminalMissing } from "../support/terminal.ts";

const COLUMNS = 100;

describe("in a terminal", { skip: terminalMissing }, () => {
  let system: System;
  let terminal: Terminal;
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "queen-cli-"));
    system = await startSystem();
    terminal = new Terminal({ QUEEN_URL: system.broker.url, DATABASE_URL: system.database.url }, COLUMNS);
  });
  after(async () => {
    terminal?.close();
    await system?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("a list is a table that fits: long names are cut, numbers stand right, and nothing is wrapped", async () => {
    const long = `${newQueue("long")}-${"x".repeat(120)}`;
    await system.client.push([...numbered(long, 3), ...numbered(newQueue("short"), 1_000)]);
    terminal.enter("queen queues");
    const screen = await terminal.shows(/QUEUE[^\n]*CREATED\n[^>]*\n>/);
    const lines = screen.split("\n");
    const header = lines.findIndex((line) => line.startsWith("QUEUE"));
    assert.match(lines[header]!, /^QUEUE +PARTITIONS +PENDING +PROCESSING +TOTAL +CREATED$/);
    const rows = lines.slice(header + 1, header + 3);
    assert.ok(rows.every((row) => row.length <= COLUMNS));
    assert.ok(
      rows.some((row) => /^long-\d+-x+… +1 +3 +0 +3 +20/.test(row)),
      screen,
    );
    const end = lines[header]!.indexOf("PENDING") + "PENDING".length;
    assert.deepEqual(rows.map((row) => row.slice(end - 5, end)).sort(), ["    3", " 1000"]);
  });

  test("what a producer sent cannot move the cursor or colour the screen", async () => {
    const queue = newQueue();
    await system.client.push([{ queue, transactionId: "t", payload: "\u001b[31mred\u001b[2J\u0007" }]);
    await terminal.clear();
    terminal.enter(`queen tail ${queue}`);
    const screen = await terminal.shows(/pending[^\n]*red/);
    assert.match(screen, /\ufffd\[31mred\ufffd\[2J\ufffd/);
  });

  test("the push of a file has a bar that moves to 100 %", async () => {
    const queue = newQueue();
    const file = join(folder, "many.ndjson");
    const line = `${JSON.stringify({ filler: "x".repeat(900) })}\n`;
    writeFileSync(file, line.repeat(30_000));
    await terminal.clear();
    terminal.enter(`queen push ${queue} --file ${file}; echo done=$?`);
    const moving = await terminal.shows(/push {2}[█▏▎▍▌▋▊▉]+ +\d{1,2} % .*bytes .*\/s .* left/);
    assert.equal(moving.match(/push {2}[█▏▎▍▌▋▊▉]/g)!.length, 1, "it is drawn in one place");
    const finished = await terminal.shows(/done=0/);
    assert.match(finished, /push {2}█{24} {2}100 % {2}([\d,]+) of \1 bytes/);
    assert.match(finished, /queued +30000/);
  });

  test("requeue asks, and shows a bar; anything but yes does nothing", async () => {
    const queue = newQueue();
    await system.client.push(numbered(queue, 700));
    const { messages } = await system.client.pop(queue, { batch: 700 });
    await system.client.ackMessages(messages, "dlq", "boom");
    await terminal.clear();
    terminal.enter(`queen dlq requeue --queue ${queue}; echo done=$?`);
    await terminal.shows(/700 dead letters will be messages again\. Type yes to go on:/);
    terminal.enter("no");
    await terminal.shows(/Nothing was done\ndone=1/);
    await terminal.clear();
    terminal.enter(`queen dlq requeue --queue ${queue}; echo done=$?`);
    await terminal.shows(/Type yes to go on:/);
    terminal.enter("yes");
    const screen = await terminal.shows(/done=0/);
    assert.match(screen, /requeue {2}█{24} {2}100 % {2}700 of 700 dead letters/);
  });

  test("--watch shows it again on a fresh screen until Ctrl-C", async () => {
    const queue = newQueue("watched");
    await system.client.push(numbered(queue, 1));
    await terminal.clear();
    terminal.enter(`queen partitions ${queue} --watch 1`);
    await terminal.shows(/Default +1 /);
    await system.client.push(numbered(queue, 4, undefined, 1));
    const screen = await terminal.shows(/Default +5 /);
    assert.equal(screen.match(/PARTITION /g)!.length, 1, "the old table is gone");
    terminal.press("C-c");
    terminal.enter("echo code=$?");
    await terminal.shows(/code=130/);
  });

  test("tail -f prints what comes until Ctrl-C", async () => {
    const queue = newQueue();
    await system.client.push(numbered(queue, 1));
    await terminal.clear();
    terminal.enter(`queen tail ${queue} -f`);
    await terminal.shows(/ t0 +pending +0/);
    await system.client.push(numbered(queue, 2, undefined, 1));
    await terminal.shows(/ t1 +pending +1\n[^\n]* t2 +pending +2/);
    terminal.press("C-c");
    terminal.enter("echo code=$?");
    await terminal.shows(/code=130/);
  });

  test("a password is asked for twice and not shown; Ctrl-C ends it", async () => {
    await terminal.clear();
    terminal.enter("queen users add ada; echo done=$?");
    await terminal.shows(/Password of ada:/);
    terminal.enter("a password of tests");
    await terminal.shows(/Once more:/);
    terminal.enter("a password of tests");
    const screen = await terminal.shows(/done=0/);
    assert.match(screen, /ada/);
    assert.doesNotMatch(screen, /of tests/);
    await terminal.clear();
    terminal.enter("queen users password ada; echo done=$?");
    await terminal.shows(/Password of ada:/);
    terminal.enter("another password");
    await terminal.shows(/Once more:/);
    terminal.enter("yet another password");
    assert.match(await terminal.shows(/done=1/), /The two are not the same/);
    await terminal.clear();
    terminal.enter("queen users password ada");
    await terminal.shows(/Password of ada:/);
    terminal.press("C-c");
    terminal.enter("echo code=$?");
    await terminal.shows(/code=130/);
  });

  test("adopt has a bar and ends with a table that compares the lanes", async () => {
    const other = await OtherQueen.create();
    try {
      await other.queue("adopted");
      const messages = Array.from({ length: 3_000 }, (_, index) => ({
        transactionId: `t${index}`,
        age: 3_000 - index,
      }));
      await other.push("adopted", "lane", messages);
      await other.consumed("adopted", "lane", "billing", "t99");
      await terminal.clear();
      terminal.enter(`queen adopt --from '${other.database.url}' 2>&1; echo done=$?`);
      const screen = await terminal.shows(/done=0/);
      assert.match(screen, /adopt {2}█{24} {2}100 % {2}3,000 of 3,000 messages/);
      assert.match(screen, /adopted +lane +3000 → 3000 +0 → 0 +billing 2900 → 2900 +same/);
    } finally {
      await other.database.drop();
    }
  });

  test("bench and migrate have a bar, too", async () => {
    await terminal.clear();
    terminal.enter("queen bench --seconds 1 --consumers 1; echo done=$?");
    assert.match(await terminal.shows(/done=0/), /bench {2}█{24} {2}100 % {2}1 of 1 seconds/);
    await system.database.query("update queen.applied set sha256 = 'older' where name like 'procedures/%'");
    await terminal.clear();
    terminal.enter("queen migrate; echo done=$?");
    assert.match(await terminal.shows(/done=0/), /migrate {2}█{24} {2}100 % {2}(\d+) of \1 files/);
    await until(
      "the broker is well",
      async () => (await system.client.request("GET", "/readyz")).status === 200,
    );
  });
});
