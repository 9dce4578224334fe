import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Environment } from "../src/config.ts";
import {
  ConfigError,
  configurationPage,
  connectionCount,
  environmentWithSecrets,
  helpText,
  parseArguments,
  printConfig,
  readConfig,
} from "../src/config.ts";

const ACTING =
  `PORT HOST NUM_WORKERS QUEEN_DATA_DIR DATABASE_URL SIDECAR_POOL_SIZE SIDECAR_MICRO_BATCH_WAIT_MS
  SIDECAR_MAX_ITEMS_PER_TX SIDECAR_MAX_BATCH_SIZE SIDECAR_MAX_PENDING_COUNT DB_POOL_SIZE DB_STATEMENT_TIMEOUT
  DB_LOCK_TIMEOUT DB_CONNECTION_TIMEOUT DB_IDLE_TIMEOUT LIBQUEEN_INFLIGHT_DEADLINE_MS DEFAULT_TIMEOUT
  DEFAULT_BATCH_SIZE DEFAULT_SUBSCRIPTION_MODE POP_WAIT_MAX_INTERVAL_MS POP_WAIT_INITIAL_INTERVAL_MS QUEEN_BUS
  QUEEN_MAX_BODY_BYTES QUEEN_SEGMENT_CACHE_MB QUEEN_DEDUP_MEMORY_MB QUEEN_SHUTDOWN_TIMEOUT_MS
  LOG_LEVEL QUEEN_SPOOL_DIR FILE_BUFFER_DIR QUEEN_SPOOL_MAX_BYTES QUEEN_SPOOL_AFTER_MS`.split(/\s+/);

const READ_ELSEWHERE = `PG_HOST PG_PORT PG_DB PG_USER PG_PASSWORD PG_USE_SSL PG_SSL_REJECT_UNAUTHORIZED
  PGHOST PGPORT PGDATABASE PGUSER PGPASSWORD PGSSLMODE QUEEN_CRASH_AT`.split(/\s+/);

const WITHOUT_EFFECT = `WORKER_ID DB_TCP_USER_TIMEOUT_MS DB_KEEPALIVES_IDLE DB_KEEPALIVES_INTERVAL
  DB_KEEPALIVES_COUNT POP_WAIT_BACKOFF_THRESHOLD POP_WAIT_BACKOFF_MULTIPLIER DB_THREAD_POOL_SERVICE_THREADS
  QUEUE_BACKOFF_CLEANUP_THRESHOLD RESPONSE_TIMER_INTERVAL_MS RESPONSE_BATCH_SIZE RESPONSE_BATCH_MAX
  QUEEN_CONCURRENCY_MODE QUEEN_VEGAS_MIN_LIMIT QUEEN_VEGAS_RTT_WINDOW_SAMPLES QUEEN_PUSH_PREFERRED_BATCH_SIZE
  QUEEN_POP_MAX_HOLD_MS QUEEN_RENEW_LEASE_MAX_BATCH_SIZE QUEEN_STREAMS_STATE_GET_MAX_CONCURRENT
  METRICS_SAMPLE_INTERVAL_MS METRICS_AGGREGATE_INTERVAL_S RETENTION_INTERVAL RETENTION_BATCH_SIZE
  PARTITION_CLEANUP_DAYS METRICS_RETENTION_DAYS EVICTION_INTERVAL EVICTION_BATCH_SIZE STATS_INTERVAL_MS
  STATS_RECONCILE_INTERVAL_MS STATS_HISTORY_RETENTION_DAYS PARTITION_LOOKUP_RECONCILE_INTERVAL_MS
  PARTITION_LOOKUP_RECONCILE_LOOKBACK_SECONDS FILE_BUFFER_FLUSH_MS FILE_BUFFER_MAX_BATCH
  FILE_BUFFER_EVENTS_PER_FILE QUEEN_UDP_PEERS QUEEN_UDP_NOTIFY_PORT QUEEN_SYNC_ENABLED QUEEN_SYNC_SECRET
  QUEEN_CACHE_PARTITION_MAX QUEEN_CACHE_PARTITION_TTL_MS QUEEN_CACHE_REFRESH_INTERVAL_MS
  QUEEN_SYNC_HEARTBEAT_MS
  QUEEN_SYNC_DEAD_THRESHOLD_MS QUEEN_SYNC_RECV_BUFFER_MB JWT_ALGORITHM JWT_SECRET JWT_JWKS_URL JWT_PUBLIC_KEY
  JWT_ISSUER JWT_AUDIENCE JWT_CLOCK_SKEW JWT_SKIP_PATHS JWT_JWKS_REFRESH_INTERVAL JWT_JWKS_TIMEOUT_MS
  JWT_ROLES_CLAIM JWT_ROLES_ARRAY_CLAIM JWT_ROLE_ADMIN JWT_ROLE_READ_WRITE JWT_ROLE_READ_ONLY WEBAPP_ROOT
  UWS_HTTP_MAX_HEADERS_SIZE`.split(/\s+/);

