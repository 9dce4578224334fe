import assert from "node:assert/strict";
import { createHmac, generateKeyPairSync, type KeyObject } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { BrokerError } from "@queen/protocol";
import { exportJWK, SignJWT } from "jose";
import type { Identity } from "../src/access/identity.ts";
import type { Role } from "../src/access/roles.ts";
import { type TokenOptions, TokenVerifier } from "../src/access/token-verifier.ts";

const SECRET = "a secret of more than thirty-two bytes";
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const otherRsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
const ed = generateKeyPairSync("ed25519");
const pemOf = (key: KeyObject): string => key.export({ type: "spki", format: "pem" }) as string;

const OPTIONS: TokenOptions = {
  algorithm: "auto",
  secret: SECRET,
  publicKeyPem: undefined,
  jwksUrl: undefined,
  jwksTimeoutMs: 2_000,
  jwksRefreshMs: 3_600_000,
  issuer: undefined,
  audience: undefined,
  clockSkewSeconds: 30,
  requiresExpiry: true,
  rolesClaim: "role",
  rolesArrayClaim: "roles",
  queuesClaim: "queues",
  roleNames: new Map<string, Role>([
    ["admin", "admin"],
    ["rw", "read-write"],
    ["ro", "read-only"],
  ]),
  now: () => performance.now(),
  log: () => {},
};

const inAnHour = (): number => Math.floor(Date.now() / 1000) + 3600;

function sign(
  claims: Record<string, unknown> = {},
  key: KeyObject | Uint8Array = new TextEncoder().encode(SECRET),
  header: { alg: string; kid?: string } & Record<string, unknown> = { alg: "HS256" },
): Promise<string> {
  return new SignJWT({ sub: "alice", role: "rw", exp: inAnHour(), ...claims })
    .setProtectedHeader(header)
    .sign(key);
}

const verify = async (token: string, options: Partial<TokenOptions> = {}): Promise<Identity> =>
  new TokenVerifier({ ...OPTIONS, ...options }).verify(token);

const refuses = (token: string, options: Partial<TokenOptions>, message: RegExp): Promise<void> =>
  assert.rejects(verify(token, options), (error: unknown) => {
    assert.ok(error instanceof BrokerError, String(error));
    assert.equal(error.status, 401);
    assert.match(error.message, message);
    return true;
  });

