import assert from "node:assert/strict";
import { test } from "node:test";
import { cell, renderTable } from "../src/output/table.ts";

const COLUMNS = [
  { title: "NAME", value: (row: { name: string; count: number }) => row.name, isFlexible: true },
  { title: "COUNT", value: (row: { name: string; count: number }) => row.count },
];

test("columns are as wide as their content, numbers stand right", () => {
  const rows = [
    { name: "a", count: 5 },
    { name: "longer", count: 12_345_678 },
  ];
  assert.equal(renderTable(rows, COLUMNS, 80), "NAME       COUNT\na              5\nlonger  12345678\n");
});

test("a table without rows is its header", () => {
  assert.equal(renderTable([], COLUMNS, 80), "NAME  COUNT\n");
});

test("only flexible columns are cut, and never to nothing", () => {
  const rows = [{ name: "x".repeat(50), count: 1 }];
  assert.equal(renderTable(rows, COLUMNS, 20).split("\n")[1], `${"x".repeat(12)}…      1`);
  assert.equal(renderTable(rows, COLUMNS, 3).split("\n")[1], `${"x".repeat(7)}…      1`);
});

test("a cell is one line without control characters", () => {
  assert.equal(cell("a\nb\u001b[31m\u009b1m\u202e"), "a\ufffdb\ufffd[31m\ufffd1m\ufffd");
  assert.deepEqual([null, undefined, "", 0, { a: 1 }].map(cell), ["-", "-", "", "0", '{"a":1}']);
});
