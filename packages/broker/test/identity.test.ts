import assert from "node:assert/strict";
import { test } from "node:test";
import { BrokerError } from "@queen/protocol";
import { ANYBODY, Identity, NOBODY } from "../src/access/identity.ts";
import { ACCESSES, MAY, ROLES } from "../src/access/roles.ts";

const limitedTo = (...queues: string[]): Identity =>
  new Identity({ subject: "s", name: "n", roles: ["read-write"], queues });

test("a role may what the table says, and nothing else", () => {
  for (const role of ROLES) {
    const identity = new Identity({ subject: null, name: role, roles: [role], queues: undefined });
    for (const access of ACCESSES)
      assert.equal(identity.may(access), MAY[role].includes(access), `${role} ${access}`);
  }
});

test("popping is no reading, and reading no popping", () => {
  const reader = new Identity({ subject: null, name: "r", roles: ["read-only"], queues: undefined });
  const consumer = new Identity({ subject: null, name: "c", roles: ["consume"], queues: undefined });
  assert.equal(reader.may("consume"), false);
  assert.equal(consumer.may("read"), false);
});

test("several roles add up; none opens nothing but what is open", () => {
  const both = new Identity({ subject: null, name: "b", roles: ["produce", "consume"], queues: undefined });
  assert.deepEqual(
    ACCESSES.filter((access) => both.may(access)),
    ["open", "produce", "consume"],
  );
  assert.deepEqual(
    ACCESSES.filter((access) => NOBODY.may(access)),
    ["open"],
  );
  assert.ok(ACCESSES.every((access) => ANYBODY.may(access)));
  assert.throws(
    () => both.check("read"),
    (error) => error instanceof BrokerError && error.status === 403,
  );
});

test("patterns of queue names: * is anything, everything else is itself, the whole name counts", () => {
  const cases: [string[], string, boolean][] = [
    [["orders.*"], "orders.new", true],
    [["orders.*"], "orders.", true],
    [["orders.*"], "orders", false],
    [["orders.*"], "ordersXnew", false],
    [["orders.*"], "my.orders.new", false],
    [["orders"], "orders", true],
    [["orders"], "orders\n", false],
    [["*"], "", true],
    [["*"], "two\nlines", true],
    [["a|b"], "a", false],
    [["a|b"], "a|b", true],
    [["(a+)+$", "x-*-y"], "x-1-y", true],
    [["[a-z]"], "a", false],
    [["\\d"], "1", false],
    [["日本.*"], "日本.🎉", true],
    [["*a*b*"], "xxaxxbxx", true],
    [["*a*b"], "xxaxxbx", false],
    [["*a*a*a*a*a*a*a*a*b"], "a".repeat(255), false],
    [[], "orders", false],
    [[], "", false],
  ];
  for (const [patterns, queue, expected] of cases) {
    assert.equal(limitedTo(...patterns).mayUse(queue), expected, `${patterns.join(" ")} and "${queue}"`);
  }
  assert.ok(ANYBODY.mayUse("anything"));
  assert.throws(() => limitedTo("a").checkQueue("b"), /not for queue "b"/);
});
