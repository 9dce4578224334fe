/** Encryption at rest (P10): what was sealed is opened byte for byte, and by nothing but its key. */
import assert from "node:assert/strict";
import { createDecipheriv, createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { BrokerError, messageId, messageIdPrefix, parseLeaseId, partitionId } from "@queen/protocol";
import fc from "fast-check";
import { Keyring, keysProblem, parseKeys, readHeader } from "../src/operations/encryption.ts";
import { popAnswer, type TakenLane, unreadableError } from "../src/operations/pop-answer.ts";
import { makeSegments, traceIdJson, transactionIdJson } from "../src/operations/segment.ts";

const [OLD, NEW, FOREIGN] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2), Buffer.alloc(32, 3)];
const ring = (...keys: Buffer[]): Keyring => new Keyring(keys, randomBytes);

const HEADER = '"transactionId":"t","traceId":null,"producerSub":null';
const fragmentOf = (payload: string, header = HEADER): string => `${header},"data":${payload}`;

const failure = (code: string, text: RegExp) => (error: unknown) =>
  error instanceof BrokerError && error.code === code && text.test(error.message);

const bytes = fc
  .uint8Array({ minLength: 1, maxLength: 2_000 })
  .map((array) => Buffer.from(array).toString("latin1"));

test("any bytes come back, whatever the header holds", () => {
  const name = fc
    .string({ unit: "grapheme" })
    .map((text) => Buffer.from(JSON.stringify(text)).toString("latin1"));
  fc.assert(
    fc.property(bytes, name, fc.option(name), (payload, transactionId, producerSub) => {
      const header = `"transactionId":${transactionId},"traceId":null,"producerSub":${producerSub}`;
      const fragment = fragmentOf(payload, header);
      const sealed = ring(NEW).seal(fragment, "q");
      assert.equal(ring(NEW).open(sealed), fragment);
      assert.equal(transactionIdJson(sealed), transactionIdJson(fragment));
      assert.equal(traceIdJson(sealed), "null");
      assert.deepEqual(ring(NEW).show(sealed), { header, payload, isEncrypted: true, payloadError: null });
    }),
  );
});

test("the stored form is the contract's, and other programs can read it", () => {
  const payload = '{"a":1.0}';
  const sealed = ring(OLD).seal(fragmentOf(payload), "q");
  const stored = JSON.parse(`{${sealed}}`);
  assert.deepEqual(Object.keys(stored), [
    ...["transactionId", "traceId", "producerSub", "isEncrypted", "keyId", "data"],
  ]);
  assert.deepEqual(Object.keys(stored.data), ["encrypted", "iv", "authTag"]);
  assert.equal(stored.keyId, createHash("sha256").update(OLD).digest("hex").slice(0, 8));
  const [encrypted, iv, tag] = Object.values(stored.data as Record<string, string>).map((text) =>
    Buffer.from(text, "base64"),
  );
  assert.deepEqual([iv!.length, tag!.length], [16, 16]);
  const decipher = createDecipheriv("aes-256-gcm", OLD, iv!);
  decipher.setAuthTag(tag!);
  assert.equal(decipher.update(encrypted!).toString() + decipher.final().toString(), payload);
  assert.ok(!sealed.includes("1.0"));
});

test("two messages with the same payload look different", () => {
  const keyring = ring(OLD);
  assert.notEqual(keyring.seal(fragmentOf("1"), "q"), keyring.seal(fragmentOf("1"), "q"));
});

test("a bit that flips is noticed, wherever it is in the payload", () => {
  const payload = "x".repeat(30);
  const sealed = ring(NEW).seal(fragmentOf(payload), "q");
  const parts = /^(.*"encrypted":")([^"]*)(","iv":")([^"]*)(","authTag":")([^"]*)("\})$/
    .exec(sealed)!
    .slice(1);
  fc.assert(
    fc.property(fc.constantFrom(1, 3, 5), fc.nat(), (part, bit) => {
      const flipped = Buffer.from(parts[part]!, "base64");
      const at = bit % (flipped.length * 8);
      flipped[at >> 3]! ^= 1 << (at & 7);
      const fragment = parts
        .map((text, index) => (index === part ? flipped.toString("base64") : text))
        .join("");
      assert.throws(() => ring(NEW).open(fragment), failure("MESSAGE_DAMAGED", /bytes were changed/));
      const shown = ring(NEW).show(fragment);
      assert.equal(shown.payload, fragment.slice(fragment.indexOf('{"encrypted')));
      assert.match(shown.payloadError!, /bytes were changed/);
    }),
  );
});

test("a tag that was cut is no tag", () => {
  const sealed = ring(NEW).seal(fragmentOf("12345"), "q");
  const tag = JSON.parse(`{${sealed}}`).data.authTag as string;
  const cut = sealed.replace(tag, Buffer.from(tag, "base64").subarray(0, 4).toString("base64"));
  assert.throws(() => ring(NEW).open(cut), failure("MESSAGE_DAMAGED", /./));
});

