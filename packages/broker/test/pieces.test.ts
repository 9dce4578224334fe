import assert from "node:assert/strict";
import { test } from "node:test";
import { isLarge, writeInPieces } from "../src/http/pieces.ts";

test("a large answer is written whole and in order, and no piece before the one before it has left", () => {
  const body = Array.from({ length: 200_000 }, (_, index) => `${index},`).join("");
  assert.ok(isLarge(body));
  const pieces: string[] = [];
  let drained: (() => void) | undefined;
  let hasEnded = false;
  let progress = 0;
  writeInPieces(
    {
      write: (piece) => {
        pieces.push(piece);
        return false; // the client reads nothing yet
      },
      once: (_, listener) => {
        drained = listener;
      },
      end: () => {
        hasEnded = true;
      },
    },
    body,
    () => {
      progress++;
    },
  );
  assert.equal(pieces.length, 1);
  for (let written = 1; !hasEnded; written++) {
    assert.equal(pieces.length, written);
    assert.equal(progress, written - 1);
    drained!();
  }
  assert.equal(pieces.join(""), body);
});