const folder = mkdtempSync(join(tmpdir(), "queen-config-"));
after(() => rmSync(folder, { recursive: true }));

const config = (env: Environment, cores = 2) => readConfig(env, cores).config;
const warnings = (env: Environment) => readConfig(env, 2).warnings;

function problems(run: () => unknown): readonly string[] {
  try {
    run();
  } catch (error) {
    assert(error instanceof ConfigError);
    assert.equal(error.message, error.problems.join("\n"));
    return error.problems;
  }
  assert.fail("no mistake was found");
}

const mistakes = (env: Environment, cores = 2) => problems(() => readConfig(env, cores));

test("the defaults follow the cores and stay within 40 connections", () => {
  const workersByCores = { 1: 1, 2: 1, 3: 1, 4: 2, 6: 3, 8: 4, 64: 4 };
  for (const [cores, workerCount] of Object.entries(workersByCores)) {
    assert.equal(config({}, Number(cores)).workerCount, workerCount, `${cores} cores`);
  }
  for (let cores = 1; cores <= 256; cores += 1) {
    const { config, warnings } = readConfig({}, cores);
    assert(connectionCount(config) <= 40, `${cores} cores open ${connectionCount(config)} connections`);
    assert(config.slotCount >= 4 * config.workerCount);
    assert.equal(config.slotCount % config.workerCount, 0);
    assert.deepEqual(warnings, []);
  }
});

test("every default of a machine with two cores", () => {
  assert.deepEqual(config({}), {
    port: 6632,
    host: "0.0.0.0",
    bodyBytesMax: 67_108_864,
    workerCount: 1,
    shutdownTimeoutMs: 10_000,
    logLevel: "info",
    databaseUrl: undefined,
    dataDir: undefined,
    connectTimeoutMs: 2000,
    statementTimeoutMs: 30_000,
    lockTimeoutMs: 5000,
    idleInTransactionTimeoutMs: 10_000,
    callDeadlineMs: 35_000,
    slotCount: 10,
    secondaryConnectionCount: 2,
    busEnabled: true,
    microBatchWaitMs: 0,
    messagesPerBatchMax: 5000,
    operationsPerBatchMax: 1000,
    operationsWaitingMax: 20_000,
    popTimeoutMsDefault: 30_000,
    popBatchSizeDefault: 1,
    subscriptionModeDefault: "",
    popScanIntervalMs: 1000,
    busyPartitionRetryMs: 10,
    segmentCacheMb: 64,
    dedupMemoryMb: 128,
    spoolDir: undefined,
    fileBufferDir: undefined,
    spoolBytesMax: 1_073_741_824,
    spoolAfterMs: 2000,
  });
  assert(Object.isFrozen(config({})));
});

test("values are read by their kind, and an empty one counts as unset", () => {
  const read = config({
    PORT: "0",
    HOST: "::1",
    QUEEN_BUS: "off",
    DEFAULT_SUBSCRIPTION_MODE: "new",
    LOG_LEVEL: "",
  });
  assert.equal(read.port, 0);
  assert.equal(read.host, "::1");
  assert.equal(read.busEnabled, false);
  assert.equal(read.subscriptionModeDefault, "new");
  assert.equal(read.logLevel, "info");
});

test("defaults follow the variables they depend on", () => {
  assert.equal(config({ DB_STATEMENT_TIMEOUT: "1000" }).callDeadlineMs, 6000);
  assert.equal(config({ NUM_WORKERS: "3" }).slotCount, 30);
  assert.equal(config({ NUM_WORKERS: "10" }).slotCount, 40);
  assert.equal(config({ NUM_WORKERS: "10" }).secondaryConnectionCount, 20);
});

