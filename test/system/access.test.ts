/** Nobody in who does not belong: tokens, keys, roles, queues, limits, TLS, the audit log. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request as tlsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { RawSocket } from "../hostile/raw-socket.ts";
import { ACCESS_BY_ROLE, table } from "../support/agreement.ts";
import type { HttpClient } from "../support/http.ts";
import { newQueue, type System, startSystem, until } from "../support/system.ts";

const SECRET = "a secret for tests that is long enough";
// What JWT_SKIP_PATHS is if nobody says anything else.
const SKIP_PATHS = ["/health", "/metrics/prometheus", "/metrics", "/"];
const ADMIN_KEY = "the administrator's key of this test";

function token(claims: Record<string, unknown>): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part({ alg: "HS256" })}.${part({ exp: Math.floor(Date.now() / 1000) + 600, ...claims })}`;
  return `${signed}.${createHmac("sha256", SECRET).update(signed).digest("base64url")}`;
}

const bearer = (credential: string) => ({ headers: { authorization: `Bearer ${credential}` } });

describe("with tokens and keys", () => {
  let system: System;
  let client: HttpClient;
  before(async () => {
    system = await startSystem({ JWT_ENABLED: "true", JWT_SECRET: SECRET, QUEEN_ADMIN_KEY: ADMIN_KEY });
    client = system.client;
  });
  after(() => system.stop());

  const as = (claims: Record<string, unknown>) => bearer(token({ sub: "alice", ...claims }));
  const admin = bearer(ADMIN_KEY);

  test("every route is refused to every role that may not use it, and to nobody else", async () => {
    let refused = 0;
    for (const { method, path, access } of table) {
      const target = path
        .replace(":partitionId", "00000000-0001-8002-8000-000000000000")
        .replaceAll(/:(\w+)/g, "nothing");
      const none = await client.request(method, target);
      const isOpen = access === "open" || SKIP_PATHS.includes(path);
      assert.equal(none.status === 401, !isOpen, `${method} ${path} without a credential: ${none.status}`);
      for (const [role, accesses] of Object.entries(ACCESS_BY_ROLE)) {
        const { status } = await client.request(method, target, undefined, as({ role }));
        const may = isOpen || accesses.includes(access);
        assert.equal(status === 403, !may, `${method} ${path} (${access}) as ${role}: ${status}`);
        assert.notEqual(status, 401);
        if (!may) refused += 1;
      }
      const { status } = await client.request(method, target, undefined, as({ role: "stranger" }));
      assert.equal(status === 403, !isOpen, `${method} ${path} with a role that does not exist`);
    }
    assert.ok(refused > 50, `${refused} refusals`);
  });

  test("what is wrong with a credential is said, and nothing of it is repeated", async () => {
    const good = token({ sub: "alice", role: "admin" });
    for (const [credential, sentence] of [
      ["", "Authentication required"],
      ["Bearer ", "Empty token"],
      ["Bearer nonsense", "Token decode error"],
      [`Bearer ${good.slice(0, -2)}xx`, "Invalid token signature"],
      [`Bearer ${token({ exp: 1, role: "admin" })}`, "Token has expired"],
      ["Bearer qk_00000001_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "Invalid API key"],
    ] as const) {
      const { status, json, headers } = await client.request("GET", "/api/v1/dlq", undefined, {
        headers: { authorization: credential },
      });
      assert.equal(status, 401, credential);
      assert.ok(json.error.startsWith(sentence), json.error);
      assert.equal(headers["www-authenticate"], "Bearer");
      assert.equal(json.code, "UNAUTHENTICATED");
    }
    for (const authorization of [`Bearer ${good}`, `bearer ${good}`, good]) {
      assert.equal(
        (await client.request("GET", "/api/v1/dlq", undefined, { headers: { authorization } })).status,
        200,
      );
    }
  });

  test("the body of a refused request is not looked at", async () => {
    const { status } = await client.request(
      "POST",
      "/api/v1/push",
      "no JSON at all",
      as({ role: "read-only" }),
    );
    assert.equal(status, 403);
  });

  test("the producer is who the token says, never who the body says", async () => {
    const queue = newQueue();
    const items = [{ queue, payload: 1, producerSub: "mallory" }];
    await client.request("POST", "/api/v1/push", { items }, as({ role: "produce" }));
    await client.request(
      "POST",
      "/api/v1/transaction",
      { operations: [{ type: "push", items: [{ queue, payload: 2, producerSub: "mallory" }] }] },
      as({ role: "read-write", sub: "bob" }),
    );
    const { json } = await client.request(
      "GET",
      `/api/v1/pop/queue/${queue}?batch=9`,
      undefined,
      as({ role: "consume" }),
    );
    assert.deepEqual(
      json.messages.map((each: { producerSub: string }) => each.producerSub),
      ["alice", "bob"],
    );
  });

  test("a credential for some queues reaches those and no others, by any way", async () => {
    const [mine, other] = [newQueue("mine"), newQueue("other")];
    const limited = as({ role: "read-write", queues: ["mine*"] });
    const push = (queue: string) =>
      client.request("POST", "/api/v1/push", { items: [{ queue, transactionId: "t", payload: 1 }] }, limited);
    assert.equal((await push(mine)).status, 201);
    assert.equal((await push(other)).status, 403);
    const [pushed] = (
      await client.request(
        "POST",
        "/api/v1/push",
        { items: [{ queue: other, transactionId: "t", payload: 1 }] },
        admin,
      )
    ).json;
    const both = [mine, other].map((queue) => ({ queue, payload: 1 }));
    assert.equal((await client.request("POST", "/api/v1/push", { items: both }, limited)).status, 403);

    const get = async (path: string) => (await client.request("GET", path, undefined, limited)).status;
    assert.equal(await get(`/api/v1/pop/queue/${mine}`), 200);
    assert.equal(await get(`/api/v1/pop/queue/${other}`), 403);
    assert.equal(await get(`/api/v1/pop?queue=${other}`), 403);
    assert.equal(await get(`/api/v1/messages?queue=${mine}`), 200);
    assert.equal(await get(`/api/v1/messages?queue=${other}`), 403);
    assert.equal(await get("/api/v1/messages"), 403);
    assert.equal(await get(`/api/v1/messages/${pushed.partition_id}/t`), 403);
    assert.equal(await get(`/api/v1/resources/queues/${other}`), 403);
    assert.equal(await get("/api/v1/resources/overview"), 403);

    const ack = { transactionId: "t", partitionId: pushed.partition_id };
    assert.equal((await client.request("POST", "/api/v1/ack", ack, limited)).status, 403);
    const range = { firstId: pushed.message_id, lastId: pushed.message_id, leaseId: "any" };
    const batch = { acknowledgments: [range] };
    assert.equal((await client.request("POST", "/api/v1/ack/batch", batch, limited)).status, 403);
    const operations = [{ type: "ack", ...ack }];
    assert.equal((await client.request("POST", "/api/v1/transaction", { operations }, limited)).status, 403);
    const popped = await client.request("GET", `/api/v1/pop/queue/${other}`, undefined, admin);
    assert.equal(popped.json.messages[0].transactionId, "t", "nothing of the other queue was touched");
  });

  test("a pop by namespace takes only of queues that the credential may use", async () => {
    const space = newQueue("space");
    for (const [name, payload] of [
      [`${space}.a`, "a"],
      [`${space}.b`, "b"],
    ]) {
      await client.request("POST", "/api/v1/push", { items: [{ queue: name, payload }] }, admin);
    }
    const limited = as({ role: "consume", queues: [`${space}.b`] });
    const path = `/api/v1/pop?namespace=${space}&autoAck=true`;
    assert.equal((await client.request("GET", path, undefined, limited)).json.messages[0].data, "b");
    assert.equal((await client.request("GET", path, undefined, limited)).status, 204);
  });

  test("an API key is shown once, works with its role and queues, and ends when it is revoked", async () => {
    const { client: elsewhere } = await system.another();
    const queue = newQueue("keyed");
    const body = { name: "worker", role: "produce", queues: ["keyed*"] };
    const made = await client.request("POST", "/api/v1/system/keys", body, admin);
    assert.equal(made.status, 201);
    const key = bearer(made.json.key);
    const push = (by: HttpClient) =>
      by.request("POST", "/api/v1/push", { items: [{ queue, payload: 1 }] }, key);
    assert.equal((await push(client)).status, 201);
    assert.equal((await push(elsewhere)).status, 201, "another broker knows it");
    const read = await client.request("GET", "/api/v1/dlq", undefined, key);
    assert.equal(read.status, 403);

    const { text } = await client.request("GET", "/api/v1/system/keys", undefined, admin);
    const secret = made.json.key.split("_").slice(2).join("_"); // which may hold a _ itself
    assert.ok(secret.length > 20 && !text.includes(secret), "the secret is not listed");
    const [stored] = await system.database.query("select hash from queen.api_keys");
    assert.equal((stored!.hash as Buffer).length, 32);

    assert.equal(
      (await client.request("DELETE", `/api/v1/system/keys/${made.json.id}`, undefined, admin)).status,
      200,
    );
    for (const by of [client, elsewhere]) {
      await until("the revoked key is refused", async () => (await push(by)).status === 401);
    }
    assert.equal((await client.request("DELETE", "/api/v1/system/keys/999", undefined, admin)).status, 404);
    const expired = await client.request(
      "POST",
      "/api/v1/system/keys",
      { name: "old", role: "admin", expiresAt: "2020-01-01T00:00:00Z" },
      admin,
    );
    assert.equal(
      (await client.request("GET", "/api/v1/dlq", undefined, bearer(expired.json.key))).status,
      401,
    );
  });

  test("changes and refusals are audited with who, from where and what", async () => {
    const queue = newQueue("audited");
    await client.request("POST", "/api/v1/configure", { queue }, as({ sub: "carol", role: "read-write" }));
    for (let round = 0; round < 3; round += 1) {
      await client.request(
        "DELETE",
        `/api/v1/resources/queues/${queue}`,
        undefined,
        as({ sub: "dave", role: "read-only" }),
      );
    }
    const entryOf = (actor: string) =>
      until(`an entry of ${actor}`, async () => {
        const { json } = await client.request("GET", "/api/v1/system/audit", undefined, admin);
        return json.entries.find((each: { actor: string }) => each.actor === actor);
      });
    const changed = await entryOf("carol");
    assert.deepEqual(
      [changed.action, changed.status, changed.address],
      ["POST /api/v1/configure", 200, "127.0.0.1"],
    );
    assert.ok(changed.target.includes(queue), changed.target);
    await until("all three refusals are counted", async () => {
      const { json } = await client.request("GET", "/api/v1/system/audit", undefined, admin);
      const own = json.entries.filter((each: { actor: string }) => each.actor === "dave");
      return own.reduce((sum: number, each: { times: number }) => sum + each.times, 0) === 3;
    });
    const { json: made } = await client.request(
      "POST",
      "/api/v1/system/keys",
      { name: "audited", role: "consume" },
      as({ sub: "erin", role: "admin" }),
    );
    assert.equal((await entryOf("erin")).target, `name=audited role=consume id=${made.id}`);
    const refused = await entryOf("dave");
    assert.deepEqual([refused.action, refused.status], ["DELETE /api/v1/resources/queues/:queue", 403]);
  });

  test("pages of other origins are shut out", async () => {
    const { headers } = await client.request("OPTIONS", "/api/v1/push", undefined, {
      headers: { origin: "https://elsewhere.example" },
    });
    assert.equal(headers["access-control-allow-origin"], undefined);
    for (const path of ["/metrics/prometheus", "/metrics", "/health", "/docs", "/api/v1/dlq"]) {
      const answer = await client.request("GET", path, undefined, {
        headers: { origin: "https://elsewhere.example" },
      });
      const names = Object.keys({ ...answer.headers, ...headers }).filter((name) =>
        name.startsWith("access-control"),
      );
      assert.deepEqual(names, [], path);
    }
  });

  test("no secret is in the log", () => {
    const output = system.broker.output();
    for (const secret of [SECRET, ADMIN_KEY]) assert.ok(!output.includes(secret));
    assert.doesNotMatch(output, /qk_[0-9a-f]+_|eyJ/);
  });
});

test("figures that name queues can be taken out of what is open", async () => {
  const system = await startSystem({ JWT_ENABLED: "true", JWT_SECRET: SECRET, JWT_SKIP_PATHS: "/health" });
  try {
    const statusOf = async (path: string, claims?: Record<string, unknown>) =>
      (await system.client.request("GET", path, undefined, claims && bearer(token(claims)))).status;
    assert.equal(await statusOf("/health"), 200);
    for (const path of ["/metrics", "/metrics/prometheus"]) {
      assert.equal(await statusOf(path), 401);
      assert.equal(await statusOf(path, { role: "produce" }), 403);
      assert.equal(await statusOf(path, { role: "read-only", queues: ["a"] }), 403, "they name other queues");
      assert.equal(await statusOf(path, { role: "read-only" }), 200);
    }
  } finally {
    await system.stop();
  }
});

describe("with limits", () => {
  let system: System;
  before(async () => {
    system = await startSystem({
      QUEEN_RATE_LIMIT: "50",
      QUEEN_MAX_WAITING_POPS: "2",
      QUEEN_CORS_ORIGINS: "https://one.example,https://two.example",
    });
  });
  after(() => system.stop());

  test("too many pops that wait, and too many requests, are 429 with Retry-After", async () => {
    const { client } = system;
    const waiting = [1, 2].map(() => client.request("GET", "/api/v1/pop/queue/none?wait=true&timeout=3000"));
    await until("both wait", async () => (await client.request("GET", "/metrics")).json.pops.parked === 2);
    const third = await client.request("GET", "/api/v1/pop/queue/none?wait=true&timeout=1000");
    assert.equal(third.status, 429);
    assert.match(third.json.error, /QUEEN_MAX_WAITING_POPS/);
    for (const { status } of await Promise.all(waiting)) assert.equal(status, 204);
    const again = await client.request("GET", "/api/v1/pop/queue/none?wait=true&timeout=1");
    assert.equal(again.status, 204, "who no longer waits is no longer counted");

    const many = await Promise.all(Array.from({ length: 300 }, () => client.request("GET", "/livez")));
    const refused = many.filter(({ status }) => status === 429);
    assert.ok(refused.length > 0 && refused.length < 300, `${refused.length} refused`);
    assert.ok(Number(refused[0]!.headers["retry-after"]) >= 1);
    await until("it is let in again", async () => (await client.request("GET", "/livez")).status === 200);
  });

  test("only listed origins may use the interface", async () => {
    const originOf = async (origin: string) =>
      until("it is let in", async () => {
        const { status, headers } = await system.client.request("GET", "/livez", undefined, {
          headers: { origin },
        });
        return status === 200 && { allowed: headers["access-control-allow-origin"] };
      });
    assert.equal((await originOf("https://two.example")).allowed, "https://two.example");
    assert.equal((await originOf("https://three.example")).allowed, undefined);
  });
});

test("connections have a limit by address, and by credential where there is one", async () => {
  const system = await startSystem({
    JWT_ENABLED: "true",
    JWT_SECRET: SECRET,
    QUEEN_MAX_CONNECTIONS_PER_ADDRESS: "6",
    QUEEN_MAX_CONNECTIONS_PER_CREDENTIAL: "2",
  });
  const { client } = system;
  const wait = (sub: string) =>
    client.request(
      "GET",
      "/api/v1/pop/queue/q?wait=true&timeout=2000",
      undefined,
      bearer(token({ sub, role: "consume" })),
    );
  const parked = async () =>
    (await client.request("GET", "/metrics", undefined, bearer(token({ role: "read-only" })))).json.pops
      ?.parked;
  try {
    const both = [wait("alice"), wait("alice")];
    await until("two wait", async () => (await parked()) === 2);
    const third = await wait("alice");
    assert.deepEqual([third.status, third.headers["retry-after"]], [429, "1"]);
    assert.match(third.json.error, /QUEEN_MAX_CONNECTIONS_PER_CREDENTIAL/);
    const others = [wait("bob"), wait("carol")];
    await until("four wait", async () => (await parked()) === 4);
    const more = await Promise.all([1, 2, 3, 4].map(() => client.request("GET", "/livez")));
    const refused = more.filter(({ status }) => status === 429);
    assert.ok(refused.length > 0 && refused.length < 4, `${refused.length} refused`);
    assert.match(refused[0]!.json.error, /QUEEN_MAX_CONNECTIONS_PER_ADDRESS/);
    assert.equal(refused[0]!.headers["retry-after"], "1");
    for (const { status } of await Promise.all([...both, ...others])) assert.equal(status, 204);
    assert.equal((await wait("alice")).status, 204, "who is served no longer counts no longer");
  } finally {
    await system.stop();
  }
});

test("who is refused a connection and breaks it harms nobody", async () => {
  const system = await startSystem({ QUEEN_MAX_CONNECTIONS_PER_ADDRESS: "1" });
  const worker = async (): Promise<number> =>
    (await system.client.request("GET", "/metrics")).json.worker.pid;
  try {
    const before = await worker(); // on a connection that stays
    const port = Number(new URL(system.broker.url).port);
    for (let refused = 0; refused < 30; refused++) {
      const raw = await RawSocket.open(port);
      if (refused === 0) assert.deepEqual((await raw.answers(1, 5_000)).statuses, [429]);
      raw.send("GET /livez HTTP/1.1\r\n");
      raw.socket.resetAndDestroy();
    }
    assert.equal(await worker(), before);
  } finally {
    await system.stop();
  }
});

test("requests that are refused count against the limit of their address", async () => {
  const system = await startSystem({ JWT_ENABLED: "true", JWT_SECRET: SECRET, QUEEN_RATE_LIMIT: "20" });
  try {
    const send = () => system.client.request("GET", "/api/v1/dlq");
    const answers = await Promise.all(Array.from({ length: 100 }, send));
    const statuses = new Set(answers.map(({ status }) => status));
    assert.deepEqual([...statuses].sort(), [401, 429]);
  } finally {
    await system.stop();
  }
});

test("TLS from files, with client certificates, renewed without a restart", async () => {
  const folder = mkdtempSync(join(tmpdir(), "queen-tls-"));
  const fixture = (name: string): string => fileURLToPath(new URL(`../../fixtures/${name}`, import.meta.url));
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  copyFileSync(fixture("tls-cert.pem"), cert);
  copyFileSync(fixture("tls-key.pem"), key);
  const system = await startSystem({
    QUEEN_TLS_CERT_FILE: cert,
    QUEEN_TLS_KEY_FILE: key,
    QUEEN_TLS_CLIENT_CA_FILE: fixture("client-cert.pem"),
  });
  const ask = (withCertificate: boolean, ca: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const client = withCertificate
        ? { cert: readFileSync(fixture("client-cert.pem")), key: readFileSync(fixture("client-key.pem")) }
        : {};
      tlsRequest(
        new URL("/livez", system.broker.url.replace("http:", "https:")),
        { ...client, ca: readFileSync(fixture(ca)), agent: false },
        (response) => resolve(response.resume().statusCode!),
      )
        .once("error", reject)
        .end();
    });
  try {
    assert.equal(await ask(true, "tls-cert.pem"), 200);
    await assert.rejects(ask(false, "tls-cert.pem"), "a client without a certificate");
    await assert.rejects(ask(true, "tls-cert-2.pem"), "not yet");
    copyFileSync(fixture("tls-cert-2.pem"), cert);
    copyFileSync(fixture("tls-key-2.pem"), key);
    await until("the new certificate is shown", () =>
      ask(true, "tls-cert-2.pem").then(
        (status) => status === 200,
        () => false,
      ),
    );
  } finally {
    await system.stop();
    rmSync(folder, { recursive: true });
  }
});
