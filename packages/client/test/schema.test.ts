/** Schemas: what does not match is refused at push, and dead-lettered at once when it is consumed. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startTestQueen, type TestQueen } from "@queen/testing";
import * as v from "valibot";
import { z } from "zod";
import { InvalidPayloadError, type Queen, type StandardSchema } from "../src/index.ts";

let system: TestQueen;
let queen: Queen;
before(async () => {
  system = await startTestQueen();
  queen = system.client();
});
after(() => system?.stop());

const SCHEMAS = {
  zod: z.object({ total: z.number(), at: z.iso.datetime().transform((text) => new Date(text)) }),
  valibot: v.object({
    total: v.number(),
    at: v.pipe(
      v.string(),
      v.isoTimestamp(),
      v.transform((text) => new Date(text)),
    ),
  }),
} satisfies Record<string, StandardSchema<{ total: number; at: string }, { total: number; at: Date }>>;
const GOOD = { total: 1, at: "2026-11-15T00:00:00Z" };

for (const [vendor, schema] of Object.entries(SCHEMAS)) {
  test(`${vendor}: the input travels, and consumers get the output`, async () => {
    const queue = queen.queue(`good-${vendor}`, schema);
    await queue.push({ data: GOOD });
    const raw = await queen.admin.queueMessages(`good-${vendor}`);
    assert.deepEqual((await queen.admin.message(raw[0]!)).payload, GOOD);
    const years: number[] = [];
    await queue
      .each()
      .limit(1)
      .consume(({ data }) => years.push(data.at.getUTCFullYear()));
    assert.deepEqual(years, [2026]);
  });

  test(`${vendor}: a push of what does not match is refused, and nothing of it is stored`, async () => {
    const queue = queen.queue(`refused-${vendor}`, schema);
    // @ts-expect-error: the compiler sees it, too
    const push = queue.push([{ data: GOOD }, { data: { total: "many", at: "2026-11-15T00:00:00Z" } }]);
    await assert.rejects(push, (error) => {
      assert.ok(error instanceof InvalidPayloadError);
      assert.equal(error.index, 1);
      assert.match(error.message, /payload does not match the schema: total: /);
      return error.issues.length === 1;
    });
    assert.deepEqual(await queue.pop(), []);
    const transaction = queen.transaction().queue(`refused-${vendor}`, schema);
    await assert.rejects(
      transaction.push({ data: { ...GOOD, at: "yesterday" } }).commit(),
      InvalidPayloadError,
    );
  });

  test(`${vendor}: what others pushed and does not match is dead-lettered with the reason`, async () => {
    const name = `bad-${vendor}`;
    await queen
      .queue(name)
      .push([{ data: GOOD }, { data: { total: null } }, { data: GOOD }, { data: "text" }]);
    const queue = queen.queue(name, schema);
    let handled = 0;
    await queue
      .batch(3)
      .limit(4)
      .consume((messages) => {
        handled += messages.length;
      });
    assert.equal(handled, 2);
    await system.drained(name);
    const { messages } = await queue.dlq().get();
    assert.deepEqual(messages.map(({ data }) => data).reverse(), [{ total: null }, "text"]);
    assert.match(messages.at(-1)!.errorMessage!, /payload does not match the schema: total: /);
  });
}

test("a pop with autoAck, which has no lease, dead-letters too", async () => {
  await queen.queue("auto").push([{ data: 1 }, { data: "one" }]);
  const queue = queen.queue("auto", z.number());
  const popped = await queue.group("g").batch(9).autoAck(true).pop();
  assert.deepEqual(
    popped.map(({ data }) => data),
    [1],
  );
  const { messages } = await queue.dlq("g").get();
  assert.deepEqual(
    messages.map(({ data }) => data),
    ["one"],
  );
});
