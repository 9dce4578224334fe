/**
 * Runs the compiled tests against one throwaway PostgreSQL, which ends with the run.
 *
 *   node scripts/test.mjs                every test
 *   node scripts/test.mjs --database     only the files that depend on PostgreSQL's version
 *   node scripts/test.mjs pop settle     only the files whose path contains one of the words
 *   node scripts/test.mjs --pgbouncer    what clients do, with PgBouncer in transaction mode before the server
 *
 * The server is the broker's built-in one in a temporary folder, or the one that QUEEN_TEST_DATABASE_URL
 * names, as a superuser. Run `npm run build` first; a compiled test whose source is gone is not run.
 */
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const EMBEDDED_SERVER = new URL("../packages/broker/dist/src/postgres/embedded-server.js", import.meta.url);
const PGBOUNCER = new URL("../test/dist/support/pgbouncer.js", import.meta.url);
// What clients do. The rest is about the broker's own connections, logs and descriptions, or takes very long.
const POOLED_TESTS = new RegExp(
  "^test/dist/system/(ack-ranges|clear|configure|consumer-groups|crash|dead-letters|delays|encryption|lease|limits|long-poll|" +
    "handover|idle-broker|maintenance|messages|model|ordering|pauses|payload-fidelity|pooler|pop-ack|push|retries|sweeps|transaction)\\.",
);
// What depends on the version of PostgreSQL: every procedure, the protocol, and the data plane as a whole.
const DATABASE_TESTS = new RegExp(
  "^(test/dist/procedures/|packages/broker/dist/test/session\\.|test/dist/system/(ack-ranges|consumer-groups|crash|" +
    "dead-letters|handover|lost-answer|messages|model|ordering|payload-fidelity|pop-ack|push|retries|sweeps|transaction)\\.)",
);

// Each file has its own process and database, and waits now and then; more at once than this fight for the processors.
const FILES_AT_ONCE = 4;
// Browsers, and brokers that are started and killed.
const LONG_FOLDERS = ["test/dist/web/", "test/dist/system/", "test/dist/cli/"];
// Four files of tests with a few sessions each, and the brokers that they start with all their workers.
const SERVER_SETTINGS = { max_connections: "300" };

const interruption = new AbortController();
for (const [name, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
]) {
  process.on(name, () => {
    process.exitCode = code;
    interruption.abort();
  });
}

const isPooled = process.argv.includes("--pgbouncer");
const files = chosenTests(process.argv.slice(2));
if (files.length === 0) {
  console.error("No compiled test has this in its path: run `npm run build`, or give another word.");
  process.exit(1);
}

let server;
try {
  server = await startServer();
} catch (error) {
  console.error(`The tests have no database server: ${error.message}`);
  process.exit(1);
}
let pooler;
try {
  if (isPooled) pooler = await startPooler(server.url);
  if (!interruption.signal.aborted) await runTests(files, server.url);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await pooler?.dispose();
  await server.stop();
}
process.exit();

/** The compiled tests that the arguments ask for, as paths from the root. */
function chosenTests(args) {
  const unknown = args.find((arg) => arg.startsWith("-") && !["--database", "--pgbouncer"].includes(arg));
  if (unknown !== undefined) {
    console.error(`${unknown} is not known here: the options are --database and --pgbouncer.`);
    process.exit(1);
  }
  const words = args.filter((arg) => !arg.startsWith("-"));
  return compiledTests()
    .filter((file) => !args.includes("--database") || DATABASE_TESTS.test(file))
    .filter((file) => !isPooled || POOLED_TESTS.test(file))
    .filter((file) => words.length === 0 || words.some((word) => file.includes(word)));
}

function compiledTests() {
  const packages = readdirSync(join(ROOT, "packages")).map((name) => `packages/${name}/dist/test`);
  return [...packages, "test/dist", "bench/dist/test", "faults/dist/test"]
    .filter((folder) => existsSync(join(ROOT, folder)))
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true }).map((name) => join(folder, name)),
    )
    .map((file) => file.replaceAll(sep, "/"))
    .filter((file) => file.endsWith(".test.js") && existsSync(join(ROOT, sourceOf(file))))
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

/** Those that take longest go first, and the short ones fill the end. */
function rank(file) {
  const folder = LONG_FOLDERS.findIndex((name) => file.startsWith(name));
  return folder === -1 ? LONG_FOLDERS.length : folder;
}

function sourceOf(file) {
  return file.replace("/dist/", "/").replace(/\.js$/, ".ts");
}

async function startServer() {
  const url = process.env.QUEEN_TEST_DATABASE_URL;
  if (url) return { url, stop: async () => undefined };
  if (!existsSync(EMBEDDED_SERVER))
    throw new Error(`${relative(ROOT, fileURLToPath(EMBEDDED_SERVER))} is missing: run \`npm run build\`.`);
  const { startEmbeddedServer } = await import(EMBEDDED_SERVER);
  const folder = mkdtempSync(join(tmpdir(), "queen-test-"));
  chmodSync(folder, 0o711); // as root, the server runs as another user, who must get in
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    const embedded = await startEmbeddedServer({
      dataDir: join(folder, "data"),
      log: () => undefined,
      settings: SERVER_SETTINGS,
    });
    const { hosts, user, password, database } = embedded.settings;
    return {
      // By TCP even where a Unix socket is faster: a URL with a socket's folder is not one for every client.
      url: `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${hosts[0].port}/${database}`,
      stop: () => embedded.stop().finally(remove),
    };
  } catch (error) {
    remove();
    throw error;
  }
}

/** Brokers that the tests start on the server go through it then. */
async function startPooler(url) {
  const { startPgBouncer } = await import(PGBOUNCER);
  const started = await startPgBouncer(url);
  process.env.QUEEN_TEST_PGBOUNCER_PORT = String(started.port);
  return started;
}

/** Runs the files, reports as they go, and sets the exit code. */
async function runTests(paths, url) {
  process.env.QUEEN_TEST_DATABASE_URL = url;
  process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ""} --enable-source-maps`;
  const startedMs = performance.now();
  const counts = {};
  const stream = run({
    files: paths.map((path) => join(ROOT, path)),
    concurrency: FILES_AT_ONCE,
    signal: interruption.signal,
  });
  stream.on("test:diagnostic", ({ nesting, message }) => {
    const [, name, value] = /^(tests|pass|fail|cancelled|skipped|todo) (\d+)$/.exec(message) ?? [];
    if (nesting === 0 && name !== undefined) counts[name] = Number(value);
  });
  for await (const text of stream.compose(spec)) process.stdout.write(text);

  const { tests = 0, pass = 0, fail = 0, cancelled = 0, skipped = 0, todo = 0 } = counts;
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
  const rest = [
    [fail, "failed"],
    [cancelled, "cancelled"],
    [skipped, "skipped"],
    [todo, "to do"],
  ].flatMap(([count, word]) => (count > 0 ? [`${count} ${word}`] : []));
  console.log(
    `${[`${pass} of ${tests} tests passed`, ...rest].join(", ")}; ${paths.length} files, ${seconds} s`,
  );
  if (process.exitCode === undefined) process.exitCode = fail + cancelled === 0 && tests > 0 ? 0 : 1;
}
