/** The configuration is read once, from environment variables, and never changes while the broker runs. */
import { readFileSync } from "node:fs";
import {
  ADMIN_KEY_LENGTH_MIN,
  BUS_CONNECTIONS_PER_WORKER,
  CONNECTIONS_OF_A_DEFAULT_SERVER,
  CONNECTIONS_TO_START,
  type Config,
  FIELD_ROWS,
  type FieldRow,
  type Known,
  VARIABLES,
  WITHOUT_EFFECT,
} from "./config-table.ts";

export type { Config };
export type Environment = Readonly<Record<string, string | undefined>>;

const YES = /^(true|on|yes|1)$/i;
const NO = /^(false|off|no|0)$/i;

/** Everything that is wrong with the configuration or the command line, one sentence each. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

/** Throws a ConfigError that names every mistake. An empty variable counts as unset. */
export function readConfig(environment: Environment, cores: number): { config: Config; warnings: string[] } {
  const { env, problems } = secretsFromFiles(environment);
  const values: Record<string, unknown> = {};
  const wrong = new Set<string>();
  for (const row of FIELD_ROWS) {
    const text = env[row.name];
    const problem = text ? problemWith(row.name, row, text) : undefined;
    if (problem) {
      problems.push(problem);
      wrong.add(row.name);
    }
    values[row.field] = text && !problem ? parse(row, text) : defaultOf(row, { ...values, cores } as Known);
  }
  const config = Object.freeze(values) as unknown as Config;
  problems.push(...problemsBetween(config, wrong));
  if (problems.length > 0) throw new ConfigError(problems);
  const warnings = [
    ...warningsAboutConnections(config),
    ...warningsAboutNames(env),
    ...warningsAboutTraces(env),
  ];
  return { config, warnings };
}

/** Connections that the broker opens at most, over all workers. */
export function connectionCount(config: Config): number {
  const bus = BUS_CONNECTIONS_PER_WORKER * config.workerCount;
  return config.slotCount + config.secondaryConnectionCount + bus + CONNECTIONS_TO_START;
}

/** The environment with each secret that `<name>_FILE` points to in place of the pointer. */
export function environmentWithSecrets(environment: Environment): Environment {
  const { env, problems } = secretsFromFiles(environment);
  if (problems.length > 0) throw new ConfigError(problems);
  return env;
}

function secretsFromFiles(environment: Environment): { env: Environment; problems: string[] } {
  const env: Record<string, string | undefined> = { ...environment };
  const problems: string[] = [];
  for (const { name, kind } of VARIABLES) {
    const pointer = `${name}_FILE`;
    const path = env[pointer];
    if (kind !== "secret" || path === undefined) continue;
    delete env[pointer];
    if (path === "") continue;
    if (env[name]) {
      problems.push(`${name} and ${pointer} are both set; unset one of them`);
      continue;
    }
    try {
      // Editors and `echo` end a file with a newline, which is no part of the secret.
      env[name] = readFileSync(path, "utf8").replace(/\r?\n$/, "");
      if (env[name] === "") problems.push(`${pointer} names ${path}, which is empty`);
    } catch (error) {
      problems.push(
        `${pointer} names ${path}, which cannot be read: ${(error as NodeJS.ErrnoException).code}`,
      );
    }
  }
  return { env, problems };
}

/** What is wrong with the text of a variable, or of what `label` names. */
export function problemWith(label: string, row: FieldRow, text: string): string | undefined {
  switch (row.kind) {
    case "integer": {
      const inRange = /^-?\d+$/.test(text.trim()) && Number(text) >= row.min && Number(text) <= row.max;
      return inRange ? undefined : `${label} must be an integer from ${row.min} to ${row.max}, got "${text}"`;
    }
    case "boolean":
      if (YES.test(text) || NO.test(text)) return undefined;
      return `${label} must be on or off, got "${text}"`;
    case "one-of":
      if (row.choices.includes(text)) return undefined;
      return `${label} must be ${listOf(row.choices)}, got "${text}"`;
    case "url":
      return urlProblem(label, text);
    case "text":
    case "secret": {
      if (text.trim() === "") return `${label} must not be blank`;
      const problem = row.kind === "secret" ? row.problem?.(text) : undefined;
      return problem && `${label} ${problem}`;
    }
  }
}

function urlProblem(label: string, text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    return `${label} must be an address such as http://localhost:4318, got "${text}"`;
  }
  if (url.username === "" && url.password === "") return undefined;
  return `${label} must not hold a user and a password: set OTEL_EXPORTER_OTLP_HEADERS to an authorization`;
}

