/** Users: who signs in by name and password, what he may do then, and when it ends. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { HttpClient } from "../support/http.ts";
import { type System, startSystem, until } from "../support/system.ts";

const ADMIN_KEY = "an-administrators-key-for-tests-only";
const USERS = "/api/v1/system/users";
const PASSWORD = "a-password-of-tests";
const admin = { headers: { authorization: `Bearer ${ADMIN_KEY}` } };
const PAGE = { headers: { "queen-page": "1" } };

describe("users", () => {
  let system: System;
  let client: HttpClient;
  let elsewhere: HttpClient;
  before(async () => {
    system = await startSystem({ QUEEN_ADMIN_KEY: ADMIN_KEY, LOG_LEVEL: "debug" });
    client = system.client;
    elsewhere = (await system.another({ QUEEN_ADMIN_KEY: ADMIN_KEY })).client;
  });
  after(() => system.stop());

  const add = (name: string, more: object = {}) =>
    client.request("POST", USERS, { name, password: PASSWORD, role: "read-only", ...more }, admin);
  const signIn = (user: string, password: string, by = client) =>
    by.request("POST", "/api/v1/session", { user, password }, PAGE);
  const cookieOf = (answer: Awaited<ReturnType<typeof signIn>>): string =>
    answer.headers["set-cookie"]![0]!.split(";")[0]!;
  const nameOf = async (cookie: string, by = client): Promise<string | null> =>
    (await by.request("GET", "/api/v1/session", undefined, { headers: { cookie } })).json.name;

  test("a user signs in by name and password, on every broker, with his role and queues", async () => {
    const made = await add("ada", { role: "read-write", queues: ["mine*"] });
    assert.equal(made.status, 201);
    assert.deepEqual([made.json.name, made.json.role, made.json.queues], ["ada", "read-write", ["mine*"]]);
    const signedIn = await signIn("ada", PASSWORD);
    assert.equal(signedIn.status, 200);
    assert.deepEqual([signedIn.json.name, signedIn.json.passwords], ["user ada", true]);
    assert.match(signedIn.headers["set-cookie"]![0]!, /; HttpOnly; SameSite=Strict$/);
    const cookie = cookieOf(signedIn);
    assert.equal(await nameOf(cookie, elsewhere), "user ada");
    const push = (queue: string, headers: Record<string, string>) =>
      elsewhere.request("POST", "/api/v1/push", { items: [{ queue, payload: 1 }] }, { headers });
    assert.equal((await push("mine.1", { cookie, ...PAGE.headers })).status, 201);
    assert.equal((await push("other", { cookie, ...PAGE.headers })).status, 403);
    assert.equal((await push("mine.1", { cookie })).status, 403, "without the header of the page");
    const popped = await client.request("GET", "/api/v1/pop/queue/mine.1", undefined, admin);
    assert.equal(popped.json.messages[0].producerSub, "user:ada");
    const forged = await client.request("POST", "/api/v1/session", { user: "ada", password: PASSWORD });
    assert.deepEqual([forged.status, forged.headers["set-cookie"]], [400, undefined]);
  });

  test("a wrong password and a user that does not exist are answered alike", async () => {
    await add("bea");
    const wrong = await signIn("bea", "another-password");
    const nobody = await signIn("nobody at all", "another-password");
    for (const { status, json, headers } of [wrong, nobody]) {
      assert.deepEqual([status, json], [401, { error: "Wrong user or password", code: "UNAUTHENTICATED" }]);
      assert.equal(headers["set-cookie"], undefined);
    }
    await add("former", { expiresAt: "2020-01-01T00:00:00Z" });
    assert.equal((await signIn("former", PASSWORD)).status, 401);
  });

  test("signing out, another password and the user's removal end sessions on every broker", async () => {
    await add("cleo");
    const ended = (cookie: string) =>
      until("the session is over", async () =>
        (await Promise.all([client, elsewhere].map((by) => nameOf(cookie, by)))).every(
          (name) => name === null,
        ),
      );
    const first = cookieOf(await signIn("cleo", PASSWORD));
    const second = cookieOf(await signIn("cleo", PASSWORD, elsewhere));
    assert.equal(await nameOf(first, elsewhere), "user cleo");
    await client.request("DELETE", "/api/v1/session", undefined, {
      headers: { cookie: first, ...PAGE.headers },
    });
    await ended(first);
    assert.equal(await nameOf(second), "user cleo", "other browsers stay signed in");

    const password = "another-password-of-tests";
    const changed = await client.request("POST", `${USERS}/cleo/password`, { password }, admin);
    assert.deepEqual([changed.status, changed.json], [200, { changed: true, name: "cleo" }]);
    await ended(second);
    assert.equal((await signIn("cleo", PASSWORD)).status, 401);
    const third = cookieOf(await signIn("cleo", password));
    assert.equal(await nameOf(third, elsewhere), "user cleo");

    const { json } = await client.request("GET", USERS, undefined, admin);
    assert.equal(json.users.find(({ name }: { name: string }) => name === "cleo").sessions, 1);
    assert.equal((await client.request("DELETE", `${USERS}/cleo`, undefined, admin)).status, 200);
    await ended(third);
    assert.equal((await signIn("cleo", password)).status, 401);
    assert.equal((await client.request("DELETE", `${USERS}/cleo`, undefined, admin)).status, 404);
    assert.equal((await client.request("POST", `${USERS}/cleo/password`, { password }, admin)).status, 404);
  });

  test("names are taken once, and a password that is too short or no text is not repeated", async () => {
    assert.equal((await add("dora")).status, 201);
    assert.deepEqual((await add("dora")).json.code, "CONFLICT");
    const short = await add("eve", { password: "tooshort" });
    assert.deepEqual(
      [short.status, short.json.error],
      [400, "password must be at least 12 characters long."],
    );
    const odd = await add("eve", { password: { secret: 123_456_789 } });
    assert.deepEqual([odd.status, odd.json.error], [400, "password must be a string."]);
    assert.equal((await client.request("POST", "/api/v1/session", { user: "dora" }, PAGE)).status, 400);
  });

  test("who guesses is told to wait, also with the right password by then; others are not", async () => {
    await add("fay");
    await add("gil");
    const open = cookieOf(await signIn("fay", PASSWORD));
    const statuses: number[] = [];
    while (!statuses.includes(429)) {
      const { status, headers } = await signIn("fay", `guess-number-${statuses.length}`);
      statuses.push(status);
      if (status === 429) assert.ok(Number(headers["retry-after"]) >= 1);
      assert.ok(statuses.length < 30, "guesses come to an end");
    }
    assert.deepEqual([...new Set(statuses)], [401, 429]);
    assert.equal((await signIn("fay", PASSWORD)).status, 429);
    assert.equal(await nameOf(open), "user fay", "who is signed in stays so");
    assert.equal((await signIn("gil", PASSWORD)).status, 200);
  });

  test("what is done with users is audited; no password is stored, logged or listed", async () => {
    await add("hal");
    await client.request("POST", `${USERS}/hal/password`, { password: "hal-has-another" }, admin);
    await signIn("hal", "hal-has-another");
    const entries = await until("all is audited", async () => {
      const { json } = await client.request("GET", "/api/v1/system/audit?limit=1000", undefined, admin);
      const own = json.entries.filter(({ target }: { target: string }) => /\bhal\b/.test(target));
      return own.length >= 3 ? own : undefined;
    });
    assert.deepEqual(
      entries.map(({ action, target }: { action: string; target: string }) => `${action}: ${target}`),
      [
        "POST /api/v1/session: user=hal",
        "POST /api/v1/system/users/:user/password: user=hal",
        "POST /api/v1/system/users: name=hal role=read-only",
      ],
    );
    const stored = await system.database.query(
      "select (select json_agg(u) from queen.users u)::text || (select json_agg(s) from queen.user_sessions s)::text || " +
        "(select json_agg(a) from queen.audit_log a)::text as text",
    );
    const listed = await client.request("GET", USERS, undefined, admin);
    const texts = [String(stored[0]!.text), listed.text, system.broker.output()];
    for (const text of texts)
      assert.doesNotMatch(text, /a-password-of|guess-number|hal-has-another|another-pass/);
    assert.doesNotMatch(listed.text, /scrypt/);
    assert.match(system.broker.output(), /"event":"user\.refused".*"user":"fay"/);
    assert.doesNotMatch(system.broker.output(), /nobody at all/);
    assert.doesNotMatch(system.broker.output(), /qs_[0-9a-f]{8}_/);
  });
});

test("where only tokens count there are no users, and the session says so", async () => {
  const system = await startSystem({
    JWT_ENABLED: "true",
    JWT_SECRET: "a secret for tests that is long enough",
  });
  try {
    const { json } = await system.client.request("GET", "/api/v1/session");
    assert.deepEqual([json.authentication, json.passwords], [true, false]);
    const { status } = await system.client.request(
      "POST",
      "/api/v1/session",
      { user: "a", password: "b" },
      PAGE,
    );
    assert.equal(status, 409);
  } finally {
    await system.stop();
  }
});
