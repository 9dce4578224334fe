/** What browsers need of the broker: the page's files, sessions that cannot be forged, the live stream. */
import assert from "node:assert/strict";
import { get } from "node:http";
import { after, before, describe, test } from "node:test";
import { gunzipSync } from "node:zlib";
import type { HttpClient } from "../support/http.ts";
import { type System, startSystem } from "../support/system.ts";

const ADMIN_KEY = "an-administrators-key-for-tests-only";
const bearer = { headers: { authorization: `Bearer ${ADMIN_KEY}` } };
const PAGE = { "queen-page": "1" };

describe("for browsers", () => {
  let system: System;
  let client: HttpClient;
  before(async () => {
    system = await startSystem({ QUEEN_ADMIN_KEY: ADMIN_KEY });
    client = system.client;
  });
  after(() => system.stop());

  const signIn = async (credential: string): Promise<string> => {
    const { status, headers } = await client.request(
      "POST",
      "/api/v1/session",
      { credential },
      { headers: PAGE },
    );
    assert.equal(status, 200);
    return headers["set-cookie"]![0]!.split(";")[0]!;
  };

  test("the page is served with a strict policy; its files are kept for ever, the document is not", async () => {
    const home = await client.request("GET", "/");
    assert.equal(home.status, 200);
    const policy = String(home.headers["content-security-policy"]);
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
    assert.doesNotMatch(policy, /unsafe|https?:/);
    assert.equal(home.headers["cache-control"], "no-cache");
    assert.doesNotMatch(home.text, /<style|<script>|style=|\son\w+=|https?:\/\/|(src|href)="\//);
    const files = [...home.text.matchAll(/(?:src|href)="(assets\/[^"]+)"/g)].map(([, name]) => name!);
    assert.equal(files.length, 3);
    for (const file of files) {
      const { status, headers } = await client.request("GET", `/${file}`);
      assert.equal(status, 200, file);
      assert.match(String(headers["cache-control"]), /immutable/);
      assert.match(String(headers["content-type"]), /javascript|css|svg/);
      const again = await client.request("GET", `/${file}`, undefined, {
        headers: { "if-none-match": String(headers.etag) },
      });
      assert.deepEqual([again.status, again.text], [304, ""]);
    }
    for (const name of ["nothing.js", "..%2findex.html", "%2e%2e%2f%2e%2e%2fpackage.json"]) {
      assert.equal((await client.request("GET", `/assets/${name}`)).status, 404, name);
    }
  });

  test("files are sent compressed to those who ask for it", async () => {
    const bytes = await new Promise<Buffer>((resolve, reject) => {
      get(`${system.broker.url}/`, { headers: { "accept-encoding": "gzip" } }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk) => chunks.push(chunk));
        response.on("end", () => resolve(Buffer.concat(chunks)));
      }).on("error", reject);
    });
    assert.equal(gunzipSync(bytes).toString(), (await client.request("GET", "/")).text);
  });

  test("a session is a cookie that scripts cannot read and other sites cannot use", async () => {
    const { headers, json } = await client.request(
      "POST",
      "/api/v1/session",
      { credential: ADMIN_KEY },
      { headers: { ...PAGE, "x-forwarded-proto": "https" } },
    );
    assert.deepEqual(json.roles, ["admin"]);
    const [cookie] = headers["set-cookie"]!;
    assert.match(cookie!, /; HttpOnly; SameSite=Strict; Secure$/);
    assert.doesNotMatch(cookie!, /path=|domain=/i);
    assert.doesNotMatch(await signIn(ADMIN_KEY), /Secure/);
  });

  test("with a session one can look; whatever changes something, or pops, needs the header of the page", async () => {
    const cookie = await signIn(ADMIN_KEY);
    const status = async (method: string, path: string, more: Record<string, string> = {}) =>
      (
        await client.request(method, path, method === "POST" ? {} : undefined, {
          headers: { cookie, ...more },
        })
      ).status;
    assert.equal(await status("GET", "/api/v1/resources/overview"), 200);
    assert.equal(await status("GET", "/api/v1/system/doctor"), 200);
    for (const [method, path] of [
      ["POST", "/api/v1/push"],
      ["GET", "/api/v1/pop/queue/any"],
      ["DELETE", "/api/v1/resources/queues/any"],
      ["POST", "/api/v1/system/keys"],
    ] as const) {
      assert.equal(await status(method, path), 403, `${method} ${path}`);
      assert.notEqual(await status(method, path, PAGE), 403, `${method} ${path} from the page`);
    }
    // Nobody is signed in by another site either.
    const forged = await client.request("POST", "/api/v1/session", { credential: ADMIN_KEY });
    assert.deepEqual([forged.status, forged.headers["set-cookie"]], [400, undefined]);
    // Where both are there, the header counts.
    assert.equal(
      await status("GET", "/api/v1/resources/overview", { authorization: "Bearer nonsense" }),
      401,
    );
  });

  test("the session says what its owner may do, and ends with its key", async () => {
    const nobody = await client.request("GET", "/api/v1/session");
    assert.deepEqual(
      [nobody.json.authentication, nobody.json.name, nobody.json.access],
      [true, null, ["open"]],
    );
    const made = await client.request(
      "POST",
      "/api/v1/system/keys",
      { name: "looker", role: "read-only", queues: ["a.*"] },
      bearer,
    );
    const cookie = await signIn(made.json.key);
    const { json } = await client.request("GET", "/api/v1/session", undefined, { headers: { cookie } });
    assert.deepEqual([json.roles, json.access, json.queues], [["read-only"], ["open", "read"], ["a.*"]]);
    await client.request("DELETE", `/api/v1/system/keys/${made.json.id}`, undefined, bearer);
    const isKnown = async (): Promise<boolean> =>
      (await client.request("GET", "/api/v1/session", undefined, { headers: { cookie } })).json.name !== null;
    while (await isKnown()) await new Promise((resolve) => setTimeout(resolve, 50));
    const gone = await client.request("DELETE", "/api/v1/session", undefined, {
      headers: { ...PAGE, cookie },
    });
    assert.match(gone.headers["set-cookie"]![0]!, /^queen_session=; Max-Age=0/);
  });

  test("what is wrong with a credential is said at the sign-in", async () => {
    for (const [credential, expected] of [
      ["nonsense", 401],
      ["x".repeat(3_000), 400],
      ["", 400],
    ] as const) {
      const answer = await client.request("POST", "/api/v1/session", { credential }, { headers: PAGE });
      assert.equal(answer.status, expected);
      assert.equal(answer.headers["set-cookie"], undefined);
    }
  });

  test("the stream tells of changes, and a stopping broker ends it at once", async () => {
    const other = await system.another();
    const heard: { path: string; status: number; body: { queues?: unknown[] } }[] = [];
    let closed: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const paths = "/api/v1/resources/queues?search=stream /api/v1/nothing";
    const url = `${other.broker.url}/api/v1/stream?${new URLSearchParams({ follow: paths })}`;
    let text = "";
    const response = await new Promise<{ contentType: unknown }>((resolve, reject) => {
      get(url, { headers: { authorization: `Bearer ${ADMIN_KEY}` } }, (answer) => {
        answer.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
          const events = text.split("\n\n");
          text = events.pop()!;
          for (const event of events) if (event.startsWith("data: ")) heard.push(JSON.parse(event.slice(6)));
        });
        answer.once("close", closed);
        answer.once("error", () => undefined);
        resolve({ contentType: answer.headers["content-type"] });
      }).on("error", reject);
    });
    assert.equal(response.contentType, "text/event-stream");
    const until = async (isThere: () => boolean): Promise<void> => {
      while (!isThere()) await new Promise((resolve) => setTimeout(resolve, 20));
    };
    await until(() => heard.some(({ body }) => body.queues?.length === 0));
    assert.equal(heard.find(({ path }) => path === "/api/v1/nothing")?.status, 404);
    await client.request("POST", "/api/v1/configure", { queue: "streamed" }, bearer);
    await until(() => heard.some(({ body }) => body.queues?.length === 1));
    const stopped = other.broker.stop();
    await ended;
    assert.equal(await stopped, 0);
  });
});