/** Mistakes that only show when two values are compared; a value that is wrong by itself is left out. */
function problemsBetween(config: Config, wrong: ReadonlySet<string>): string[] {
  const problems: string[] = [];
  const { workerCount, statementTimeoutMs, callDeadlineMs } = config;
  for (const row of FIELD_ROWS) {
    if (row.kind !== "integer" || !row.perWorker || wrong.has("NUM_WORKERS") || wrong.has(row.name)) continue;
    const { min, because } = row.perWorker;
    const value = config[row.field as keyof Config] as number;
    if (value >= min * workerCount) continue;
    problems.push(
      `${row.name} must be at least ${min} per worker, ${min * workerCount} for ${workerCount} workers, ` +
        `got "${value}": ${because}`,
    );
  }
  const comparable = !wrong.has("DB_STATEMENT_TIMEOUT") && !wrong.has("LIBQUEEN_INFLIGHT_DEADLINE_MS");
  if (comparable && callDeadlineMs <= statementTimeoutMs) {
    problems.push(
      "LIBQUEEN_INFLIGHT_DEADLINE_MS must be more than DB_STATEMENT_TIMEOUT, " +
        `which is ${statementTimeoutMs}, got "${callDeadlineMs}"`,
    );
  }
  problems.push(...problemsOfAccess(config));
  return problems;
}

/** Authentication that could let nobody in, or the wrong ones. */
function problemsOfAccess(config: Config): string[] {
  const { tokensEnabled, tokenAlgorithm, tokenSecret, tokenPublicKey, jwksUrl, adminKey } = config;
  const problems: string[] = [];
  const hasPublicKeys = tokenPublicKey !== undefined || jwksUrl !== undefined;
  const needsSecret = tokenAlgorithm.startsWith("HS");
  if (tokensEnabled && tokenAlgorithm === "auto" && tokenSecret === undefined && !hasPublicKeys) {
    problems.push("JWT_ENABLED is on: set JWT_SECRET, JWT_PUBLIC_KEY or JWT_JWKS_URL");
  }
  if (tokensEnabled && needsSecret && tokenSecret === undefined) {
    problems.push(`JWT_ALGORITHM=${tokenAlgorithm} needs JWT_SECRET`);
  }
  if (tokensEnabled && !needsSecret && tokenAlgorithm !== "auto" && !hasPublicKeys) {
    problems.push(`JWT_ALGORITHM=${tokenAlgorithm} needs JWT_PUBLIC_KEY or JWT_JWKS_URL`);
  }
  if (jwksUrl !== undefined && !/^https?:\/\/./.test(jwksUrl)) {
    problems.push(`JWT_JWKS_URL must begin with https:// or http://, got "${jwksUrl}"`);
  }
  if ((config.tlsCertificateFile === undefined) !== (config.tlsKeyFile === undefined)) {
    problems.push("QUEEN_TLS_CERT_FILE and QUEEN_TLS_KEY_FILE go together; set both or none");
  }
  if (config.tlsClientAuthorityFile !== undefined && config.tlsCertificateFile === undefined) {
    problems.push("QUEEN_TLS_CLIENT_CA_FILE needs QUEEN_TLS_CERT_FILE and QUEEN_TLS_KEY_FILE");
  }
  if (adminKey !== undefined && adminKey.length < ADMIN_KEY_LENGTH_MIN) {
    problems.push(`QUEEN_ADMIN_KEY must have at least ${ADMIN_KEY_LENGTH_MIN} characters`);
  }
  return problems;
}

function parse(row: FieldRow, text: string): unknown {
  if (row.kind === "integer") return Number(text);
  if (row.kind === "boolean") return YES.test(text);
  return text;
}

function defaultOf(row: FieldRow, known: Known): unknown {
  if (typeof row.default !== "object") return row.default;
  return "of" in row.default ? row.default.of(known) : undefined;
}

function warningsAboutConnections(config: Config): string[] {
  const count = connectionCount(config);
  if (count <= CONNECTIONS_OF_A_DEFAULT_SERVER) return [];
  return [
    `SIDECAR_POOL_SIZE=${config.slotCount}, DB_POOL_SIZE=${config.secondaryConnectionCount} and ` +
      `NUM_WORKERS=${config.workerCount} open up to ${count} connections; ` +
      `PostgreSQL accepts ${CONNECTIONS_OF_A_DEFAULT_SERVER} unless max_connections is raised`,
  ];
}

function warningsAboutNames(env: Environment): string[] {
  const warnings: string[] = [];
  for (const name of Object.keys(env).sort()) {
    if (!env[name]) continue;
    const row = WITHOUT_EFFECT.find(({ names }) => names.some((pattern) => matches(pattern, name)));
    if (row) warnings.push(`${name} has no effect: ${row.reason}`);
  }
  return warnings;
}

function warningsAboutTraces(env: Environment): string[] {
  return ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"]
    .filter((name) => env[name] === "grpc")
    .map(
      (name) =>
        `${name}=grpc has no effect: spans go over HTTP, so let the endpoint be the HTTP port, often 4318`,
    );
}

function matches(pattern: string, name: string): boolean {
  return new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(name);
}

/** One NAME=value per line; a secret is shown as ***, and what is unset as nothing. */
export function printConfig(config: Config): string {
  const lines = FIELD_ROWS.map((row) => {
    const value = config[row.field as keyof Config];
    if (value === undefined) return `${row.name}=`;
    if (row.kind === "secret") return `${row.name}=***`;
    if (row.kind === "boolean") return `${row.name}=${value ? "on" : "off"}`;
    return `${row.name}=${value}`;
  });
  return `${lines.join("\n")}\n`;
}

function listOf(choices: readonly string[]): string {
  const words = choices.map((choice) => choice || "empty");
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}