test("keys rotate: the first one seals, all of them open, and a key that is missing is named", () => {
  const old = ring(OLD).seal(fragmentOf("1"), "q");
  const rotated = ring(NEW, OLD);
  const fresh = rotated.seal(fragmentOf("2"), "q");
  assert.equal(rotated.open(old), fragmentOf("1"));
  assert.equal(rotated.open(fresh), fragmentOf("2"));
  assert.equal(ring(NEW).open(fresh), fragmentOf("2"));
  assert.deepEqual(rotated.ids, [...ring(NEW).ids, ...ring(OLD).ids]);
  for (const keyring of [ring(NEW), ring(FOREIGN), ring()]) {
    assert.throws(
      () => keyring.open(old),
      failure("ENCRYPTION_KEY_MISSING", new RegExp(`key ${ring(OLD).ids[0]},`)),
    );
  }
});

test("without a key nothing is sealed, and the sentence says what to set", () => {
  const text =
    /^Queue orders is encrypted and this broker has no key: nothing was stored\. .*QUEEN_ENCRYPTION_KEY/;
  assert.throws(() => ring().seal(fragmentOf("1"), "orders"), failure("ENCRYPTION_KEY_MISSING", text));
});

test("a producer's own payload is never taken for a sealed one", () => {
  const stored = ring(OLD).seal(fragmentOf('"secret"'), "q");
  const sealedPayload = stored.slice(stored.indexOf('{"encrypted"'));
  const header = Buffer.from(JSON.stringify(`,"isEncrypted":true,"keyId":"${ring(OLD).ids[0]}"`)).toString(
    "latin1",
  );
  for (const fragment of [
    fragmentOf(sealedPayload),
    fragmentOf(`{${stored}}`),
    fragmentOf(sealedPayload, `"transactionId":${header},"traceId":null,"producerSub":${header}`),
    fragmentOf('"=="}'),
  ]) {
    for (const keyring of [ring(OLD), ring()]) {
      assert.equal(keyring.open(fragment), fragment);
      assert.equal(keyring.show(fragment).isEncrypted, false);
    }
    const again = ring(NEW).seal(fragment, "q");
    assert.equal(ring(NEW, OLD).open(again), fragment, "and is opened once, not twice");
  }
  assert.deepEqual(readHeader(HEADER), { header: HEADER, isEncrypted: false });
});

test("keys may stand in lines or with commas", () => {
  const [one, two] = ["0a".repeat(32), "FF".repeat(32)];
  for (const text of [`${one},${two}`, `${one}\n${two}\n`, ` ${one} ,\r\n${two}`]) {
    assert.equal(keysProblem(text), undefined);
    assert.deepEqual(parseKeys(text), [Buffer.from(one, "hex"), Buffer.from(two, "hex")]);
  }
  assert.deepEqual(parseKeys(""), []);
});

function laneOf(partition: number, fragments: readonly string[]): TakenLane {
  const [made] = makeSegments(fragments.map((fragment) => ({ fragment, keyHigh: 0, keyLow: 0 })));
  const segment = {
    firstOffset: 0,
    count: fragments.length,
    createdAtUs: 0,
    ends: made!.ends.toString("latin1"),
    body: made!.body,
  };
  return {
    queueJson: '"q\u00c3\u00a4"',
    partitionJson: `"p${partition}"`,
    partition,
    partitionId: partitionId(partition),
    messageIdPrefix: messageIdPrefix(partition),
    from: 0,
    to: fragments.length,
    acked: [],
    segments: [segment],
  };
}

test("a pop delivers sealed and plain messages alike", () => {
  const keyring = ring(NEW, OLD);
  const lane = laneOf(1, [
    ring(OLD).seal(fragmentOf("1"), "q"),
    fragmentOf("2"),
    keyring.seal(fragmentOf("3"), "q"),
  ]);
  const { body, unreadable } = popAnswer([lane], '"g"', 7, keyring);
  const { messages } = JSON.parse(body);
  assert.deepEqual(
    messages.map((message: { data: number }) => message.data),
    [1, 2, 3],
  );
  assert.equal(
    new Set(messages.map((message: object) => Object.keys(message).join())).size,
    1,
    "with equal fields",
  );
  assert.deepEqual(unreadable, []);
});

test("a pop leaves a lane out that it cannot read, whole, and names the message and the key", () => {
  const bad = laneOf(1, [fragmentOf("1"), ring(FOREIGN).seal(fragmentOf("2"), "q")]);
  const good = laneOf(2, [fragmentOf("3")]);
  const answer = popAnswer([bad, good], '"g"', 7, ring(NEW));
  const { messages, partition, partitionsClaimed, leaseId } = JSON.parse(answer.body);
  assert.deepEqual([partition, partitionsClaimed, messages.length, messages[0].data], ["p2", 1, 1, 3]);
  assert.deepEqual(parseLeaseId(leaseId), { token: 7, partitions: [2] });
  assert.deepEqual(
    answer.unreadable.map(({ lane, offset }) => [lane.partition, offset]),
    [[1, 1]],
  );
  const error = unreadableError(answer.unreadable[0]!);
  assert.equal(error.code, "ENCRYPTION_KEY_MISSING");
  assert.ok(
    error.message.startsWith(`Message ${messageId(1, 1)} of queue qä, partition p1, cannot be delivered`),
  );
  assert.ok(error.message.includes(`key ${ring(FOREIGN).ids[0]}`));

  const nothing = popAnswer([bad], '"g"', 7, ring(NEW));
  assert.deepEqual([nothing.messages, nothing.unreadable.length], [0, 1]);
});
