import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { helpText, parseArguments } from "../src/command-line.ts";
import type { Environment } from "../src/config.ts";
import {
  ConfigError,
  connectionCount,
  environmentWithSecrets,
  printConfig,
  readConfig,
} from "../src/config.ts";
import { configurationPage } from "../src/config-page.ts";

const ACTING =
  `PORT HOST NUM_WORKERS QUEEN_PLACEMENT QUEEN_DATA_DIR DATABASE_URL SIDECAR_POOL_SIZE SIDECAR_MICRO_BATCH_WAIT_MS
  SIDECAR_MAX_ITEMS_PER_TX SIDECAR_MAX_BATCH_SIZE SIDECAR_MAX_PENDING_COUNT DB_POOL_SIZE DB_STATEMENT_TIMEOUT
  DB_LOCK_TIMEOUT DB_CONNECTION_TIMEOUT DB_IDLE_TIMEOUT LIBQUEEN_INFLIGHT_DEADLINE_MS DEFAULT_TIMEOUT
  DEFAULT_BATCH_SIZE DEFAULT_SUBSCRIPTION_MODE POP_WAIT_MAX_INTERVAL_MS POP_WAIT_INITIAL_INTERVAL_MS QUEEN_BUS
  QUEEN_MAX_BODY_BYTES QUEEN_SEGMENT_CACHE_MB QUEEN_DEDUP_MEMORY_MB QUEEN_SHUTDOWN_TIMEOUT_MS QUEEN_SHUTDOWN_DELAY_MS
  JWT_ENABLED JWT_ALGORITHM JWT_SECRET JWT_JWKS_URL JWT_PUBLIC_KEY JWT_ISSUER JWT_AUDIENCE JWT_CLOCK_SKEW
  JWT_SKIP_PATHS JWT_JWKS_REFRESH_INTERVAL JWT_JWKS_TIMEOUT_MS JWT_ROLES_CLAIM JWT_ROLES_ARRAY_CLAIM JWT_ROLE_ADMIN
  JWT_ROLE_READ_WRITE JWT_ROLE_READ_ONLY JWT_ROLE_PRODUCE JWT_ROLE_CONSUME JWT_QUEUES_CLAIM JWT_REQUIRE_EXP
  QUEEN_API_KEYS QUEEN_ADMIN_KEY QUEEN_RATE_LIMIT QUEEN_MAX_CONNECTIONS_PER_ADDRESS QUEEN_MAX_CONNECTIONS_PER_CREDENTIAL
  QUEEN_MAX_WAITING_POPS
  QUEEN_TLS_CERT_FILE QUEEN_TLS_KEY_FILE QUEEN_TLS_CLIENT_CA_FILE QUEEN_CORS_ORIGINS
  RETENTION_INTERVAL RETENTION_BATCH_SIZE PARTITION_CLEANUP_DAYS METRICS_RETENTION_DAYS EVICTION_INTERVAL
  EVICTION_BATCH_SIZE QUEEN_LEASE_SWEEP_INTERVAL_MS
  QUEEN_SPOOL_DIR FILE_BUFFER_DIR QUEEN_SPOOL_MAX_BYTES QUEEN_SPOOL_AFTER_MS
  LOG_LEVEL METRICS_SAMPLE_INTERVAL_MS METRICS_AGGREGATE_INTERVAL_S QUEEN_METRICS_LABELS_MAX
  QUEEN_ENCRYPTION_KEY QUEEN_SLOW_REQUEST_MS OTEL_EXPORTER_OTLP_ENDPOINT OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`.split(
    /\s+/,
  );

const READ_ELSEWHERE = `PG_HOST PG_PORT PG_DB PG_USER PG_PASSWORD PG_USE_SSL PG_SSL_REJECT_UNAUTHORIZED
  PGHOST PGPORT PGDATABASE PGUSER PGPASSWORD PGSSLMODE QUEEN_CRASH_AT OTEL_EXPORTER_OTLP_HEADERS OTEL_SERVICE_NAME
  OTEL_RESOURCE_ATTRIBUTES OTEL_TRACES_SAMPLER OTEL_TRACES_SAMPLER_ARG`.split(/\s+/);

