/** API keys from the command line: the first one too, with and without a broker, on any database. */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startBrokerProcess } from "../support/broker.ts";
import { type CommandResult, runCommand } from "../support/broker-command.ts";
import { createDatabase } from "../support/database.ts";
import { HttpClient } from "../support/http.ts";
import { newQueue, type System, startSystem, until } from "../support/system.ts";

const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

describe("on a database that is given", () => {
  let system: System;
  before(async () => {
    system = await startSystem({ QUEEN_API_KEYS: "on" });
  });
  after(() => system.stop());

  const keys = (...argv: string[]): Promise<CommandResult> =>
    runCommand(["keys", ...argv], { DATABASE_URL: system.database.url });

  test("the first key lets somebody in where nobody had one", async () => {
    const { client } = system;
    assert.equal((await client.request("GET", "/api/v1/system/keys")).status, 401);
    const made = await keys("create", "--name", "first", "--role", "admin", "--expires", "30d");
    assert.equal(made.code, 0, made.stderr);
    const [key] = /^qk_\w{8}_\S{43}$/m.exec(made.stdout)!;
    const { status, json } = await client.request("GET", "/api/v1/system/keys", undefined, bearer(key));
    assert.equal(status, 200);
    assert.equal(json.keys[0].name, "first");
    assert.ok(Date.parse(json.keys[0].expiresAt) > Date.now());
  });

  test("role, queues and expiry are those of the command, and a revoked key is refused", async () => {
    const made = await keys(
      ...[
        "create",
        "--name",
        "ci",
        "--role",
        "produce",
        "--queues",
        "orders.*,bills",
        "--expires",
        "1h",
        "--json",
      ],
    );
    const { id, key, queues, expiresAt } = JSON.parse(made.stdout);
    assert.deepEqual(queues, ["orders.*", "bills"]);
    assert.ok(Date.parse(expiresAt) > Date.now());
    const push = async (queue: string): Promise<number> => {
      const items = [{ queue, payload: 1 }];
      return (await system.client.request("POST", "/api/v1/push", { items }, bearer(key))).status;
    };
    assert.equal(await push("orders.new"), 201);
    assert.equal(await push("bills"), 201);
    assert.equal(await push(newQueue()), 403);
    assert.deepEqual(JSON.parse((await keys("revoke", id, "--json")).stdout), { revoked: true, id });
    await until("the key is refused", async () => (await push("bills")) === 401);
    assert.match(
      (await keys("list")).stdout,
      new RegExp(`^${id} +ci +produce +orders\\.\\*,bills +revoked `, "m"),
    );
  });

  test("the list shows no secret, and what was done is in the audit log", async () => {
    const made = JSON.parse((await keys("create", "--name", "quiet", "--role", "consume", "--json")).stdout);
    for (const { stdout } of [await keys("list"), await keys("list", "--json")]) {
      assert.ok(stdout.includes("quiet"));
      assert.ok(!stdout.includes(made.key.split("_").slice(2).join("_")));
    }
    const rows = await system.database.query(
      "select actor, target from queen.audit_log where action = 'keys create' order by id desc limit 1",
    );
    assert.equal(rows[0]!.target, `key=${made.id} name=quiet`);
    assert.match(rows[0]!.actor, /^command line \(.+@.+\)$/);
  });

  test("every mistake is a sentence that says what to do", async () => {
    const wrong = await keys("create", "--role", "boss", "--expires", "2020-01-01T00:00:00Z", "extra");
    assert.equal(wrong.code, 1);
    for (const part of [/--name is needed/, /--role must be one of admin/, /--expires must be/, /"extra"/]) {
      assert.match(wrong.stderr, part);
    }
    assert.match((await keys("destroy")).stderr, /create, list or revoke/);
    assert.match((await keys("revoke", "999")).stderr, /There is no key 999; keys list shows them/);
    assert.match((await keys("list", "--nmae")).stderr, /--nmae/);
    assert.match((await keys("--help")).stdout, /Usage: queen-broker keys create/);
    const away = await runCommand(["keys", "list"], {
      DATABASE_URL: "postgres://u:hidden-word@127.0.0.1:1/d",
    });
    assert.equal(away.code, 1);
    assert.match(away.stderr, /cannot be used.*start it, or correct DATABASE_URL/);
    assert.doesNotMatch(away.stderr, /hidden-word/);
  });

  test("a database without Queen's tables is left as it is", async () => {
    const empty = await createDatabase({ empty: true });
    try {
      const { code, stderr } = await runCommand(["keys", "list"], { DATABASE_URL: empty.url });
      assert.equal(code, 1);
      assert.match(stderr, /start a broker of it there once/);
      assert.deepEqual(await empty.query("select 1 from pg_namespace where nspname = 'queen'"), []);
    } finally {
      await empty.drop();
    }
  });
});

test("with the broker's own PostgreSQL keys are made while the broker runs, and while it does not", async () => {
  const folder = mkdtempSync(join(tmpdir(), "queen-keys-"));
  chmodSync(folder, 0o711); // as root, PostgreSQL runs as another user, who must get in
  const env = { QUEEN_DATA_DIR: join(folder, "data"), QUEEN_API_KEYS: "on" };
  const keys = (...argv: string[]): Promise<CommandResult> => runCommand(["keys", ...argv], env);
  const make = async (name: string): Promise<string> => {
    const made = await keys("create", "--name", name, "--role", "admin", "--json");
    assert.equal(made.code, 0, made.stderr);
    return JSON.parse(made.stdout).key;
  };
  const isLetIn = async (url: string, key: string): Promise<boolean> => {
    const client = new HttpClient(url);
    const { status } = await client.request("GET", "/api/v1/system/keys", undefined, bearer(key));
    client.close();
    return status === 200;
  };
  try {
    const none = await keys("list");
    assert.equal(none.code, 1);
    assert.match(none.stderr, /There is no database in .*: start the broker there once/);

    const broker = await startBrokerProcess({ databaseUrl: "", env });
    const beside = await make("beside a broker");
    assert.ok(await isLetIn(broker.url, beside));
    await broker.stop();

    const without = await make("without a broker");
    const again = await startBrokerProcess({ databaseUrl: "", env });
    assert.ok(await isLetIn(again.url, without));
    assert.ok(await isLetIn(again.url, beside));
    await again.stop();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