const raw = (header: unknown, payload: unknown, secret?: string): string => {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part(header)}.${part(payload)}`;
  return `${signed}.${secret === undefined ? "" : createHmac("sha256", secret).update(signed).digest("base64url")}`;
};

test("every algorithm of the contract is verified by its own kind of key", async () => {
  const secret = new TextEncoder().encode(SECRET.repeat(2));
  for (const alg of ["HS256", "HS384", "HS512"]) {
    assert.equal(
      (await verify(await sign({}, secret, { alg }), { secret: SECRET.repeat(2) })).subject,
      "alice",
    );
  }
  for (const alg of ["RS256", "RS384", "RS512"]) {
    const token = await sign({}, rsa.privateKey, { alg });
    assert.equal(
      (await verify(token, { secret: undefined, publicKeyPem: pemOf(rsa.publicKey) })).subject,
      "alice",
    );
  }
  const byEc = await sign({}, ec.privateKey, { alg: "ES256" });
  assert.equal((await verify(byEc, { publicKeyPem: pemOf(ec.publicKey) })).subject, "alice");
  const byEd = await sign({}, ed.privateKey, { alg: "EdDSA" });
  assert.equal(
    (await verify(byEd, { algorithm: "EdDSA", publicKeyPem: pemOf(ed.publicKey) })).subject,
    "alice",
  );
});

test("a public key is never taken for a secret, nor a secret for a public key", async () => {
  const pem = pemOf(rsa.publicKey);
  const confused = raw({ alg: "HS256" }, { sub: "mallory", role: "admin", exp: inAnHour() }, pem);
  await refuses(confused, { algorithm: "auto", publicKeyPem: pem }, /Invalid token signature/);
  await refuses(
    confused,
    { algorithm: "auto", secret: undefined, publicKeyPem: pem },
    /Unsupported algorithm/,
  );
  await refuses(confused, { algorithm: "RS256", publicKeyPem: pem }, /Token uses HS256, expected RS256/);
  const byRsa = await sign({}, rsa.privateKey, { alg: "RS256" });
  await refuses(byRsa, { algorithm: "HS256" }, /Token uses RS256, expected HS256/);
  await refuses(byRsa, { algorithm: "auto" }, /Unsupported algorithm/);
});

test("a token without a signature is no token, however it spells that", async () => {
  const payload = { sub: "mallory", role: "admin", exp: inAnHour() };
  for (const alg of ["none", "None", "nOnE", "", null, 7, undefined]) {
    await refuses(raw({ alg }, payload), {}, /Unsupported algorithm|Token decode error/);
  }
  const [header, body] = (await sign()).split(".");
  await refuses(`${header}.${body}.`, {}, /Invalid token signature|Token decode error/);
  await refuses(`${header}.${body}`, {}, /Token decode error/);
  await refuses((await sign()).slice(0, -3), {}, /Invalid token signature|Token decode error/);
  for (const token of ["x", "a.b.c", "....", "{}", "é", "x".repeat(20_000)])
    await refuses(token, {}, /Token decode/);
});

test("a key that the token itself carries or names is not used", async () => {
  const jwk = await exportJWK(otherRsa.publicKey);
  const header = { alg: "RS256", jwk, jku: "http://127.0.0.1:9/keys", x5u: "http://127.0.0.1:9/cert" };
  const token = await sign({ role: "admin" }, otherRsa.privateKey, header);
  await refuses(token, { publicKeyPem: pemOf(rsa.publicKey) }, /Invalid token signature/);
});

test("times, issuer and audience are checked", async () => {
  const now = Math.floor(Date.now() / 1000);
  await refuses(await sign({ exp: now - 60 }), {}, /Token has expired/);
  assert.ok(await verify(await sign({ exp: now - 10 })), "within the clock skew");
  await refuses(await sign({ nbf: now + 600 }), {}, /Invalid token/);
  await refuses(raw({ alg: "HS256" }, { sub: "s", role: "rw" }, SECRET), {}, /Token has no expiry/);
  assert.ok(await verify(raw({ alg: "HS256" }, { sub: "s", role: "rw" }, SECRET), { requiresExpiry: false }));
  await refuses(await sign({ iss: "them" }), { issuer: "us" }, /Invalid token issuer/);
  await refuses(await sign(), { issuer: "us" }, /Invalid token issuer/);
  for (const aud of ["them", ["them", "others"], undefined]) {
    await refuses(await sign(aud === undefined ? {} : { aud }), { audience: "us" }, /Invalid token audience/);
  }
  assert.ok(await verify(await sign({ aud: ["them", "us"] }), { audience: "us" }));
});

test("roles come from both claims by their configured names; anything else gives none", async () => {
  const rolesOf = async (claims: Record<string, unknown>): Promise<readonly string[]> =>
    (await verify(await sign({ role: undefined, ...claims }))).roles;
  assert.deepEqual(await rolesOf({ role: "ro" }), ["read-only"]);
  assert.deepEqual(await rolesOf({ roles: ["admin", "unknown"] }), ["admin"]);
  assert.deepEqual(await rolesOf({ role: "rw", roles: ["admin"] }), ["read-write", "admin"]);
  for (const role of [
    "read-write",
    "ADMIN",
    ["admin"],
    { admin: true },
    1,
    true,
    null,
    "__proto__",
    "constructor",
  ]) {
    assert.deepEqual(await rolesOf({ role }), [], JSON.stringify(role));
  }
  assert.deepEqual(await rolesOf({ roles: "admin" }), []);
});

test("a queues claim limits; one that is no list of patterns opens nothing", async () => {
  const identity = await verify(await sign({ queues: ["orders.*"] }));
  assert.deepEqual([identity.mayUse("orders.1"), identity.mayUse("other")], [true, false]);
  for (const queues of ["orders.*", 7, [7], {}, null]) {
    assert.equal((await verify(await sign({ queues }))).mayUse("orders.1"), false, JSON.stringify(queues));
  }
});

test("a token that was believed a moment ago does not outlive its expiry", async () => {
  const clock = { ms: 0 };
  const verifier = new TokenVerifier({ ...OPTIONS, clockSkewSeconds: 0, now: () => clock.ms });
  const token = await sign({ exp: Math.floor(Date.now() / 1000) + 5 });
  await verifier.verify(token);
  assert.ok(!(verifier.verify(token) instanceof Promise), "believed");
  clock.ms = 6_000;
  assert.ok(verifier.verify(token) instanceof Promise, "verified again");
});

describe("keys by JWKS", () => {
  let server: Server;
  let url: string;
  let fetches = 0;
  let keys: Record<string, unknown>[] = [];
  let answer = 200;
  before(async () => {
    keys = [{ ...(await exportJWK(rsa.publicKey)), kid: "one", alg: "RS256", use: "sig" }];
    server = createServer((_request, response) => {
      fetches += 1;
      response.statusCode = answer;
      response.setHeader("content-type", "application/json").end(JSON.stringify({ keys }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
  });
  after(() => server.close());

  test("the key is chosen by its id, and a flood of unknown ids fetches once", async () => {
    const verifier = new TokenVerifier({ ...OPTIONS, secret: undefined, jwksUrl: url });
    const good = await sign({}, rsa.privateKey, { alg: "RS256", kid: "one" });
    assert.equal((await verifier.verify(good)).subject, "alice");
    fetches = 0;
    for (const kid of ["../../x", "' or 1=1", "http://127.0.0.1:9/", "x".repeat(1000), "two"]) {
      const token = await sign({}, otherRsa.privateKey, { alg: "RS256", kid });
      await assert.rejects(async () => verifier.verify(token), /Unknown key ID/);
    }
    assert.ok(fetches <= 1, `${fetches} fetches`);
  });

  test("a new key counts after the next fetch, and a key that is gone no longer", async () => {
    const verifier = new TokenVerifier({ ...OPTIONS, secret: undefined, jwksUrl: url, jwksRefreshMs: 20 });
    verifier.start();
    try {
      const old = await sign({}, rsa.privateKey, { alg: "RS256", kid: "one" });
      assert.ok(await verifier.verify(old));
      keys = [{ ...(await exportJWK(otherRsa.publicKey)), kid: "two", alg: "RS256" }];
      const next = await sign({}, otherRsa.privateKey, { alg: "RS256", kid: "two" });
      const isTaken = async (token: string): Promise<boolean> => {
        try {
          return Boolean(await verifier.verify(token));
        } catch {
          return false;
        }
      };
      while (!(await isTaken(next))) await new Promise((resolve) => setTimeout(resolve, 10));
      while (await isTaken(old)) await new Promise((resolve) => setTimeout(resolve, 10));
    } finally {
      verifier.stop();
    }
  });

  test("a token without a key id is verified by whichever key fits", async () => {
    keys = [
      { ...(await exportJWK(otherRsa.publicKey)), kid: "one", alg: "RS256" },
      { ...(await exportJWK(rsa.publicKey)), kid: "two", alg: "RS256" },
    ];
    const options = { secret: undefined, jwksUrl: url };
    const token = await sign({}, rsa.privateKey, { alg: "RS256" });
    assert.equal((await verify(token, options)).subject, "alice");
    const stranger = generateKeyPairSync("rsa", { modulusLength: 2048 });
    await refuses(await sign({}, stranger.privateKey, { alg: "RS256" }), options, /Invalid token signature/);
  });

  test("a provider that fails is not asked for each token, and its known keys go on to count", async () => {
    keys = [{ ...(await exportJWK(rsa.publicKey)), kid: "one", alg: "RS256" }];
    const clock = { ms: 0 };
    const flaky = { secret: undefined, jwksUrl: url, now: () => clock.ms };
    const verifier = new TokenVerifier({ ...OPTIONS, ...flaky });
    const good = await sign({}, rsa.privateKey, { alg: "RS256", kid: "one" });
    assert.ok(await verifier.verify(good));
    fetches = 0;
    const unknown = (index: number) =>
      sign({}, otherRsa.privateKey, { alg: "RS256", kid: `unknown-${index}` });
    answer = 500;
    for (let index = 1; index < 20; index += 1) {
      await assert.rejects(async () => verifier.verify(await unknown(index)), /Unknown key ID: unknown-/);
    }
    assert.equal(fetches, 0, "the keys came a moment ago");
    clock.ms = 31_000;
    for (let index = 1; index < 20; index += 1) {
      await assert.rejects(
        async () => verifier.verify(await unknown(index)),
        /Unknown key ID|cannot be fetched/,
      );
    }
    assert.ok(fetches <= 1, `${fetches} fetches`);
    assert.ok(await verifier.verify(good));
    answer = 200;
  });

  test("a provider that was never there is asked again after a pause, however many tokens come", async () => {
    let attempts = 0;
    const broken = createServer((_request, response) => {
      attempts += 1;
      response.statusCode = 500;
      response.end();
    });
    await new Promise<void>((resolve) => broken.listen(0, "127.0.0.1", resolve));
    const jwksUrl = `http://127.0.0.1:${(broken.address() as AddressInfo).port}/`;
    const clock = { ms: 0 };
    const verifier = new TokenVerifier({ ...OPTIONS, secret: undefined, jwksUrl, now: () => clock.ms });
    const token = await sign({}, rsa.privateKey, { alg: "RS256", kid: "one" });
    const statusOf = async (): Promise<number> => {
      try {
        await verifier.verify(token);
        return 200;
      } catch (error) {
        return (error as BrokerError).status;
      }
    };
    try {
      for (let round = 0; round < 10; round += 1) assert.equal(await statusOf(), 503);
      assert.equal(attempts, 1);
      clock.ms = 5_000;
      assert.equal(await statusOf(), 503);
      assert.equal(attempts, 2);
    } finally {
      broken.close();
    }
  });

  test("a provider that is away is 503, not a refusal", async () => {
    const token = await sign({}, rsa.privateKey, { alg: "RS256", kid: "one" });
    const away = verify(token, { secret: undefined, jwksUrl: "http://127.0.0.1:1/keys" });
    await assert.rejects(away, (error: unknown) => error instanceof BrokerError && error.status === 503);
  });
});