const WITHOUT_EFFECT = `WORKER_ID DB_TCP_USER_TIMEOUT_MS DB_KEEPALIVES_IDLE DB_KEEPALIVES_INTERVAL
  DB_KEEPALIVES_COUNT POP_WAIT_BACKOFF_THRESHOLD POP_WAIT_BACKOFF_MULTIPLIER DB_THREAD_POOL_SERVICE_THREADS
  QUEUE_BACKOFF_CLEANUP_THRESHOLD RESPONSE_TIMER_INTERVAL_MS RESPONSE_BATCH_SIZE RESPONSE_BATCH_MAX
  QUEEN_CONCURRENCY_MODE QUEEN_VEGAS_MIN_LIMIT QUEEN_VEGAS_RTT_WINDOW_SAMPLES QUEEN_PUSH_PREFERRED_BATCH_SIZE
  QUEEN_POP_MAX_HOLD_MS QUEEN_RENEW_LEASE_MAX_BATCH_SIZE QUEEN_STREAMS_STATE_GET_MAX_CONCURRENT
  STATS_INTERVAL_MS
  STATS_RECONCILE_INTERVAL_MS STATS_HISTORY_RETENTION_DAYS PARTITION_LOOKUP_RECONCILE_INTERVAL_MS
  PARTITION_LOOKUP_RECONCILE_LOOKBACK_SECONDS FILE_BUFFER_FLUSH_MS FILE_BUFFER_MAX_BATCH
  FILE_BUFFER_EVENTS_PER_FILE QUEEN_UDP_PEERS QUEEN_UDP_NOTIFY_PORT QUEEN_SYNC_ENABLED QUEEN_SYNC_SECRET
  QUEEN_CACHE_PARTITION_MAX QUEEN_CACHE_PARTITION_TTL_MS QUEEN_CACHE_REFRESH_INTERVAL_MS
  QUEEN_SYNC_HEARTBEAT_MS
  QUEEN_SYNC_DEAD_THRESHOLD_MS QUEEN_SYNC_RECV_BUFFER_MB WEBAPP_ROOT
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
    host: "127.0.0.1",
    bodyBytesMax: 67_108_864,
    tokensEnabled: false,
    tokenAlgorithm: "HS256",
    tokenSecret: undefined,
    tokenPublicKey: undefined,
    jwksUrl: undefined,
    jwksRefreshSeconds: 3600,
    jwksTimeoutMs: 5000,
    tokenIssuer: undefined,
    tokenAudience: undefined,
    tokenClockSkewSeconds: 30,
    tokenRequiresExpiry: true,
    openPaths: "/health,/metrics/prometheus,/metrics,/",
    rolesClaim: "role",
    rolesArrayClaim: "roles",
    queuesClaim: "queues",
    roleAdmin: "admin",
    roleReadWrite: "read-write",
    roleReadOnly: "read-only",
    roleProduce: "produce",
    roleConsume: "consume",
    keysEnabled: false,
    adminKey: undefined,
    requestsPerSecond: 0,
    connectionsPerAddressMax: 0,
    connectionsPerCredentialMax: 0,
    waitingPopsMax: 0,
    tlsCertificateFile: undefined,
    tlsKeyFile: undefined,
    tlsClientAuthorityFile: undefined,
    corsOrigins: undefined,
    workerCount: 1,
    placement: "packed",
    shutdownDelayMs: 0,
    shutdownTimeoutMs: 10_000,
    logLevel: "info",
    slowRequestMs: 1000,
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
    encryptionKeys: undefined,
    otlpEndpoint: undefined,
    otlpTracesEndpoint: undefined,
    metricsSampleMs: 1000,
    metricsWriteSeconds: 10,
    metricsLabelsMax: 200,
    retentionIntervalMs: 300_000,
    retentionBatchSize: 1000,
    partitionCleanupDays: 30,
    metricsRetentionDays: 90,
    evictionIntervalMs: 60_000,
    evictionBatchSize: 1000,
    leaseSweepIntervalMs: 10_000,
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
    ...["collector", "localhost:4318", "ftp://collector"].map((url): [Environment, string] => [
      { OTEL_EXPORTER_OTLP_ENDPOINT: url },
      `OTEL_EXPORTER_OTLP_ENDPOINT must be an address such as http://localhost:4318, got "${url}"`,
    ]),
    [
      { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://me:secret@collector" },
      "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must not hold a user and a password: " +
        "set OTEL_EXPORTER_OTLP_HEADERS to an authorization",
    ],
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
    mistakes({ PORT: "http", NUM_WORKERS: "many", SIDECAR_POOL_SIZE: "5", QUEEN_ADMIN_KEY: "x" }, 64).map(
      (sentence) => sentence.split(/[ =]/)[0],
    ),
    ["PORT", "NUM_WORKERS", "QUEEN_ADMIN_KEY"],
  );
});

