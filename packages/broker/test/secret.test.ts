import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BrokerError } from "@queen/protocol";
import { Identity } from "../src/access/identity.ts";
import { API_KEY, hashSecret, newSecret, USER_SESSION } from "../src/access/secret.ts";
import { SecretVerifier, type StoredSecret } from "../src/access/secret-verifier.ts";

test("a key has an id and a secret of 256 bits, and is read back", () => {
  const secret = newSecret();
  const key = API_KEY.format(42, secret);
  assert.match(key, /^qk_0000002a_[A-Za-z0-9_-]{43}$/);
  assert.deepEqual(API_KEY.parse(key), { id: 42, secret });
  assert.deepEqual(API_KEY.parse(API_KEY.format(2 ** 50, secret)), { id: 2 ** 50, secret });
  assert.notEqual(newSecret(), secret);
});

test("what is not a key is not taken for one", () => {
  const secret = newSecret();
  for (const text of [
    "",
    "qk_",
    `qk_2a_${secret}`,
    `qk_0000002a_${secret}x`,
    `QK_0000002a_${secret}`,
    "a.b.c",
    USER_SESSION.format(42, secret),
  ]) {
    assert.equal(API_KEY.parse(text), undefined, text);
  }
});

describe("verification", () => {
  const secret = newSecret();
  const key = API_KEY.format(7, secret);
  const worker = new Identity({ subject: null, name: "worker", roles: ["consume"], queues: undefined });
  const stored = (more: Partial<StoredSecret> = {}): StoredSecret => ({
    hash: hashSecret(secret),
    expiresAtMs: null,
    identity: worker,
    ...more,
  });
  const verifierOf = (read: () => Promise<StoredSecret | undefined>) => {
    const clock = { ms: 0 };
    let reads = 0;
    const verifier = new SecretVerifier({
      kind: API_KEY,
      read: () => {
        reads += 1;
        return read();
      },
      now: () => clock.ms,
    });
    return { clock, verify: async (text: string) => verifier.verify(text), reads: () => reads };
  };
  const isRefused = (error: unknown): boolean => error instanceof BrokerError && error.status === 401;

  test("the right secret says who shows it", async () => {
    const { verify } = verifierOf(async () => stored());
    assert.equal(await verify(key), worker);
  });

  test("a wrong secret, an unknown id and an expired key are refused", async () => {
    const { verify } = verifierOf(async () => stored());
    await assert.rejects(verify(API_KEY.format(7, newSecret())), isRefused);
    await assert.rejects(verifierOf(async () => undefined).verify(key), isRefused);
    await assert.rejects(
      verifierOf(async () => stored({ expiresAtMs: Date.now() - 1 })).verify(key),
      isRefused,
    );
  });

  test("is read again after a second, so that a revoked key does not live on", async () => {
    let row: StoredSecret | undefined = stored();
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
    await assert.rejects(verify(API_KEY.format(8, secret)), /the database is away/);
    clock.ms = 3_600_000;
    await assert.rejects(verify(key), /the database is away/);
  });

  test("many requests at once share one reading", async () => {
    const { verify, reads } = verifierOf(async () => stored());
    await Promise.all(Array.from({ length: 50 }, () => verify(key)));
    assert.equal(reads(), 1);
  });
});
