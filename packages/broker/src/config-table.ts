/**
 * The table of every variable that the broker knows. Reading and checking (config.ts), `--help` (command-line.ts) and
 * docs/configuration.md (config-page.ts) are readers of it. A row that has a `field` becomes that field of Config;
 * a row with `readBy` is only described here, and read by the file it names.
 */
import { POP_BATCH_MAX } from "@queen/protocol";
import { keysProblem } from "./operations/encryption.ts";

/** What a default may depend on: the machine, and the rows above its own. */
export interface Known {
  readonly cores: number;
  readonly tokensEnabled: boolean;
  readonly keysEnabled: boolean;
  readonly adminKey: string | undefined;
  readonly workerCount: number;
  readonly statementTimeoutMs: number;
}

interface Described {
  readonly name: string;
  readonly group: Group;
  /** One sentence, without the default and the range. */
  readonly meaning: string;
}

interface IntegerRow extends Described {
  readonly field: string;
  readonly kind: "integer";
  readonly default: number | { readonly of: (known: Known) => number; readonly text: string };
  readonly min: number;
  readonly max: number;
  /** For a number that the workers share out: the least that one of them can work with. */
  readonly perWorker?: { readonly min: number; readonly because: string };
}

interface BooleanRow extends Described {
  readonly field: string;
  readonly kind: "boolean";
  readonly default: boolean;
}

interface TextRow extends Described {
  readonly field: string;
  readonly kind: "text";
  readonly default:
    | string
    | { readonly unset: string }
    | { readonly of: (known: Known) => string; readonly text: string };
}

interface UrlRow extends Described {
  readonly field: string;
  readonly kind: "url";
  readonly default: { readonly unset: string };
}

interface OneOfRow extends Described {
  readonly field: string;
  readonly kind: "one-of";
  readonly choices: readonly string[];
  readonly default: string;
}

/** Never printed. May also come from a file, which `<name>_FILE` names. */
interface SecretRow extends Described {
  readonly field: string;
  readonly kind: "secret";
  readonly default: { readonly unset: string };
  /** What is wrong with a value, without showing it. */
  readonly problem?: (text: string) => string | undefined;
}

interface DescribedOnlyRow extends Described {
  readonly readBy: "crash-point.ts" | "database-settings.ts" | "open-telemetry.ts";
  readonly kind: "boolean" | "text" | "one-of" | "secret";
  readonly choices?: readonly string[];
  readonly default: { readonly unset: string };
}

export type FieldRow = IntegerRow | BooleanRow | TextRow | UrlRow | OneOfRow | SecretRow;
export type Row = FieldRow | DescribedOnlyRow;

export const GROUPS = [
  "Listening",
  "Security",
  "Process",
  "Database",
  "Connections",
  "Batching",
  "Popping",
  "Memory",
  "Traces",
  "Metrics",
  "Maintenance",
  "Spool",
] as const;
export type Group = (typeof GROUPS)[number];

// PostgreSQL accepts 100 connections unless told otherwise: two brokers and a few tools fit.
export const CONNECTIONS_DEFAULT_MAX = 40;
// 100 less the 3 that PostgreSQL keeps for superusers.
export const CONNECTIONS_OF_A_DEFAULT_SERVER = 97;
export const CONNECTIONS_TO_START = 1;
export const BUS_CONNECTIONS_PER_WORKER = 1;
const SECONDARY_CONNECTIONS_PER_WORKER = 2;
const SLOTS_PER_WORKER = 10;
const SLOTS_PER_WORKER_MIN = 4;
export const ADMIN_KEY_LENGTH_MIN = 32;

