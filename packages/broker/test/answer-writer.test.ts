/** Clients are asked to come back by another connection: some of them, or all from now on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Exchange } from "../src/http/access-log.ts";
import { AnswerWriter, type Outgoing } from "../src/http/answer-writer.ts";
import { Cors } from "../src/http/cors.ts";

const exchange = { incoming: { headers: {} }, isDataPlane: true } as unknown as Exchange;

/** Of so many answers, which ask their clients to come back. */
function turnedAway(writer: AnswerWriter, answers: number): boolean[] {
  return Array.from({ length: answers }, () => {
    let heads: string[] = [];
    const response = {
      writeHead: (_status: number, headers: string[]) => {
        heads = headers;
      },
      end: () => undefined,
      once: () => undefined,
    };
    writer.write(response as unknown as Outgoing, { status: 204 }, exchange);
    return heads.join(" ").includes("Connection close");
  });
}

test("so many answers as are said ask their clients to come back, and no more", () => {
  const writer = new AnswerWriter({ cors: new Cors([]), now: () => 0 });
  assert.deepEqual(turnedAway(writer, 2), [false, false]);
  writer.turnAway(2);
  assert.deepEqual(turnedAway(writer, 4), [true, true, false, false]);
  writer.turnAway(3);
  writer.turnAway(1);
  assert.deepEqual(turnedAway(writer, 3), [true, false, false], "the last word counts");
});

test("a broker that stops turns everybody away, whatever is said afterwards", () => {
  const writer = new AnswerWriter({ cors: new Cors([]), now: () => 0 });
  writer.turnAway();
  writer.turnAway(1);
  assert.deepEqual(turnedAway(writer, 3), [true, true, true]);
});