test("each kind of mistake has its sentence", () => {
  const cases: [Environment, string][] = [
    [{ NUM_WORKERS: "abc" }, 'NUM_WORKERS must be an integer from 1 to 64, got "abc"'],
    [{ NUM_WORKERS: "65" }, 'NUM_WORKERS must be an integer from 1 to 64, got "65"'],
    [{ PORT: "-1" }, 'PORT must be an integer from 0 to 65535, got "-1"'],
    [{ PORT: "1.5" }, 'PORT must be an integer from 0 to 65535, got "1.5"'],
    [{ PORT: "0x10" }, 'PORT must be an integer from 0 to 65535, got "0x10"'],
    [{ PORT: " " }, 'PORT must be an integer from 0 to 65535, got " "'],
    [{ QUEEN_BUS: "maybe" }, 'QUEEN_BUS must be on or off, got "maybe"'],
    [{ LOG_LEVEL: "loud" }, 'LOG_LEVEL must be trace, debug, info, warn or error, got "loud"'],
    [
      { DEFAULT_SUBSCRIPTION_MODE: "old" },
      'DEFAULT_SUBSCRIPTION_MODE must be empty, all, new or new-only, got "old"',
    ],
    [{ HOST: " " }, "HOST must not be blank"],
    [
      { NUM_WORKERS: "4", SIDECAR_POOL_SIZE: "8" },
      'SIDECAR_POOL_SIZE must be at least 4 per worker, 16 for 4 workers, got "8": ' +
        "push, pop, ack and transaction each get at least a quarter of a worker's connections",
    ],
    [
      { NUM_WORKERS: "4", DB_POOL_SIZE: "3" },
      'DB_POOL_SIZE must be at least 1 per worker, 4 for 4 workers, got "3": each worker has its own',
    ],
    [
      { LIBQUEEN_INFLIGHT_DEADLINE_MS: "30000" },
      'LIBQUEEN_INFLIGHT_DEADLINE_MS must be more than DB_STATEMENT_TIMEOUT, which is 30000, got "30000"',
    ],
  ];
  for (const [env, sentence] of cases) assert.deepEqual(mistakes(env), [sentence]);
});

test("all mistakes are reported together, and a wrong value does not blame another", () => {
  assert.deepEqual(
    mistakes({ PORT: "http", NUM_WORKERS: "many", SIDECAR_POOL_SIZE: "5", JWT_ENABLED: "true" }, 64).map(
      (sentence) => sentence.split(/[ =]/)[0],
    ),
    ["PORT", "NUM_WORKERS", "JWT_ENABLED"],
  );
});

test("a secret may come from a file", () => {
  const path = join(folder, "url");
  writeFileSync(path, "postgres://queen:hunter2@db/queen\n");
  assert.equal(config({ DATABASE_URL_FILE: path }).databaseUrl, "postgres://queen:hunter2@db/queen");
  assert.deepEqual(environmentWithSecrets({ HOME: "/", DATABASE_URL_FILE: "", PG_PASSWORD_FILE: path }), {
    HOME: "/",
    PG_PASSWORD: "postgres://queen:hunter2@db/queen",
  });
});

test("a secret's file that cannot be used has its sentence", () => {
  const missing = join(folder, "missing");
  const empty = join(folder, "empty");
  writeFileSync(empty, "\n");
  const env = { PG_PASSWORD_FILE: missing, DATABASE_URL_FILE: empty };
  const sentences = [
    `DATABASE_URL_FILE names ${empty}, which is empty`,
    `PG_PASSWORD_FILE names ${missing}, which cannot be read: ENOENT`,
  ];
  assert.deepEqual(mistakes(env), sentences);
  assert.deepEqual(
    problems(() => environmentWithSecrets(env)),
    sentences,
  );
  assert.deepEqual(mistakes({ DATABASE_URL: "postgres://db/queen", DATABASE_URL_FILE: empty }), [
    "DATABASE_URL and DATABASE_URL_FILE are both set; unset one of them",
  ]);
});

test("secrets appear neither in the printed configuration nor in sentences", () => {
  const secret = "hunter2";
  const path = join(folder, "secret");
  writeFileSync(path, secret);
  const printed = printConfig(config({ DATABASE_URL: `postgres://queen:${secret}@db/queen` }));
  assert.match(printed, /^DATABASE_URL=\*\*\*$/m);
  assert(!printed.includes(secret));

  const sentences = mistakes({
    PORT: "x",
    DATABASE_URL: secret,
    DATABASE_URL_FILE: path,
    PG_PASSWORD: secret,
    PG_PASSWORD_FILE: path,
    QUEEN_ENCRYPTION_KEY: secret,
    JWT_SECRET: secret,
  });
  assert.equal(sentences.length, 4);
  assert(!sentences.join().includes(secret));
  assert(!warnings({ JWT_SECRET: secret, QUEEN_SYNC_SECRET: secret }).join().includes(secret));
});

test("the printed configuration has every field once, and reads back as the same", () => {
  const read = config({ NUM_WORKERS: "2", QUEEN_BUS: "off", QUEEN_DATA_DIR: "/data" });
  const lines = printConfig(read).trimEnd().split("\n");
  const printed = Object.fromEntries(lines.map((line) => line.split("=", 2) as [string, string]));
  assert.deepEqual(Object.keys(printed).sort(), [...ACTING].sort());
  assert.deepEqual(config(printed, 64), read);
});

