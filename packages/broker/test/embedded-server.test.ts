/** The built-in PostgreSQL, for real: starts, keeps its data, and recovers from what can happen to it. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, type TestContext, test } from "node:test";
import pg from "pg";
import { accountFor } from "../src/postgres/embedded-account.ts";
import { findInstalledBinaries, prepareBinaries } from "../src/postgres/embedded-binaries.ts";
import { serverProcesses } from "../src/postgres/embedded-owner.ts";
import {
  defaultDataDir,
  type EmbeddedServer,
  type EmbeddedServerOptions,
  startEmbeddedServer,
} from "../src/postgres/embedded-server.ts";

const base = mkdtempSync(join(tmpdir(), "queen-embedded-"));
chmodSync(base, 0o711); // as root, the server runs as another user, who must get in
after(() => rmSync(base, { recursive: true, force: true }));

const log = (): void => undefined;

async function start(t: TestContext, dataDir: string, more: Partial<EmbeddedServerOptions> = {}) {
  const server = await startEmbeddedServer({ dataDir, log, settings: { shared_buffers: "16MB" }, ...more });
  t.after(() => server.stop());
  return server;
}

async function query(server: Pick<EmbeddedServer, "settings">, text: string): Promise<unknown[]> {
  const { hosts, database, user, password } = server.settings;
  const client = new pg.Client({ ...hosts[0]!, database, user, password: password! });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** Another process that owns a server on the folder, until it is killed. */
async function startInChild(t: TestContext, dataDir: string): Promise<{ child: ChildProcess; pid: number }> {
  const module = new URL("../src/postgres/embedded-server.js", import.meta.url).href;
  const script = `
    const { startEmbeddedServer } = await import(${JSON.stringify(module)});
    const options = { dataDir: ${JSON.stringify(dataDir)}, log() {}, settings: { shared_buffers: "16MB" } };
    const server = await startEmbeddedServer(options);
    console.log(server.pid);
    process.on("message", () => process.exit(3));`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  t.after(() => child.kill("SIGKILL"));
  const [line] = await once(createInterface(child.stdout!), "line");
  return { child, pid: Number(line) };
}

async function killed(child: ChildProcess): Promise<void> {
  child.kill("SIGKILL");
  await once(child, "exit");
}

test("a server is durable, local, asks for its password, and keeps data over a restart", async (t) => {
  const dataDir = join(base, "restart");
  const first = await start(t, dataDir);
  assert.equal(first.settings.source, "embedded");
  assert.equal(first.dataDir, dataDir);
  const [facts] = await query(
    first,
    `select current_setting('fsync') fsync, current_setting('synchronous_commit') synchronous_commit,
            current_setting('full_page_writes') full_page_writes, current_setting('data_checksums') checksums,
            current_setting('listen_addresses') listens, current_setting('wal_level') wal_level,
            current_setting('server_encoding') encoding, datcollate, datlocale
       from pg_database where datname = current_database()`,
  );
  assert.deepEqual(facts, {
    fsync: "on",
    synchronous_commit: "on",
    full_page_writes: "on",
    checksums: "on",
    listens: "127.0.0.1",
    wal_level: "replica",
    encoding: "UTF8",
    datcollate: "C",
    datlocale: "C.UTF-8",
  });
  assert.equal(statSync(join(dataDir, "password")).mode & 0o777, 0o600);
  const { port } = first.settings.hosts[0]!;
  const onTcp = { ...first.settings, hosts: [{ host: "127.0.0.1", port }] };
  await query({ settings: onTcp }, "create table kept as select 'ä' as word");
  await assert.rejects(query({ settings: { ...onTcp, password: "wrong" } }, "select 1"), { code: "28P01" });
  let exited = false;
  void first.exited.then(() => {
    exited = true;
  });
  await first.stop();
  await first.stop();
  assert.equal(exited, false, "a stopped server has not ended by itself");
  assert.deepEqual(serverProcesses(join(dataDir, "postgres")), []);
  assert.equal(existsSync(join(dataDir, "owner.json")), false);

  const second = await start(t, dataDir);
  assert.deepEqual(await query(second, "select word from kept"), [{ word: "ä" }]);
  assert.equal(second.settings.hosts[0]!.port, port);
});

test("a path with spaces, commas, quotes and other letters works", async (t) => {
  const server = await start(t, join(base, "käse, 'q' 数据 x"));
  assert.deepEqual(await query(server, "select 1 as n"), [{ n: 1 }]);
});