test("a collector that would be spoken to by gRPC is warned about", () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4317", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" };
  assert.match(warnings(env).join(), /^OTEL_EXPORTER_OTLP_PROTOCOL=grpc has no effect: spans go over HTTP/);
  assert.deepEqual(warnings({ ...env, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" }), []);
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

test("without authentication the broker listens on loopback, unless it is told otherwise", () => {
  assert.equal(config({}).host, "127.0.0.1");
  assert.equal(config({ HOST: "0.0.0.0" }).host, "0.0.0.0");
  for (const env of [
    { JWT_ENABLED: "true", JWT_SECRET: "s" },
    { QUEEN_API_KEYS: "on" },
    { QUEEN_ADMIN_KEY: "k".repeat(32) },
  ]) {
    assert.equal(config(env).host, "0.0.0.0", Object.keys(env).join());
  }
});

test("authentication that lacks something stops the start", () => {
  const cases: [Environment, RegExp][] = [
    [{ JWT_ENABLED: "true" }, /^JWT_ALGORITHM=HS256 needs JWT_SECRET$/],
    [
      { JWT_ENABLED: "true", JWT_ALGORITHM: "RS256", JWT_SECRET: "s" },
      /needs JWT_PUBLIC_KEY or JWT_JWKS_URL$/,
    ],
    [{ JWT_ENABLED: "true", JWT_ALGORITHM: "auto" }, /^JWT_ENABLED is on: set JWT_SECRET, /],
    [{ JWT_JWKS_URL: "file:///keys" }, /^JWT_JWKS_URL must begin with https/],
    [{ QUEEN_ADMIN_KEY: "short" }, /^QUEEN_ADMIN_KEY must have at least 32 characters$/],
    [{ QUEEN_TLS_CERT_FILE: "a" }, /go together/],
    [{ QUEEN_TLS_CLIENT_CA_FILE: "a" }, /needs QUEEN_TLS_CERT_FILE/],
    [{ JWT_ENABLED: "enabled" }, /^JWT_ENABLED must be on or off/],
  ];
  for (const [env, sentence] of cases) {
    const [first, ...others] = mistakes(env);
    assert.match(first!, sentence);
    assert.deepEqual(others, []);
  }
});

test("secrets of access are never printed", () => {
  const env = { JWT_SECRET: "secret-1", JWT_PUBLIC_KEY: "secret-2", QUEEN_ADMIN_KEY: "secret-3".repeat(4) };
  assert.doesNotMatch(printConfig(config(env)), /secret-/);
});

test("encryption keys are checked, may come from a file, and are never shown", () => {
  const [one, two] = ["1a".repeat(32), "2B".repeat(32)];
  const path = join(folder, "keys");
  writeFileSync(path, `${one}\n${two}\n`);
  assert.equal(config({ QUEEN_ENCRYPTION_KEY_FILE: path }).encryptionKeys, `${one}\n${two}`);
  const read = config({ QUEEN_ENCRYPTION_KEY: `${one},${two}` });
  assert.match(printConfig(read), /^QUEEN_ENCRYPTION_KEY=\*\*\*$/m);
  assert(!printConfig(read).includes(one));

  for (const [text, what] of [
    ["00ff", "; key 1 of 1 has 4 characters"],
    [`${one},${two}0`, "; key 2 of 2 has 65 characters"],
    [`${one}, ${"x".repeat(64)}`, "; key 2 of 2 has 64 characters, not all hexadecimal"],
    [",", ""],
  ] as const) {
    assert.deepEqual(mistakes({ QUEEN_ENCRYPTION_KEY: text }), [
      `QUEEN_ENCRYPTION_KEY must be keys of 64 hexadecimal characters with commas between them${what}. ` +
        "Make one with: openssl rand -hex 32",
    ]);
  }
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
