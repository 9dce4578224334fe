import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { BrokerError } from "@queen/protocol";
import { type Incoming, RequestBodies } from "../src/http/request-body.ts";

/** As much of a request as its body needs. */
function incoming(headers: Record<string, string> = {}) {
  const stream = new PassThrough();
  const state = { isCut: false };
  const socket = {
    destroy: () => {
      state.isCut = true;
    },
  };
  return { stream, state, request: Object.assign(stream, { headers, socket }) };
}

const codeOf = (whole: Promise<unknown>): Promise<string> =>
  whole.then(
    () => "whole",
    (error: unknown) => (error instanceof BrokerError ? error.code : String(error)),
  );
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("a body comes whole, and is held until its request is over", async () => {
  const bodies = new RequestBodies({ bytesMax: 10, heldBytesMax: 40 });
  const { stream, request } = incoming();
  const { whole, release } = bodies.read(request);
  stream.write("abc");
  stream.end("def");
  assert.equal((await whole).toString(), "abcdef");
  assert.equal(bodies.heldBytes, 6);
  release();
  release();
  assert.equal(bodies.heldBytes, 0);
});

test("a body over the limit is refused, by its length or by its bytes, and nothing of it is kept", async () => {
  const bodies = new RequestBodies({ bytesMax: 10, heldBytesMax: 40 });
  const declared = incoming({ "content-length": "11" });
  assert.equal(await codeOf(bodies.read(declared.request).whole), "BODY_TOO_LARGE");
  const chunked = incoming();
  const { whole } = bodies.read(chunked.request);
  chunked.stream.write("abcdef");
  chunked.stream.write("ghijkl");
  assert.equal(await codeOf(whole), "BODY_TOO_LARGE");
  assert.equal(bodies.heldBytes, 0);
  chunked.stream.end("m");
  await turn();
  assert.equal(chunked.stream.isPaused(), false, "a little more is read");
});

test("a body without end is not read for ever", async () => {
  const bodies = new RequestBodies({ bytesMax: 10, heldBytesMax: 40 });
  for (const receive of [
    (request: Incoming) => codeOf(bodies.read(request).whole),
    (request: Incoming) => bodies.drop(request),
  ]) {
    const { stream, request, state } = incoming();
    void receive(request);
    for (let sent = 0; sent < 100; sent += 1) stream.write("x".repeat(1024));
    await turn();
    assert.ok(stream.isPaused());
    assert.equal(state.isCut, false, "its client has time to see the answer");
  }
});

test("where all bodies are too many, the largest that still comes in is refused, and small ones go on", async () => {
  const bodies = new RequestBodies({ bytesMax: 30, heldBytesMax: 40 });
  const [large, larger, small] = [incoming(), incoming(), incoming()];
  const first = codeOf(bodies.read(large.request).whole);
  const second = codeOf(bodies.read(larger.request).whole);
  large.stream.write("x".repeat(18));
  larger.stream.write("x".repeat(20));
  await turn();
  const third = bodies.read(small.request);
  small.stream.end("x".repeat(5));
  assert.equal(await codeOf(third.whole), "whole");
  assert.equal(await second, "OVERLOADED");
  assert.equal(bodies.heldBytes, 18 + 5);
  large.stream.end();
  assert.equal(await first, "whole");
});

test("a body that came whole is held until its request is over, and refused where there is no room for it", async () => {
  const bodies = new RequestBodies({ bytesMax: 30, heldBytesMax: 40 });
  const release = bodies.hold(Buffer.alloc(30));
  assert.equal(bodies.heldBytes, 30);
  assert.throws(() => bodies.hold(Buffer.alloc(20)), { code: "OVERLOADED" });
  assert.equal(bodies.heldBytes, 30, "nothing of it is kept");
  release();
  release();
  assert.equal(bodies.heldBytes, 0);
  const { stream, request } = incoming();
  const large = codeOf(bodies.read(request).whole);
  stream.write("x".repeat(25));
  await turn();
  bodies.hold(Buffer.alloc(20));
  assert.equal(await large, "OVERLOADED", "a larger one that still comes in makes room");
  assert.equal(bodies.heldBytes, 20);
});