test("a path too long for a socket works over TCP", async (t) => {
  const server = await start(t, join(base, "long".repeat(30)));
  assert.equal(server.settings.hosts[0]!.host, "127.0.0.1");
  assert.deepEqual(await query(server, "select 1 as n"), [{ n: 1 }]);
});

test("a folder in use is refused, in this process and from another one", async (t) => {
  const dataDir = join(base, "in-use");
  const { child } = await startInChild(t, dataDir);
  const refusal = new RegExp(`^Process ${child.pid} is using the data folder .*QUEEN_DATA_DIR.*DATABASE_URL`);
  await assert.rejects(startEmbeddedServer({ dataDir, log }), { message: refusal });
  const exited = once(child, "exit");
  child.send("leave by process.exit()");
  await exited;
  await start(t, dataDir);
  const again = new RegExp(`^Process ${process.pid} is using`);
  await assert.rejects(startEmbeddedServer({ dataDir, log }), { message: again });
});

test("the server of a killed owner is stopped, and its data is there", async (t) => {
  const dataDir = join(base, "orphan");
  const owner = await startInChild(t, dataDir);
  await killed(owner.child);
  assert(
    serverProcesses(join(dataDir, "postgres")).includes(owner.pid),
    "the server outlives a killed owner",
  );
  const lines: string[] = [];
  const server = await start(t, dataDir, { log: (line) => lines.push(line) });
  assert(lines.some((line) => line.includes(`process ${owner.pid}`)));
  assert(!serverProcesses(join(dataDir, "postgres")).includes(owner.pid));
  await query(server, "create table kept as select 1 as n");

  // Everything at once: broker and server killed, and another process has the server's id now.
  await server.stop();
  const doomed = await startInChild(t, dataDir);
  await killed(doomed.child);
  for (const pid of serverProcesses(join(dataDir, "postgres"))) killIfThere(pid);
  const pidFile = join(dataDir, "postgres", "postmaster.pid");
  writeFileSync(pidFile, readFileSync(pidFile, "utf8").replace(/^\d+/, String(process.pid)));
  const recovered = await start(t, dataDir);
  assert.deepEqual(await query(recovered, "select n from kept"), [{ n: 1 }]);
});

test("an owner with a used-again id, or from another machine that is silent, is dead", async (t) => {
  const dataDir = join(base, "reused");
  await (await start(t, dataDir)).stop();
  const owner = join(dataDir, "owner.json");
  const server = await start(t, dataDir);
  const mine = JSON.parse(readFileSync(owner, "utf8"));
  await server.stop();
  writeFileSync(owner, JSON.stringify({ ...mine, started: "1" }));
  await (await start(t, dataDir)).stop();
  writeFileSync(owner, JSON.stringify({ ...mine, place: "elsewhere" }));
  await (await start(t, dataDir)).stop();
});

test("a server that ends by itself says why, and can be started again", async (t) => {
  const dataDir = join(base, "dies");
  const server = await start(t, dataDir);
  process.kill(server.pid, "SIGKILL");
  assert.match(await server.exited, /signal SIGKILL.*server\.log/);
  await server.stop();
  const again = await start(t, dataDir);
  assert.deepEqual(await query(again, "select 1 as n"), [{ n: 1 }]);
});

test("a server that Queen did not start is left alone", async (t) => {
  const dataDir = join(base, "foreign");
  const server = await start(t, dataDir);
  renameSync(join(dataDir, "owner.json"), join(dataDir, "owner.aside"));
  const says = new RegExp(`as process ${server.pid}, and Queen did not start it`);
  await assert.rejects(startEmbeddedServer({ dataDir, log }), { message: says });
  assert.deepEqual(await query(server, "select 1 as n"), [{ n: 1 }]);
  renameSync(join(dataDir, "owner.aside"), join(dataDir, "owner.json"));
});

