/** Suites, their selection and the command line. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readOptions } from "../options.ts";
import { PEERS } from "../peers/index.ts";
import { growth } from "../suites/growth.ts";
import { MEMORY } from "../suites/memory.ts";
import { PEER_RUNS } from "../suites/peers.ts";
import { select } from "../suites/scenario.ts";
import { SCENARIOS } from "../suites/scenarios.ts";

const SUITES = [SCENARIOS, PEER_RUNS, growth(null), MEMORY];
const idsOf = (names: readonly string[], isFull = false): string[] =>
  select(SCENARIOS, names, isFull).scenarios.map(({ id }) => id);

test("rows have names of their own, and are compared with rows that exist", () => {
  for (const { name, scenarios } of SUITES) {
    const ids = scenarios.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length, name);
    for (const { id, against } of scenarios) {
      for (const other of against ?? []) assert.ok(ids.includes(other), `${id} is compared with ${other}`);
    }
  }
});

test("every scenario of the comparison is there", () => {
  const families = new Set(SCENARIOS.scenarios.map(({ family }) => family));
  for (const number of [
    "1",
    "2",
    "2i",
    "3",
    "4",
    "5",
    "6",
    "7",
    "7b",
    "8",
    "9",
    "10",
    "11",
    "12",
    "13",
    "14",
  ]) {
    assert.ok(families.has(`S${number}`), `S${number}`);
  }
});

test("a row brings what it is compared with into the same run", () => {
  assert.deepEqual(idsOf(["S1"]), ["FSYNC", "HTTP", "PG-1", "S1"]);
  assert.deepEqual(idsOf(["s14-s5-brokers"]), ["S5", "S14-S5-brokers"]);
  assert.throws(() => idsOf(["S99"]), /no scenario "S99" in scenarios/);
});

test("what takes minutes is asked for by its name or by --full", () => {
  assert.ok(!idsOf([]).includes("S11-1000000"));
  assert.ok(!idsOf(["S11"]).includes("S11-1000000"));
  assert.ok(idsOf(["S11-1000000"]).includes("S11-1000000"));
  assert.ok(idsOf(["S11"], true).includes("S11-1000000"));
});

test("a peer is measured together with the broker", () => {
  const ids = select(PEER_RUNS, ["nats"], false).scenarios.map(({ id }) => id);
  const shapes = ["one", "batch", "consume", "latency", "rare"];
  assert.deepEqual(ids, [
    "FSYNC",
    ...shapes.map((shape) => `queen-${shape}`),
    ...shapes.map((shape) => `nats-${shape}`),
  ]);
  assert.equal(new Set(PEERS.map(({ name }) => name)).size, 8);
});

test("the command line names a suite and its rows", () => {
  assert.deepEqual(readOptions(["S1", "S5"]).names, ["S1", "S5"]);
  assert.equal(readOptions(["S1"]).suite, "scenarios");
  const peers = readOptions(["--peers", "nats", "pgmq"]);
  assert.deepEqual([peers.suite, peers.names], ["peers", ["nats", "pgmq"]]);
  const points = readOptions(["growth", "retained", "--sizes", "10,20"]);
  assert.deepEqual([points.suite, points.names, points.sizes], ["growth", ["retained"], [10, 20]]);
  assert.equal(readOptions(["memory"]).suite, "memory");
  assert.equal(readOptions(["--quick"]).isRecorded, false);
  assert.throws(() => readOptions(["S1", "--sizes", "1"]), /--sizes/);
  assert.throws(() => readOptions(["growth", "--sizes", "1,x"]), /--sizes must be a number/);
  assert.throws(() => readOptions(["growth", "--peers"]), /one after the other/);
  assert.throws(() => readOptions(["--rounds", "0"]), /--rounds/);
});
