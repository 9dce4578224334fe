/** The hostile programme in small: what takes seconds. `npm run hostile` runs all of it. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { PROGRAMME, runAttack } from "../hostile/programme.ts";
import { type System, startSystem } from "../support/system.ts";

// They wait for the time limits of slow clients.
const TOO_LONG = ["B01"];

describe("hostile input", () => {
  let system: System;
  before(async () => {
    system = await startSystem();
  });
  after(() => system.stop());

  for (const attack of PROGRAMME.filter(({ id }) => !TOO_LONG.includes(id))) {
    test(`${attack.id}: ${attack.what}; nobody else notices`, async () => {
      const { notes } = await runAttack(attack, system, { seed: 1, share: 0.02 });
      assert.deepEqual(notes.problems, []);
      assert.ok(notes.tried > 0);
    });
  }
});