test("a variable without effect gets a warning, one that acts gets none", () => {
  assert.deepEqual(warnings({ QUEEN_UDP_PEERS: "a,b", PATH: "/bin" }), [
    "QUEEN_UDP_PEERS has no effect: brokers talk through PostgreSQL",
  ]);
  for (const name of WITHOUT_EFFECT) {
    const [warning, ...others] = warnings({ [name]: "1" });
    assert(warning?.startsWith(`${name} has no effect: `), name);
    assert.deepEqual(others, []);
    assert.deepEqual(warnings({ [name]: "" }), []);
  }
  const printed = printConfig(config({ DATABASE_URL: "postgres://db/queen", QUEEN_DATA_DIR: "/data" }));
  const env = Object.fromEntries(
    printed
      .trimEnd()
      .split("\n")
      .map((line) => line.split("=", 2)),
  );
  assert.deepEqual(
    warnings({ ...env, ...Object.fromEntries(READ_ELSEWHERE.map((name) => [name, "1"])) }),
    [],
  );
});

test("more connections than PostgreSQL accepts by default get a warning", () => {
  assert.deepEqual(warnings({ SIDECAR_POOL_SIZE: "50", DB_POOL_SIZE: "150" }), [
    "SIDECAR_POOL_SIZE=50, DB_POOL_SIZE=150 and NUM_WORKERS=1 open up to 202 connections; " +
      "PostgreSQL accepts 97 unless max_connections is raised",
  ]);
});

test("the broker refuses to start where a protection is expected that it does not have", () => {
  for (const value of ["true", "TRUE", "1", "yes", "enabled"]) {
    const [sentence] = mistakes({ JWT_ENABLED: value });
    assert(sentence?.startsWith(`JWT_ENABLED=${value}: this version has no authentication; `));
  }
  for (const name of ["QUEEN_ENCRYPTION_KEY", "QUEEN_ENCRYPTION_KEY_FILE"]) {
    const [sentence] = mistakes({ [name]: "00ff" });
    assert(sentence?.startsWith(`${name} is set: this version does not encrypt messages; `));
  }
  assert.deepEqual(warnings({ JWT_ENABLED: "false", QUEEN_ENCRYPTION_KEY: "" }), []);
});

test("the help mentions every variable and flag within 100 columns", () => {
  const help = helpText("1.2.3");
  assert.match(help, /^Queen broker 1\.2\.3: /);
  for (const name of [...ACTING, ...READ_ELSEWHERE]) assert.match(help, new RegExp(`^  ${name} `, "m"));
  for (const name of ["DATABASE_URL_FILE", "PG_PASSWORD_FILE"]) assert(help.includes(name));
  for (const flag of ["--help", "--version", "--print-config", "--port N", "--host H"]) {
    assert.match(help, new RegExp(`^  ${flag} `, "m"));
  }
  for (const line of help.split("\n")) assert(line.length <= 100, line);
});

test("the page lists every variable once, with those that are refused or do nothing", () => {
  const page = configurationPage();
  for (const name of [...ACTING, ...READ_ELSEWHERE]) {
    assert.equal(page.split(`\n| \`${name}\` |`).length, 2, name);
  }
  for (const name of ["JWT_ENABLED", "QUEEN_ENCRYPTION_KEY", "QUEEN_UDP_*", "WEBAPP_ROOT"]) {
    assert(page.includes(`\`${name}\``), name);
  }
});

test("flags choose what to do and override variables", () => {
  assert.deepEqual(parseArguments([]), { action: "serve", overrides: {} });
  assert.deepEqual(parseArguments(["--port", "7000", "--host=::1"]), {
    action: "serve",
    overrides: { PORT: "7000", HOST: "::1" },
  });
  assert.equal(parseArguments(["--print-config", "--port=1"]).action, "print-config");
  assert.equal(parseArguments(["--version"]).action, "version");
  assert.equal(parseArguments(["--version", "--help"]).action, "help");
});

test("each mistake on the command line has its sentence", () => {
  const cases: [string[], string[]][] = [
    [
      ["--prot", "7000"],
      ["Unknown flag --prot: did you mean --port?", unexpected("7000")],
    ],
    [["--print-confg"], ["Unknown flag --print-confg: did you mean --print-config?"]],
    [["--frobnicate"], ["Unknown flag --frobnicate: see --help"]],
    [["--toString"], ["Unknown flag --toString: see --help"]],
    [["serve"], [unexpected("serve")]],
    [["--port"], ["--port needs a value, as in --port N"]],
    [
      ["--port", "--host", "h"],
      ["--port needs a value, as in --port N", unexpected("h")],
    ],
    [["--port", "abc"], ['--port must be an integer from 0 to 65535, got "abc"']],
    [["--help=yes"], ['--help takes no value, got "yes"']],
  ];
  for (const [argv, sentences] of cases) {
    assert.deepEqual(
      problems(() => parseArguments(argv)),
      sentences,
    );
  }
});

const unexpected = (argument: string) =>
  `Unexpected argument "${argument}": the broker takes only flags, see --help`;
