import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BrokerError } from "@queen/protocol";
import { formatApiKey, hashApiKey, newApiKeySecret, parseApiKey } from "../src/access/api-key.ts";
import { ApiKeyVerifier, type StoredApiKey } from "../src/access/api-key-verifier.ts";
import type { Identity } from "../src/access/identity.ts";

test("a key has an id and a secret of 256 bits, and is read back", () => {
  const secret = newApiKeySecret();
  const key = formatApiKey(42, secret);
  assert.match(key, /^qk_0000002a_[A-Za-z0-9_-]{43}$/);
  assert.deepEqual(parseApiKey(key), { id: 42, secret });
  assert.deepEqual(parseApiKey(formatApiKey(2 ** 50, secret)), { id: 2 ** 50, secret });
  assert.notEqual(newApiKeySecret(), secret);
});

test("what is not a key is not taken for one", () => {
  const secret = newApiKeySecret();
  for (const text of [
    "",
    "qk_",
    `qk_2a_${secret}`,
    `qk_0000002a_${secret}x`,
    `QK_0000002a_${secret}`,
    "a.b.c",
  ]) {
    assert.equal(parseApiKey(text), undefined, text);
  }
});

describe("verification", () => {
  const secret = newApiKeySecret();
  const key = formatApiKey(7, secret);
  const stored = (more: Partial<StoredApiKey> = {}): StoredApiKey => ({
    id: 7,
    name: "worker",
    hash: hashApiKey(secret),
    role: "consume",
    queues: ["orders.*"],
    expiresAtMs: null,
    ...more,
  });
  const verifierOf = (read: () => Promise<StoredApiKey | undefined>) => {
    const clock = { ms: 0 };
    let reads = 0;
    const verifier = new ApiKeyVerifier({
      read: () => {
        reads += 1;
        return read();
      },
      now: () => clock.ms,
    });
    return { clock, verify: async (text: string) => verifier.verify(text), reads: () => reads };
  };
  const isRefused = (error: unknown): boolean => error instanceof BrokerError && error.status === 401;

  test("the right secret gives the key's role and queues", async () => {
    const { verify } = verifierOf(async () => stored());
    const identity = (await verify(key)) as Identity;
    assert.deepEqual(
      [identity.roles, identity.queues, identity.subject],
      [["consume"], ["orders.*"], "key:worker"],
    );
  });

  test("a wrong secret, an unknown id and an expired key are refused", async () => {
    const { verify } = verifierOf(async () => stored());
    await assert.rejects(verify(formatApiKey(7, newApiKeySecret())), isRefused);
    await assert.rejects(verifierOf(async () => undefined).verify(key), isRefused);
    await assert.rejects(
      verifierOf(async () => stored({ expiresAtMs: Date.now() - 1 })).verify(key),
      isRefused,
    );
  });

  test("is read again after a second, so that a revoked key does not live on", async () => {
    let row: StoredApiKey | undefined = stored();
    const { verify, clock, reads } = verifierOf(async () => row);
    await verify(key);
    await verify(key);
    assert.equal(reads(), 1);
    row = undefined;
    clock.ms = 1_000;
    await assert.rejects(verify(key), isRefused);
  });

  test("a known key counts while it cannot be read, an unknown one does not", async () => {
    let isAway = false;
    const { verify, clock } = verifierOf(async () => {
      if (isAway) throw new Error("the database is away");
      return stored();
    });
    await verify(key);
    isAway = true;
    clock.ms = 60_000;
    assert.ok(await verify(key));
    await assert.rejects(verify(formatApiKey(8, secret)), /the database is away/);
    clock.ms = 3_600_000;
    await assert.rejects(verify(key), /the database is away/);
  });

  test("many requests at once share one reading", async () => {
    const { verify, reads } = verifierOf(async () => stored());
    await Promise.all(Array.from({ length: 50 }, () => verify(key)));
    assert.equal(reads(), 1);
  });
});
