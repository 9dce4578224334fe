/**
 * Attacks with tokens, against brokers that want one: forged, confused, expired, misdirected, and many with keys
 * that nobody knows. Two servers of the attacker listen: the keys' own, which is asked seldom, and one that tokens
 * name, which must never be asked.
 */
import { generateKeyPairSync } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { HttpClient } from "../../support/http.ts";
import type { Attack, Notes, Target } from "../attack.ts";
import { ControlClient } from "../control-client.ts";
import { forge, hmac, inAnHour, rsa, unsigned } from "../forged-token.ts";
import { exchange } from "../raw-socket.ts";

const SECRET = "the secret of the hostile programme, long enough";
const KIND = { kid: "known" };
const ROUTE = "/api/v1/dlq";
const FLOOD = 1_000;

const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
const strangers = generateKeyPairSync("rsa", { modulusLength: 2048 });
const PEM = pair.publicKey.export({ type: "spki", format: "pem" }) as string;
const JWK = { ...pair.publicKey.export({ format: "jwk" }), kid: "known", alg: "RS256", use: "sig" };

/** Counts who asks it, and answers the same to everybody. */
async function listen(body: string): Promise<{ server: Server; url: string; asked: () => number }> {
  let asked = 0;
  const server = createServer((_request, response) => {
    asked += 1;
    response.setHeader("content-type", "application/json").end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, asked: () => asked };
}

const claims = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
  sub: "mallory",
  role: "admin",
  iss: "us",
  aud: "queen",
  exp: inAnHour(),
  ...more,
});

/** By name: a token that must not be let in, and the answer that it gets. */
function forgeries(trap: string): Record<string, [token: string, status: number]> {
  const now = Math.floor(Date.now() / 1000);
  const byRsa = (more: Record<string, unknown>, header: Record<string, unknown> = {}): string =>
    forge({ alg: "RS256", ...KIND, ...header }, claims(more), rsa(pair.privateKey));
  const byStranger = (header: Record<string, unknown>): string =>
    forge({ alg: "RS256", ...KIND, ...header }, claims(), rsa(strangers.privateKey));
  const good = byRsa({});
  const [header, body, signature] = good.split(".");
  const strangersJwk = strangers.publicKey.export({ format: "jwk" });
  return {
    ...Object.fromEntries(
      ["none", "None", "nOnE", "", null, 7].map((alg) => [
        `alg ${JSON.stringify(alg)}`,
        [forge({ alg }, claims(), unsigned), 401] as [string, number],
      ]),
    ),
    "HS256 with the public key as its secret": [forge({ alg: "HS256" }, claims(), hmac(PEM)), 401],
    "HS256 with the public key's bytes": [
      forge({ alg: "HS256" }, claims(), hmac(pair.publicKey.export({ type: "spki", format: "der" }))),
      401,
    ],
    "RS256 with a signature by the secret": [forge({ alg: "RS256", ...KIND }, claims(), hmac(SECRET)), 401],
    "a stranger's key": [byStranger({}), 401],
    "a key inside of the token": [byStranger({ jwk: strangersJwk }), 401],
    "a key at an address in the token": [byStranger({ jku: trap, x5u: trap, x5c: ["MIIB"] }), 401],
    expired: [byRsa({ exp: now - 3600 }), 401],
    "not yet valid": [byRsa({ nbf: now + 3600 }), 401],
    "without an expiry": [byRsa({ exp: undefined }), 401],
    "an expiry that is no number": [byRsa({ exp: "never" }), 401],
    "another audience": [byRsa({ aud: "them" }), 401],
    "other audiences": [byRsa({ aud: ["them", "others"] }), 401],
    "no audience": [byRsa({ aud: undefined }), 401],
    "another issuer": [byRsa({ iss: "them" }), 401],
    "a signature cut off": [`${header}.${body}.${signature!.slice(0, -4)}`, 401],
    "an empty signature": [`${header}.${body}.`, 401],
    "no signature": [`${header}.${body}`, 401],
    "other claims under the signature": [
      `${header}.${Buffer.from(JSON.stringify(claims({ sub: "root" }))).toString("base64url")}.${signature}`,
      401,
    ],
    "a key id that is a path": [byStranger({ kid: "../../x" }), 401],
    "a key id that is SQL": [byStranger({ kid: "' or 1=1 --" }), 401],
    "a key id that is an address": [byStranger({ kid: trap }), 401],
    "a key id that is no text": [byStranger({ kid: { a: 1 } }), 401],
    "critical extensions": [byRsa({}, { crit: ["x"], x: 1 }), 401],
    "no token at all": ["~.~.~", 401],
    "no role": [byRsa({ role: undefined }), 403],
    ...Object.fromEntries(
      [["admin"], { admin: true }, 1, true, null, "ADMIN", "__proto__", "admin,read-only"].map((role) => [
        `the role ${JSON.stringify(role)}`,
        [byRsa({ role }), 403] as [string, number],
      ]),
    ),
    "roles that are no list": [byRsa({ role: undefined, roles: "admin" }), 403],
  };
}