// biome-ignore format: one row is one thing to read
export const VARIABLES = [
  { name: "PORT", field: "port", group: "Listening", kind: "integer", default: 6632, min: 0, max: 65_535,
    meaning: "HTTP port; 0 takes any free one." },
  { name: "QUEEN_MAX_BODY_BYTES", field: "bodyBytesMax", group: "Listening", kind: "integer",
    default: 64 * 1024 ** 2, min: 1024, max: 1024 ** 3,
    meaning: "Largest request body in bytes; a larger one is answered 413." },

  { name: "JWT_ENABLED", field: "tokensEnabled", group: "Security", kind: "boolean", default: false,
    meaning: "Whether requests need a token (JWT) in the Authorization header." },
  { name: "JWT_ALGORITHM", field: "tokenAlgorithm", group: "Security", kind: "one-of",
    choices: ["HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "ES256", "EdDSA", "auto"], default: "HS256",
    meaning: "Algorithm of tokens; auto takes every one that a configured key fits." },
  { name: "JWT_SECRET", field: "tokenSecret", group: "Security", kind: "secret", default: { unset: "unset" },
    meaning: "Secret for HS256, HS384 and HS512, its bytes as they are." },
  { name: "JWT_PUBLIC_KEY", field: "tokenPublicKey", group: "Security", kind: "secret", default: { unset: "unset" },
    meaning: "Public key (PEM, SPKI) for all other algorithms; goes before JWT_JWKS_URL." },
  { name: "JWT_JWKS_URL", field: "jwksUrl", group: "Security", kind: "text", default: { unset: "unset" },
    meaning: "Where an identity provider publishes its keys (JWKS)." },
  { name: "JWT_JWKS_REFRESH_INTERVAL", field: "jwksRefreshSeconds", group: "Security", kind: "integer",
    default: 3600, min: 1, max: 604_800,
    meaning: "How often the keys are fetched again, in seconds; for a key that is not known at once, but at "
      + "most every 30 seconds." },
  { name: "JWT_JWKS_TIMEOUT_MS", field: "jwksTimeoutMs", group: "Security", kind: "integer",
    default: 5000, min: 100, max: 60_000,
    meaning: "How long a fetch of keys may take, in milliseconds." },
  { name: "JWT_ISSUER", field: "tokenIssuer", group: "Security", kind: "text", default: { unset: "unset: any" },
    meaning: "Issuer (iss) that tokens must have." },
  { name: "JWT_AUDIENCE", field: "tokenAudience", group: "Security", kind: "text", default: { unset: "unset: any" },
    meaning: "Audience (aud) that tokens must have." },
  { name: "JWT_CLOCK_SKEW", field: "tokenClockSkewSeconds", group: "Security", kind: "integer",
    default: 30, min: 0, max: 600,
    meaning: "How far clocks may differ when times in tokens are checked, in seconds." },
  { name: "JWT_REQUIRE_EXP", field: "tokenRequiresExpiry", group: "Security", kind: "boolean", default: true,
    meaning: "Whether a token must have an expiry (exp)." },
  { name: "JWT_SKIP_PATHS", field: "openPaths", group: "Security", kind: "text",
    default: "/health,/metrics/prometheus,/metrics,/",
    meaning: "Paths that need no credential, with commas; one that ends in / stands for all below it." },
  { name: "JWT_ROLES_CLAIM", field: "rolesClaim", group: "Security", kind: "text", default: "role",
    meaning: "Claim with one role." },
  { name: "JWT_ROLES_ARRAY_CLAIM", field: "rolesArrayClaim", group: "Security", kind: "text", default: "roles",
    meaning: "Claim with a list of roles." },
  { name: "JWT_QUEUES_CLAIM", field: "queuesClaim", group: "Security", kind: "text", default: "queues",
    meaning: "Claim with a list of patterns of queue names, such as orders.*; without it every queue is meant." },
  { name: "JWT_ROLE_ADMIN", field: "roleAdmin", group: "Security", kind: "text", default: "admin",
    meaning: "What tokens call the role admin." },
  { name: "JWT_ROLE_READ_WRITE", field: "roleReadWrite", group: "Security", kind: "text", default: "read-write",
    meaning: "What tokens call the role read-write." },
  { name: "JWT_ROLE_READ_ONLY", field: "roleReadOnly", group: "Security", kind: "text", default: "read-only",
    meaning: "What tokens call the role read-only." },
  { name: "JWT_ROLE_PRODUCE", field: "roleProduce", group: "Security", kind: "text", default: "produce",
    meaning: "What tokens call the role produce." },
  { name: "JWT_ROLE_CONSUME", field: "roleConsume", group: "Security", kind: "text", default: "consume",
    meaning: "What tokens call the role consume." },
  { name: "QUEEN_API_KEYS", field: "keysEnabled", group: "Security", kind: "boolean", default: false,
    meaning: "Whether requests need an API key, a user's session, or a token where JWT_ENABLED is on too." },
  { name: "QUEEN_ADMIN_KEY", field: "adminKey", group: "Security", kind: "secret", default: { unset: "unset" },
    meaning: "A key of at least 32 characters with the role admin, to make the first API keys with; "
      + "with it requests need a credential." },
  { name: "QUEEN_RATE_LIMIT", field: "requestsPerSecond", group: "Security", kind: "integer",
    default: 0, min: 0, max: 10_000_000,
    meaning: "Requests a second that each worker takes of one credential, or of one address without one, with "
      + "bursts of twice as many; 0 is no limit." },
  { name: "QUEEN_MAX_CONNECTIONS_PER_ADDRESS", field: "connectionsPerAddressMax", group: "Security",
    kind: "integer", default: 0, min: 0, max: 1_000_000,
    meaning: "Connections that each worker takes of one address; 0 is no limit." },
  { name: "QUEEN_MAX_CONNECTIONS_PER_CREDENTIAL", field: "connectionsPerCredentialMax", group: "Security",
    kind: "integer", default: 0, min: 0, max: 1_000_000,
    meaning: "Connections on which each worker serves one credential at the same time; 0 is no limit." },
  { name: "QUEEN_MAX_WAITING_POPS", field: "waitingPopsMax", group: "Security", kind: "integer",
    default: 0, min: 0, max: 1_000_000,
    meaning: "Pops of one credential, or of one address without one, that may wait in each worker; 0 is no limit." },
  { name: "QUEEN_TLS_CERT_FILE", field: "tlsCertificateFile", group: "Security", kind: "text",
    default: { unset: "unset: plain HTTP" },
    meaning: "File with the certificate (PEM, with its chain) for HTTPS; read again when it changes." },
  { name: "QUEEN_TLS_KEY_FILE", field: "tlsKeyFile", group: "Security", kind: "text", default: { unset: "unset" },
    meaning: "File with the certificate's key (PEM)." },
  { name: "QUEEN_TLS_CLIENT_CA_FILE", field: "tlsClientAuthorityFile", group: "Security", kind: "text",
    default: { unset: "unset: clients need no certificate" },
    meaning: "File with the authority (PEM) that must have signed the certificate of every client." },
  { name: "QUEEN_CORS_ORIGINS", field: "corsOrigins", group: "Security", kind: "text",
    default: { unset: "unset: any without authentication, none with it" },
    meaning: "Origins whose pages may use the interface, with commas; * is any." },

  { name: "HOST", field: "host", group: "Listening", kind: "text", 
    default: { of: hostDefault, text: "0.0.0.0 with authentication, 127.0.0.1 without" },
    meaning: "Address to listen on; who sets 0.0.0.0 without authentication lets everybody in who reaches it." },

  { name: "NUM_WORKERS", field: "workerCount", group: "Process", kind: "integer",
    default: { of: workerCountDefault, text: "1 up to 3 cores, else half of the cores, at most 4" },
    min: 1, max: 64,
    meaning: "Event loops that serve requests, each with connections of its own." },
  { name: "QUEEN_PLACEMENT", field: "placement", group: "Process", kind: "one-of",
    choices: ["packed", "even"], default: "packed",
    meaning: "Which worker gets a new connection: the first that has time left (packed), or each in turn (even). Workers "
      + "that share lanes make smaller batches." },
  { name: "QUEEN_SHUTDOWN_TIMEOUT_MS", field: "shutdownTimeoutMs", group: "Process", kind: "integer",
    default: 10_000, min: 0, max: 600_000,
    meaning: "How long a stopping broker waits for requests in flight, in milliseconds." },
  { name: "QUEEN_SHUTDOWN_DELAY_MS", field: "shutdownDelayMs", group: "Process", kind: "integer",
    default: 0, min: 0, max: 600_000,
    meaning: "How long a stopping broker serves on before it closes its port, in milliseconds; meanwhile /readyz and "
      + "/health answer 503, so that load balancers turn to others." },
  { name: "LOG_LEVEL", field: "logLevel", group: "Process", kind: "one-of",
    choices: ["trace", "debug", "info", "warn", "error"], default: "info",
    meaning: "Least severe log line that is written." },
  { name: "QUEEN_SLOW_REQUEST_MS", field: "slowRequestMs", group: "Process", kind: "integer",
    default: 1000, min: 0, max: 3_600_000,
    meaning: "A request that takes longer, and is no long poll, is worth a warning, in milliseconds; 0 is never." },

  { name: "DATABASE_URL", field: "databaseUrl", group: "Database", kind: "secret",
    default: { unset: "unset: PG_HOST or PGHOST decides" },
    meaning: "PostgreSQL to use: postgres://user:password@host:port/database; may name several hosts." },
  { name: "PG_HOST", readBy: "database-settings.ts", group: "Database", kind: "text",
    default: { unset: "unset" },
    meaning: "Host of the PostgreSQL to use when there is no DATABASE_URL; or several, with commas." },
  { name: "PG_PORT", readBy: "database-settings.ts", group: "Database", kind: "text",
    default: { unset: "5432" },
    meaning: "Port at PG_HOST, or one for each host." },
  { name: "PG_DB", readBy: "database-settings.ts", group: "Database", kind: "text",
    default: { unset: "postgres" },
    meaning: "Database at PG_HOST." },
  { name: "PG_USER", readBy: "database-settings.ts", group: "Database", kind: "text",
    default: { unset: "postgres" },
    meaning: "Role to connect to PG_HOST as." },
  { name: "PG_PASSWORD", readBy: "database-settings.ts", group: "Database", kind: "secret",
    default: { unset: "postgres" },
    meaning: "Password of that role." },
  { name: "PG_USE_SSL", readBy: "database-settings.ts", group: "Database", kind: "boolean",
    default: { unset: "false" },
    meaning: "Whether the connection to PG_HOST must be encrypted." },
  { name: "PG_SSL_REJECT_UNAUTHORIZED", readBy: "database-settings.ts", group: "Database", kind: "boolean",
    default: { unset: "true" },
    meaning: "Whether the certificate at PG_HOST must be valid when encrypted." },
  { name: "PGHOST", readBy: "database-settings.ts", group: "Database", kind: "text",
    default: { unset: "unset: the broker starts a PostgreSQL of its own" },
    meaning: "Host to use, in libpq's words, when there is no DATABASE_URL and no PG_HOST." },
  { name: "PGPORT", readBy: "database-settings.ts", group: "Database", kind: "text",
    default: { unset: "5432" },
    meaning: "Port at PGHOST, or for a DATABASE_URL without one." },
  { name: "PGDATABASE", readBy: "database-settings.ts", group: "Database", kind: "text",
    default: { unset: "the name of the role" },
    meaning: "Database at PGHOST, or for a DATABASE_URL without one." },
  { name: "PGUSER", readBy: "database-settings.ts", group: "Database", kind: "text",
    default: { unset: "postgres" },
    meaning: "Role for PGHOST, or for a DATABASE_URL without one." },
  { name: "PGPASSWORD", readBy: "database-settings.ts", group: "Database", kind: "secret",
    default: { unset: "unset" },
    meaning: "Password for PGHOST, or for a DATABASE_URL without one." },
  { name: "PGSSLMODE", readBy: "database-settings.ts", group: "Database", kind: "one-of",
    choices: ["disable", "allow", "prefer", "require", "no-verify", "verify-ca", "verify-full"],
    default: { unset: "disable" },
    meaning: "Encryption for PGHOST, or for a DATABASE_URL that doesn't say." },
  { name: "QUEEN_DATA_DIR", field: "dataDir", group: "Database", kind: "text",
    default: { unset: "unset: `queen-data` below the current folder, `/var/lib/queen` for root" },
    meaning: "Folder of the PostgreSQL that the broker starts when it is given none." },
  { name: "DB_CONNECTION_TIMEOUT", field: "connectTimeoutMs", group: "Database", kind: "integer",
    default: 2000, min: 100, max: 600_000,
    meaning: "How long one attempt to connect may take, in milliseconds." },
  { name: "DB_STATEMENT_TIMEOUT", field: "statementTimeoutMs", group: "Database", kind: "integer",
    default: 30_000, min: 100, max: 3_600_000,
    meaning: "PostgreSQL ends a statement that runs longer, in milliseconds." },
  { name: "DB_LOCK_TIMEOUT", field: "lockTimeoutMs", group: "Database", kind: "integer",
    default: 5000, min: 1, max: 3_600_000,
    meaning: "PostgreSQL ends a statement that waits longer for a lock, in milliseconds." },
  { name: "DB_IDLE_TIMEOUT", field: "idleInTransactionTimeoutMs", group: "Database", kind: "integer",
    default: 10_000, min: 100, max: 3_600_000,
    meaning: "PostgreSQL ends a session that idles longer inside a transaction, in milliseconds." },
  { name: "LIBQUEEN_INFLIGHT_DEADLINE_MS", field: "callDeadlineMs", group: "Database", kind: "integer",
    default: { of: callDeadlineMsDefault, text: "DB_STATEMENT_TIMEOUT + 5000" }, min: 200, max: 7_200_000,
    meaning: "A connection that has not answered a call after so many milliseconds is closed and replaced; "
      + "more than DB_STATEMENT_TIMEOUT." },

  { name: "SIDECAR_POOL_SIZE", field: "slotCount", group: "Connections", kind: "integer",
    default: { of: slotCountDefault, text: "10 per worker; 6 per worker with 4 workers, 4 with more" },
    min: SLOTS_PER_WORKER_MIN, max: 4096,
    perWorker: { min: SLOTS_PER_WORKER_MIN,
      because: "push, pop, ack and transaction each get at least a quarter of a worker's connections" },
    meaning: "Connections for push, pop, ack and transaction, over all workers; at least 4 per worker." },
  { name: "DB_POOL_SIZE", field: "secondaryConnectionCount", group: "Connections", kind: "integer",
    default: { of: secondaryConnectionCountDefault, text: "2 per worker" }, min: 1, max: 4096,
    perWorker: { min: 1, because: "each worker has its own" },
    meaning: "Connections for everything else (configure, listings, statistics), over all workers; "
      + "at least 1 per worker." },
  { name: "QUEEN_BUS", field: "busEnabled", group: "Connections", kind: "boolean", default: true,
    meaning: "Whether brokers tell each other about new messages by LISTEN and NOTIFY; without it a broker "
      + "looks for the messages of others every POP_WAIT_MAX_INTERVAL_MS." },

  { name: "SIDECAR_MICRO_BATCH_WAIT_MS", field: "microBatchWaitMs", group: "Batching", kind: "integer",
    default: 0, min: 0, max: 1000,
    meaning: "How long a push may be held back to share a call with others, in milliseconds; "
      + "0 sends as soon as a connection is free." },
  { name: "SIDECAR_MAX_ITEMS_PER_TX", field: "messagesPerBatchMax", group: "Batching", kind: "integer",
    default: 5000, min: 1, max: 100_000,
    meaning: "Messages that merged requests may bring into one call." },
  { name: "SIDECAR_MAX_BATCH_SIZE", field: "operationsPerBatchMax", group: "Batching", kind: "integer",
    default: 1000, min: 1, max: 100_000,
    meaning: "Requests that may be merged into one call." },
  { name: "SIDECAR_MAX_PENDING_COUNT", field: "operationsWaitingMax", group: "Batching", kind: "integer",
    default: 20_000, min: 1, max: 1_000_000,
    meaning: "Operations of one kind that may wait for a connection; one more is answered 503." },

  { name: "DEFAULT_TIMEOUT", field: "popTimeoutMsDefault", group: "Popping", kind: "integer",
    default: 30_000, min: 0, max: 3_600_000,
    meaning: "How long a waiting pop waits when it doesn't say, in milliseconds." },
  { name: "DEFAULT_BATCH_SIZE", field: "popBatchSizeDefault", group: "Popping", kind: "integer",
    default: 1, min: 1, max: POP_BATCH_MAX,
    meaning: "Messages that a pop takes when it doesn't say." },
  { name: "DEFAULT_SUBSCRIPTION_MODE", field: "subscriptionModeDefault", group: "Popping", kind: "one-of",
    choices: ["", "all", "new", "new-only"], default: "",
    meaning: "Where a new consumer group starts when its pop doesn't say: empty or all at the oldest "
      + "message, new or new-only after the newest." },
  { name: "POP_WAIT_MAX_INTERVAL_MS", field: "popScanIntervalMs", group: "Popping", kind: "integer",
    default: 1000, min: 50, max: 60_000,
    meaning: "How often the broker looks in the database for what hints missed while pops are parked, "
      + "in milliseconds." },
  { name: "POP_WAIT_INITIAL_INTERVAL_MS", field: "busyPartitionRetryMs", group: "Popping", kind: "integer",
    default: 10, min: 1, max: 1000,
    meaning: "Pause before a partition that another transaction holds is tried again, in milliseconds." },

  { name: "QUEEN_SEGMENT_CACHE_MB", field: "segmentCacheMb", group: "Memory", kind: "integer",
    default: 64, min: 0, max: 65_536,
    meaning: "Recent segments that each worker keeps for the next pop, in MiB; 0 keeps none." },
  { name: "QUEEN_DEDUP_MEMORY_MB", field: "dedupMemoryMb", group: "Memory", kind: "integer",
    default: 128, min: 1, max: 65_536,
    meaning: "Transaction ids that each worker remembers to recognize duplicates, in MiB." },

  { name: "QUEEN_ENCRYPTION_KEY", field: "encryptionKeys", group: "Security", kind: "secret",
    default: { unset: "unset: queues cannot be encrypted" }, problem: keysProblem,
    meaning: "Keys of queues with encryptionEnabled, 64 hexadecimal characters each, with commas or new lines "
      + "between them: the first encrypts, all decrypt; the same on every broker." },
  { name: "OTEL_EXPORTER_OTLP_ENDPOINT", field: "otlpEndpoint", group: "Traces", kind: "url",
    default: { unset: "unset: nothing is traced" },
    meaning: "OpenTelemetry collector that takes spans as JSON over HTTP, at `/v1/traces` below this address." },
  { name: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", field: "otlpTracesEndpoint", group: "Traces", kind: "url",
    default: { unset: "unset" },
    meaning: "The whole address for spans, instead." },
  { name: "OTEL_EXPORTER_OTLP_HEADERS", readBy: "open-telemetry.ts", group: "Traces", kind: "secret",
    default: { unset: "unset" },
    meaning: "Headers for the collector, as in `authorization=Bearer%20…,tenant=a`; never printed." },
  { name: "OTEL_SERVICE_NAME", readBy: "open-telemetry.ts", group: "Traces", kind: "text",
    default: { unset: "queen" },
    meaning: "The broker's name in traces." },
  { name: "OTEL_RESOURCE_ATTRIBUTES", readBy: "open-telemetry.ts", group: "Traces", kind: "text",
    default: { unset: "unset" },
    meaning: "What else is said of the broker, as in `deployment.environment.name=test`." },
  { name: "OTEL_TRACES_SAMPLER", readBy: "open-telemetry.ts", group: "Traces", kind: "one-of",
    choices: ["always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off",
      "parentbased_traceidratio"],
    default: { unset: "parentbased_always_on" },
    meaning: "Which operations are recorded; the parent is the traceparent that a client sends." },
  { name: "OTEL_TRACES_SAMPLER_ARG", readBy: "open-telemetry.ts", group: "Traces", kind: "text",
    default: { unset: "1" },
    meaning: "The part of them that a ratio records, 0 to 1." },
  { name: "METRICS_SAMPLE_INTERVAL_MS", field: "metricsSampleMs", group: "Metrics", kind: "integer",
    default: 1000, min: 100, max: 60_000,
    meaning: "How often a worker looks at its memory, connections and event loop, in milliseconds." },
  { name: "METRICS_AGGREGATE_INTERVAL_S", field: "metricsWriteSeconds", group: "Metrics", kind: "integer",
    default: 10, min: 1, max: 60,
    meaning: "How often a worker that did something writes its figures to the database, in seconds." },
  { name: "QUEEN_METRICS_LABELS_MAX", field: "metricsLabelsMax", group: "Metrics", kind: "integer",
    default: 200, min: 1, max: 10_000,
    meaning: "Queues, and consumer groups, that /metrics/prometheus names; the others are summed up under `other`." },
  { name: "RETENTION_INTERVAL", field: "retentionIntervalMs", group: "Maintenance", kind: "integer",
    default: 300_000, min: 100, max: 86_400_000,
    meaning: "Pause between two sweeps of one kind that remove old messages, idle partitions and old metrics, "
      + "in milliseconds; of all workers and brokers one sweeps." },
  { name: "RETENTION_BATCH_SIZE", field: "retentionBatchSize", group: "Maintenance", kind: "integer",
    default: 1000, min: 1, max: 100_000,
    meaning: "Segments, partitions or rows that one transaction of these sweeps removes at most." },
  { name: "PARTITION_CLEANUP_DAYS", field: "partitionCleanupDays", group: "Maintenance", kind: "integer",
    default: 30, min: 0, max: 36_500,
    meaning: "A partition without messages in which nothing happened for so many days is deleted, "
      + "except Default; 0 deletes none." },
  { name: "METRICS_RETENTION_DAYS", field: "metricsRetentionDays", group: "Maintenance", kind: "integer",
    default: 90, min: 1, max: 36_500,
    meaning: "Days for which metrics, the history of retention and the audit log are kept." },
  { name: "EVICTION_INTERVAL", field: "evictionIntervalMs", group: "Maintenance", kind: "integer",
    default: 60_000, min: 100, max: 86_400_000,
    meaning: "Pause between two sweeps for messages that waited longer than maxWaitTimeSeconds, "
      + "in milliseconds." },
  { name: "EVICTION_BATCH_SIZE", field: "evictionBatchSize", group: "Maintenance", kind: "integer",
    default: 1000, min: 1, max: 100_000,
    meaning: "Messages that one transaction of that sweep moves to the dead letters at most." },
  { name: "QUEEN_LEASE_SWEEP_INTERVAL_MS", field: "leaseSweepIntervalMs", group: "Maintenance",
    kind: "integer", default: 10_000, min: 100, max: 3_600_000,
    meaning: "Pause between two sweeps for leases that ran out, in milliseconds; a lease that ran out less "
      + "than that ago is left to its late consumer, unless another pop wants its partition." },
  { name: "QUEEN_SPOOL_DIR", field: "spoolDir", group: "Spool", kind: "text",
    default: { unset: "unset: FILE_BUFFER_DIR, or the data folder with `-spool/<port>` behind its name" },
    meaning: "Folder of the messages that were pushed while PostgreSQL was away; each broker needs its own." },
  { name: "FILE_BUFFER_DIR", field: "fileBufferDir", group: "Spool", kind: "text",
    default: { unset: "unset" },
    meaning: "The same, where QUEEN_SPOOL_DIR is unset." },
  { name: "QUEEN_SPOOL_MAX_BYTES", field: "spoolBytesMax", group: "Spool", kind: "integer",
    default: 1024 ** 3, min: 0, max: 1024 ** 5,
    meaning: "Bytes that may wait on the disk; a push beyond them is answered 503. 0: no spool." },
  { name: "QUEEN_SPOOL_AFTER_MS", field: "spoolAfterMs", group: "Spool", kind: "integer",
    default: 2000, min: 50, max: 600_000,
    meaning: "A push goes to the disk when PostgreSQL has taken none for so many milliseconds." },
  { name: "QUEEN_CRASH_AT", readBy: "crash-point.ts", group: "Spool", kind: "text",
    default: { unset: "unset" },
    meaning: "For tests: the broker kills itself at this point; see crash-point.ts." },
] as const satisfies readonly Row[];

type TableRow = (typeof VARIABLES)[number];
type ValueOf<R> = R extends { kind: "integer" }
  ? number
  : R extends { kind: "boolean" }
    ? boolean
    : R extends { kind: "one-of"; choices: readonly (infer Choice)[] }
      ? Choice
      : R extends { kind: "text"; default: string | { of: unknown } }
        ? string
        : string | undefined;

export const FIELD_ROWS: readonly FieldRow[] = VARIABLES.filter((row) => "field" in row);

/** One field per row that has one; frozen. */
export type Config = {
  readonly [R in TableRow as R extends { field: infer Field extends string } ? Field : never]: ValueOf<R>;
};

/** Without authentication nobody from outside gets in by accident. */
function hostDefault({ tokensEnabled, keysEnabled, adminKey }: Known): string {
  return tokensEnabled || keysEnabled || adminKey !== undefined ? "0.0.0.0" : "127.0.0.1";
}

function workerCountDefault({ cores }: Known): number {
  return Math.max(1, Math.min(4, Math.floor(cores / 2)));
}

function callDeadlineMsDefault({ statementTimeoutMs }: Known): number {
  return statementTimeoutMs + 5000;
}

function secondaryConnectionCountDefault({ workerCount }: Known): number {
  return SECONDARY_CONNECTIONS_PER_WORKER * workerCount;
}

function slotCountDefault({ workerCount }: Known): number {
  const others =
    CONNECTIONS_TO_START + (SECONDARY_CONNECTIONS_PER_WORKER + BUS_CONNECTIONS_PER_WORKER) * workerCount;
  const affordable = Math.floor((CONNECTIONS_DEFAULT_MAX - others) / workerCount);
  return workerCount * Math.max(SLOTS_PER_WORKER_MIN, Math.min(SLOTS_PER_WORKER, affordable));
}

/** Variables that are known, accepted and do nothing; `*` stands for any run of characters. */
export const WITHOUT_EFFECT: readonly { readonly names: readonly string[]; readonly reason: string }[] = [
  { names: ["QUEEN_UDP_*", "QUEEN_SYNC_*"], reason: "brokers talk through PostgreSQL" },
  {
    names: ["POP_WAIT_BACKOFF_THRESHOLD", "POP_WAIT_BACKOFF_MULTIPLIER", "QUEUE_BACKOFF_CLEANUP_THRESHOLD"],
    reason: "a waiting pop is woken by the push and doesn't poll; see POP_WAIT_MAX_INTERVAL_MS",
  },
  {
    names: ["QUEEN_CONCURRENCY_MODE", "QUEEN_VEGAS_*"],
    reason: "a busy database makes batches larger by itself; SIDECAR_POOL_SIZE bounds the calls in flight",
  },
  {
    names: [
      "QUEEN_*_PREFERRED_BATCH_SIZE",
      "QUEEN_*_MAX_HOLD_MS",
      "QUEEN_*_MAX_BATCH_SIZE",
      "QUEEN_*_MAX_CONCURRENT",
    ],
    reason: "batching is set for all kinds of operations by the SIDECAR_ variables",
  },
  {
    names: ["RESPONSE_TIMER_INTERVAL_MS", "RESPONSE_BATCH_SIZE", "RESPONSE_BATCH_MAX"],
    reason: "an answer is sent as soon as it is known",
  },
  { names: ["DB_THREAD_POOL_SERVICE_THREADS"], reason: "NUM_WORKERS decides about parallel work" },
  {
    names: ["DB_TCP_USER_TIMEOUT_MS", "DB_KEEPALIVES_IDLE", "DB_KEEPALIVES_INTERVAL", "DB_KEEPALIVES_COUNT"],
    reason: "LIBQUEEN_INFLIGHT_DEADLINE_MS finds a connection that no longer answers",
  },
  {
    names: ["STATS_INTERVAL_MS", "STATS_RECONCILE_INTERVAL_MS"],
    reason: "figures come from offsets when they are asked for, so there is nothing to count again",
  },
  {
    names: ["PARTITION_LOOKUP_RECONCILE_INTERVAL_MS", "PARTITION_LOOKUP_RECONCILE_LOOKBACK_SECONDS"],
    reason: "a push is visible to every pop as soon as it is answered, so there is nothing to reconcile",
  },
  {
    names: ["WORKER_ID", "STATS_HISTORY_RETENTION_DAYS"],
    reason:
      "a worker is named by its host and its number; METRICS_RETENTION_DAYS says how long figures are kept",
  },
  {
    names: ["FILE_BUFFER_FLUSH_MS", "FILE_BUFFER_MAX_BATCH", "FILE_BUFFER_EVENTS_PER_FILE"],
    reason: "the spool writes at once and drains in batches of its own; see QUEEN_SPOOL_MAX_BYTES",
  },
  {
    names: ["QUEEN_CACHE_*"],
    reason: "QUEEN_SEGMENT_CACHE_MB and QUEEN_DEDUP_MEMORY_MB bound what a worker keeps in memory",
  },
  { names: ["WEBAPP_ROOT"], reason: "the page is inside of the package" },
  { names: ["UWS_HTTP_MAX_HEADERS_SIZE"], reason: "headers may have 16 KiB, as is usual for Node.js" },
];
