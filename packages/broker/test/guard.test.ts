import assert from "node:assert/strict";
import { test } from "node:test";
import { BrokerError } from "@queen/protocol";
import { Guard } from "../src/access/guard.ts";
import { Identity } from "../src/access/identity.ts";
import { API_KEY, hashSecret, newSecret, USER_SESSION } from "../src/access/secret.ts";
import { SecretVerifier } from "../src/access/secret-verifier.ts";
import { TooManyRequests } from "../src/access/too-many-requests.ts";

const ADMIN_KEY = "an administrator's key of this test";

function guarded() {
  const secret = newSecret();
  const named = (name: string) => ({
    hash: hashSecret(secret),
    expiresAtMs: null,
    identity: new Identity({ subject: null, name, roles: ["produce"], queues: undefined }),
  });
  const clock = { ms: 0 };
  const now = (): number => clock.ms;
  let reads = 0;
  const read = async (id: number) => {
    reads += 1;
    return id === 7 ? named("key 7 (k)") : undefined;
  };
  const keys = new SecretVerifier({ kind: API_KEY, read, now });
  const sessions = new SecretVerifier({ kind: USER_SESSION, read: async () => named("user u"), now });
  const guard = new Guard({ tokens: undefined, keys, sessions, adminKey: ADMIN_KEY, openPaths: [], now });
  const show = async (authorization: string | undefined, address = "a") => {
    try {
      return (await guard.identify("read", { path: "/x", authorization, address })).name;
    } catch (error) {
      assert.ok(error instanceof BrokerError);
      return error instanceof TooManyRequests ? `wait ${error.waitMs}` : error.code;
    }
  };
  return {
    show,
    clock,
    good: API_KEY.format(7, secret),
    session: USER_SESSION.format(7, secret),
    readCount: () => reads,
  };
}

const wrong = (index: number): string => API_KEY.format(1000 + index, newSecret());

test("an address that guesses is told to wait, and its guesses no longer reach the database", async () => {
  const { show, clock, readCount } = guarded();
  for (let index = 0; index < 100; index += 1) assert.equal(await show(wrong(index)), "UNAUTHENTICATED");
  const before = readCount();
  assert.equal(await show(wrong(100)), "wait 100");
  assert.equal(readCount(), before);
  assert.equal(await show(wrong(101), "another address"), "UNAUTHENTICATED");
  clock.ms = 100;
  assert.equal(await show(wrong(102)), "UNAUTHENTICATED", "one guess each tenth of a second");
  assert.equal(await show(wrong(103)), "wait 100");
});

test("who is known comes in whatever others from the same address try", async () => {
  const { show, clock, good } = guarded();
  assert.equal(await show(good), "key 7 (k)");
  for (let index = 0; index < 101; index += 1) await show(wrong(index));
  assert.match(await show(wrong(200)), /^wait/);
  clock.ms += 50; // the bucket is still empty
  assert.equal(await show(good), "key 7 (k)");
  assert.equal(await show(ADMIN_KEY), "the administrator's key");
  assert.match(
    await show(`${good.slice(0, -1)}${good.endsWith("A") ? "B" : "A"}`),
    /^wait/,
    "an id alone is not known",
  );
});

test("a request without a credential is no guess", async () => {
  const { show } = guarded();
  for (let index = 0; index < 200; index += 1) assert.equal(await show(undefined), "UNAUTHENTICATED");
  assert.equal(await show(wrong(1)), "UNAUTHENTICATED");
});

test("a user's session and a key of the same number are not taken for each other", async () => {
  const { show, good, session } = guarded();
  assert.equal(await show(good), "key 7 (k)");
  assert.equal(await show(session), "user u");
  assert.equal(await show(USER_SESSION.format(7, newSecret())), "UNAUTHENTICATED");
});