test("a half-made folder is made again; other folders are refused", async (t) => {
  const dataDir = join(base, "half");
  mkdirSync(join(dataDir, "postgres.unfinished-1", "base"), { recursive: true });
  mkdirSync(join(dataDir, "postgres"));
  const server = await start(t, dataDir);
  assert.deepEqual(
    readdirSync(dataDir).filter((name) => name.includes("unfinished")),
    [],
  );
  await server.stop();

  const refused = async (message: RegExp): Promise<void> => {
    await assert.rejects(startEmbeddedServer({ dataDir, log }), { message });
    assert.equal(existsSync(join(dataDir, "owner.json")), false);
  };
  const version = join(dataDir, "postgres", "PG_VERSION");
  writeFileSync(version, "12\n");
  await refused(/was made by PostgreSQL 12, and this is PostgreSQL 18/);
  rmSync(version);
  await refused(/holds files but no PostgreSQL database/);
  writeFileSync(version, "18\n");
  rmSync(join(dataDir, "postgres", "global", "pg_control"));
  await refused(/did not start: .*exit code 2.*could not find the database system/s);
  const file = join(base, "a-file");
  writeFileSync(file, "");
  await assert.rejects(startEmbeddedServer({ dataDir: file, log }), { message: /QUEEN_DATA_DIR/ });
  await assert.rejects(startEmbeddedServer({ dataDir: join(dataDir, "postgres"), log }), {
    message: /data of another PostgreSQL/,
  });
});

test("a lost password is replaced", async (t) => {
  const dataDir = join(base, "password");
  const first = await start(t, dataDir);
  await first.stop();
  rmSync(join(dataDir, "password"));
  const second = await start(t, dataDir);
  assert.notEqual(second.settings.password, first.settings.password);
  assert.deepEqual(await query(second, "select 1 as n"), [{ n: 1 }]);
});

test("the port and the settings can be chosen, but not against durability", async (t) => {
  const dataDir = join(base, "chosen");
  const first = await start(t, dataDir);
  const { port } = first.settings.hosts[0]!;
  const other = join(base, "chosen-2");
  await assert.rejects(startEmbeddedServer({ dataDir: other, port, log }), {
    message: /^Port \d+ .*is taken/,
  });
  await first.stop();
  const server = await start(t, other, { port, settings: { max_connections: "23" } });
  assert.equal(server.settings.hosts[0]!.port, port);
  assert.deepEqual(await query(server, "show max_connections"), [{ max_connections: "23" }]);
  await server.stop();
  for (const settings of [{ fsync: "off" }, { FSYNC: "off" }, { port: "1" }, { "a b": "1" }])
    await assert.rejects(startEmbeddedServer({ dataDir: other, log, settings }), /PostgreSQL setting/);
  await assert.rejects(startEmbeddedServer({ dataDir: other, log, settings: { no_such: "1" } }), {
    message: /did not start.*unrecognized configuration parameter/s,
  });
});

test("binaries work without their links and modes, and from a copy where they must be moved", async () => {
  const installed = findInstalledBinaries();
  const bare = join(base, "it's $5", "native");
  cpSync(installed.nativeDir, bare, { recursive: true, verbatimSymlinks: true });
  const libraries = readdirSync(join(bare, "lib")).map((name) => join(bare, "lib", name));
  for (const path of libraries) if (lstatSync(path).isSymbolicLink()) rmSync(path);
  for (const name of readdirSync(join(bare, "bin"))) chmodSync(join(bare, "bin", name), 0o644);

  const dataDir = join(base, "binaries");
  mkdirSync(join(dataDir, "binaries-older"), { recursive: true });
  const account = accountFor(dataDir);
  const lines: string[] = [];
  const prepare = (nativeDir: string) =>
    prepareBinaries({ ...installed, nativeDir }, account, dataDir, (line) => lines.push(line));
  const copied = await prepare(bare);
  assert.equal(copied.versionMajor, 18);
  assert(copied.postgres.startsWith(dataDir));
  assert.deepEqual(readdirSync(dataDir), [`binaries-${installed.key}`]);
  assert.equal((await prepare(bare)).postgres, copied.postgres);
  assert.equal(lines.length, 1);

  rmSync(join(copied.postgres, "../../lib"), { recursive: true });
  assert.equal((await prepare(bare)).versionMajor, 18); // a damaged copy is made again
  assert.equal(lines.length, 2);

  renameSync(join(base, "it's $5"), join(base, "it's 5"));
  const inPlace = await prepare(join(base, "it's 5", "native"));
  assert(inPlace.postgres.startsWith(join(base, "it's 5")));
});

test("a platform without binaries is told what to do", () => {
  const missing = (): never => {
    throw new Error("not found");
  };
  assert.throws(
    () => findInstalledBinaries(missing),
    /is not installed: .*set DATABASE_URL to a PostgreSQL 15/,
  );
});

test("the data folder is /var/lib/queen for root, and below the current folder for others", () => {
  const expected = process.getuid?.() === 0 ? "/var/lib/queen" : join(process.cwd(), "queen-data");
  assert.equal(defaultDataDir(), expected);
});

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Gone with its postmaster.
  }
}
