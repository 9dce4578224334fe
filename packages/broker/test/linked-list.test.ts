/** A linked list is what an array would be. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Link, LinkedList } from "../src/linked-list.ts";

const step = fc.oneof(
  fc.constant({ kind: "push" as const }),
  fc.record({ kind: fc.constantFrom("remove" as const, "moveToEnd" as const), at: fc.nat() }),
);

test("whatever leaves or goes to the end, the first is the one that has stood longest", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const list = new LinkedList<number>();
      let model: Link<number>[] = [];
      for (const [number, each] of steps.entries()) {
        if (each.kind === "push") model.push(list.push(number));
        else if (model.length > 0) {
          const link = model[each.at % model.length]!;
          list[each.kind](link);
          model = model.filter((other) => other !== link);
          if (each.kind === "moveToEnd") model.push(link);
          else assert.deepEqual([link.before, link.after], [undefined, undefined]);
        }
        assert.equal(list.first, model[0]?.item);
        for (const [at, link] of model.entries()) {
          assert.equal(link.before, model[at - 1]);
          assert.equal(link.after, model[at + 1]);
        }
      }
    }),
  );
});
