/**
 * The broker and its description say the same. Every other test of this folder compares the answers it gets
 * with the document (support/agreement.ts); here are the document itself, and what routes take.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { complaints, document, type Operation, operationOf, table } from "../support/agreement.ts";
import type { HttpClient } from "../support/http.ts";
import { type System, startSystem } from "../support/system.ts";

// Sessions are made for the broker's own page only.
const FROM_PAGE = { headers: { "queen-page": "1" } };

describe("the OpenAPI document", () => {
  let system: System;
  let client: HttpClient;
  before(async () => {
    system = await startSystem();
    client = system.client;
  });
  after(() => system.stop());

  test("is served as the route table prints it", async () => {
    const { status, json } = await client.request("GET", "/openapi.json");
    assert.equal(status, 200);
    assert.match(json.info.version, /^\d+\.\d+\.\d+/);
    assert.deepEqual({ ...json, info: { ...json.info, version: "" } }, JSON.parse(JSON.stringify(document)));
  });

  test("names every route once, with its path parameters and a tag that is listed", () => {
    const ids = new Set<string>();
    const tags = (document.tags as { name: string }[]).map(({ name }) => name);
    for (const route of table) {
      const operation = operationOf(route) as Operation & { tags: string[]; summary: string };
      assert.ok(!ids.has(operation.operationId), `${operation.operationId} is there twice`);
      ids.add(operation.operationId);
      assert.ok(tags.includes(operation.tags[0]!), operation.operationId);
      assert.ok(operation.summary.length > 10 && !operation.summary.endsWith("."), operation.operationId);
      const inPath = operation.parameters.filter((each) => each.in === "path").map(({ name }) => name);
      assert.deepEqual(
        inPath,
        [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => name),
      );
    }
  });

  test("can be read as a page that loads nothing and names every route", async () => {
    const { status, headers, text } = await client.request("GET", "/docs");
    assert.equal(status, 200);
    assert.match(String(headers["content-type"]), /^text\/html/);
    assert.match(String(headers["content-security-policy"]), /default-src 'none'/);
    assert.doesNotMatch(text, /<script|https?:\/\//);
    for (const route of table) assert.ok(text.includes(`id="${operationOf(route).operationId}"`), route.path);
  });

  test("knows only integers where a query parameter is described as one", async () => {
    const { partition, transaction } = await oneMessage(client);
    let asked = 0;
    for (const route of table) {
      const path = route.path.replace(":partitionId", partition).replace(":transactionId", transaction);
      for (const { name, in: place, schema } of operationOf(route).parameters) {
        if (place !== "query" || (schema as { type?: string }).type !== "integer") continue;
        const answer = await client.request(
          route.method,
          `${path.replaceAll(/:(\w+)/g, "nothing")}?${name}=12x`,
        );
        assert.equal(answer.status, 400, `${route.path}?${name}`);
        assert.match(answer.json.error, new RegExp(`${name} must be an integer`));
        asked += 1;
      }
    }
    assert.ok(asked > 10, `${asked} parameters were asked for`);
  });

  // What each route with a body takes; `{}` where all is optional.
  const bodies = async (): Promise<Record<string, unknown>> => {
    const { partition, transaction } = await oneMessage(client);
    const ack = {
      transactionId: transaction,
      partitionId: partition,
      leaseId: null,
      status: "retry",
      error: null,
    };
    return {
      "POST /api/v1/push": { items: [{ queue: "taken", partition: "a", transactionId: "t", payload: {} }] },
      "POST /api/v1/ack": { ...ack, consumerGroup: "g" },
      "POST /api/v1/ack/batch": { acknowledgments: [ack], consumerGroup: "g" },
      "POST /api/v1/transaction": {
        operations: [{ type: "push", items: [{ queue: "taken", partition: "b", payload: 1 }] }],
        requiredLeases: [],
      },
      "POST /api/v1/lease/:leaseId/extend": { seconds: 5 },
      "POST /api/v1/configure": { queue: "taken", namespace: "n", task: "t", mode: "merge", options: {} },
      "POST /api/v1/messages/:partitionId/:transactionId/retry": { consumerGroup: "g" },
      "POST /api/v1/messages/:partitionId/:transactionId/dlq": { consumerGroup: "g", error: "bad" },
      "POST /api/v1/dlq/requeue": { queue: "taken", limit: 1 },
      "POST /api/v1/dlq/purge": { queue: "taken", limit: 1 },
      "POST /api/v1/queues/:queue/pause": { consumerGroup: "g", partition: "a", reason: "because" },
      "POST /api/v1/queues/:queue/resume": { consumerGroup: "g", partition: "a" },
      "POST /api/v1/system/maintenance": { enabled: false },
      "POST /api/v1/system/maintenance/pop": { enabled: false },
      "POST /internal/api/notify": { queue: "taken", partition: "a" },
      "POST /api/v1/traces": {
        transactionId: transaction,
        partitionId: partition,
        data: { step: 1 },
        consumerGroup: "g",
        eventType: "info",
        traceNames: ["a"],
      },
      "POST /api/v1/system/keys": {
        name: "k",
        role: "produce",
        queues: ["a.*"],
        expiresAt: "2036-01-01T00:00:00Z",
      },
      "POST /api/v1/system/users": {
        name: "u",
        password: "twelve letters",
        role: "produce",
        queues: ["a.*"],
        expiresAt: "2036-01-01T00:00:00Z",
      },
      "POST /api/v1/system/users/:user/password": { password: "twelve letters" },
      "POST /api/v1/session": { credential: "qk_1", user: "u", password: "p" },
      "POST /api/v1/system/spool/retry": { ids: ["1"], all: false },
      "POST /api/v1/system/spool/discard": { ids: ["1"], all: false },
      "POST /api/v1/consumer-groups/:group/subscription": { subscriptionTimestamp: "2026-01-01T00:00:00Z" },
      "POST /api/v1/consumer-groups/:group/queues/:queue/seek": { timestamp: "2026-01-01T00:00:00Z" },
      "POST /api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek": { toEnd: true },
    };
  };

  test("says of every body what the broker refuses", async () => {
    const valid = await bodies();
    const bodied = table.filter(({ body }) => body !== undefined);
    assert.deepEqual(
      bodied.map(({ method, path }) => `${method} ${path}`).sort(),
      Object.keys(valid).sort(),
      "every route with a body has an example here",
    );
    const { partition, transaction } = await oneMessage(client);
    let refused = 0;
    const taken: string[] = [];
    for (const route of bodied) {
      const schema = operationOf(route).requestBody!.content!["application/json"]!.schema;
      const example = valid[`${route.method} ${route.path}`];
      assert.equal(complaints(schema, example), undefined, `${route.path}: the example itself`);
      const path = route.path
        .replace(":partitionId", partition)
        .replace(":transactionId", transaction)
        .replaceAll(/:(\w+)/g, "nothing");
      for (const mutant of mutants(example)) {
        const isNothing = mutant === null || (Array.isArray(mutant) && mutant.length === 0);
        const wrong = complaints(schema, isNothing ? {} : mutant); // as a body, they say nothing
        if (!wrong) continue;
        const { status, text } = await client.request(route.method, path, mutant, FROM_PAGE);
        if (status !== 400)
          taken.push(
            `${route.path} took ${JSON.stringify(mutant)} (${wrong}): ${status} ${text.slice(0, 100)}`,
          );
        refused += 1;
      }
      const { status, text } = await client.request(route.method, path, example, FROM_PAGE);
      assert.notEqual(status, 400, `${route.path} refused ${JSON.stringify(example)}: ${text}`);
    }
    assert.deepEqual(taken, []);
    assert.ok(refused > 50, `${refused} wrong bodies were sent`);
  });
});

async function oneMessage(client: HttpClient): Promise<{ partition: string; transaction: string }> {
  const [pushed] = await client.push([{ queue: "taken", transactionId: "one", payload: 1 }]);
  if (pushed!.partition_id !== undefined) partitionOfOne = pushed!.partition_id;
  return { partition: partitionOfOne, transaction: "one" };
}
let partitionOfOne = "";

/** The value with one part left out or of another type, every part in turn. */
function mutants(value: unknown): unknown[] {
  const others: unknown[] = [null, true, 7, "text", [], {}];
  if (typeof value !== "object" || value === null) return others;
  const inside = Object.entries(value).flatMap(([key, inner]) => [
    Array.isArray(value) ? [] : Object.fromEntries(Object.entries(value).filter(([each]) => each !== key)),
    ...mutants(inner).map((mutant) =>
      Array.isArray(value) ? value.with(Number(key), mutant) : { ...value, [key]: mutant },
    ),
  ]);
  return [...others, ...inside];
}