async function show(client: HttpClient, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  return (await client.request("GET", ROUTE, undefined, { headers })).status;
}

async function tokens({ system, share }: Target, notes: Notes): Promise<void> {
  const keys = await listen(JSON.stringify({ keys: [JWK] }));
  const trap = await listen(JSON.stringify({ keys: [strangers.publicKey.export({ format: "jwk" })] }));
  const env = { JWT_ENABLED: "true", JWT_ISSUER: "us", JWT_AUDIENCE: "queen", NUM_WORKERS: "1" };
  const byAny = await system.another({
    ...env,
    JWT_ALGORITHM: "auto",
    JWT_SECRET: SECRET,
    JWT_JWKS_URL: keys.url,
  });
  const byOne = await system.another({ ...env, JWT_ALGORITHM: "RS256", JWT_PUBLIC_KEY: PEM });
  const honest = forge({ alg: "HS256" }, claims({ sub: "alice" }), hmac(SECRET));
  const control = new ControlClient(byAny.broker.url, "control-tokens", `Bearer ${honest}`);
  control.start();
  try {
    for (const [what, [token, status]] of Object.entries(forgeries(trap.url))) {
      const got = await show(byAny.client, token);
      notes.saw(what, got, got === status);
      // Both know the same key, but one of them no secret and no other algorithm.
      const other = await show(byOne.client, token);
      notes.saw(`${what}, where one algorithm is allowed`, other, other === status);
    }
    const honestOne = await show(byOne.client, honest);
    notes.saw("HS256 where RS256 is configured", honestOne, honestOne === 401);
    const good = forge({ alg: "RS256", ...KIND }, claims(), rsa(pair.privateKey));
    notes.saw("the right token", await show(byAny.client, good), (await show(byAny.client, good)) === 200);
    const port = Number(new URL(byAny.broker.url).port);
    const line = `Authorization: Bearer ${good}\r\n`;
    const twice = await exchange(port, `GET ${ROUTE} HTTP/1.1\r\nHost: q\r\n${line}${line}\r\n`);
    notes.saw("two Authorization headers", twice.statuses[0] ?? "closed", twice.statuses[0] === 401);
    const long = forge({ alg: "RS256", kid: "x".repeat(1024 ** 2) }, claims(), unsigned);
    const huge = await exchange(port, `GET ${ROUTE} HTTP/1.1\r\nHost: q\r\nAuthorization: ${long}\r\n\r\n`);
    notes.saw("a key id of 1 MB", huge.statuses[0] ?? "closed", huge.closed || huge.statuses[0] === 431);

    const before = keys.asked();
    for (let sent = 0; sent < FLOOD * share; sent += 20) {
      const flood = Array.from({ length: 20 }, (_, index) =>
        show(
          byAny.client,
          forge({ alg: "RS256", kid: `none-${sent + index}` }, claims(), rsa(strangers.privateKey)),
        ),
      );
      for (const status of await Promise.all(flood))
        notes.saw("a key that nobody knows", status, [401, 429].includes(status));
    }
    const fetches = keys.asked() - before;
    notes.saw("fetches of keys meanwhile", `${fetches <= 1 ? "at most one" : fetches} fetch`, fetches <= 1);
    notes.saw("fetches from the address in the token", `${trap.asked()} visits`, trap.asked() === 0);
  } finally {
    await control.stop();
    keys.server.close();
    trap.server.close();
    await Promise.all([byAny, byOne].map(({ broker }) => broker.stop()));
  }
  for (const error of control.errors) notes.problem(`the client with a good token: ${error}`);
}

export const tokenAttacks: readonly Attack[] = [
  {
    id: "B17",
    what: "tokens that are forged, confused, expired or not meant for us; unknown keys by the thousand",
    run: tokens,
  },
];
