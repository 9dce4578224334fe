/**
 * Database settings say which PostgreSQL the broker uses: where it listens, who connects, and how.
 *
 * They come from the first of these that is set:
 *
 *   DATABASE_URL    postgres://user:password@host:5432/database?sslmode=…, also with several hosts
 *   PG_HOST         and PG_PORT, PG_DB, PG_USER, PG_PASSWORD, PG_USE_SSL, PG_SSL_REJECT_UNAUTHORIZED
 *   PGHOST          and libpq's PGPORT, PGDATABASE, PGUSER, PGPASSWORD, PGSSLMODE
 *
 * With none of them the broker starts its own server. An empty variable counts as not set, and what a
 * DATABASE_URL leaves out comes from libpq's variables, as it does for psql. A host that starts with "/"
 * is the folder of a Unix socket.
 */
export interface DatabaseSettings {
  readonly hosts: readonly DatabaseHost[];
  readonly database: string;
  readonly user: string;
  readonly password?: string;
  readonly ssl: false | { readonly rejectUnauthorized: boolean };
  readonly source: "DATABASE_URL" | "PG_HOST" | "PGHOST" | "embedded";
}

export interface DatabaseHost {
  readonly host: string;
  readonly port: number;
}

type Env = Readonly<Record<string, string | undefined>>;
type Ssl = DatabaseSettings["ssl"];

const PORT_DEFAULT = 5432;

/** The settings in the environment, or undefined where the broker is to start its own server. */
export function readDatabaseSettings(env: Env): DatabaseSettings | undefined {
  if (env.DATABASE_URL) return fromUrl(env.DATABASE_URL, env);
  if (env.PG_HOST) return fromQueenVariables(env.PG_HOST, env);
  if (env.PGHOST) return fromLibpqVariables(env.PGHOST, env);
  return undefined;
}

/** The settings as a URL to print: the password is hidden. */
export function describe(settings: DatabaseSettings): string {
  const password = settings.password === undefined ? "" : ":***";
  const hosts = settings.hosts.map(({ host, port }) => `${hostInUrl(host)}:${port}`).join(",");
  const ssl = settings.ssl ? `?sslmode=${settings.ssl.rejectUnauthorized ? "verify-full" : "require"}` : "";
  const user = encodeURIComponent(settings.user);
  return `postgresql://${user}${password}@${hosts}/${encodeURIComponent(settings.database)}${ssl}`;
}

/** Freezes the settings through and through. A Unix socket never speaks TLS, so `ssl` is then false. */
export function databaseSettings(settings: DatabaseSettings): DatabaseSettings {
  const local = settings.hosts.every(({ host }) => host.startsWith("/"));
  return Object.freeze({
    ...settings,
    hosts: Object.freeze(settings.hosts.map((host) => Object.freeze({ ...host }))),
    ssl: local || settings.ssl === false ? false : Object.freeze({ ...settings.ssl }),
  });
}

function fromUrl(url: string, env: Env): DatabaseSettings {
  // The authority ends at the first "/" or "?", the user part at its last "@": a raw "@" in a password works.
  const match = /^postgres(?:ql)?:\/\/(?:([^/?]*)@)?([^/?@]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(url.trim());
  if (match === null)
    throw new Error(
      "DATABASE_URL must look like postgres://user:password@host:5432/database; " +
        'percent-encode "/", "?" and "%" in the user and the password.',
    );
  const [, userInfo = "", authority = "", path = "", query = ""] = match;
  const options = new URLSearchParams(query);
  for (const name of ["sslrootcert", "sslcert", "sslkey"]) {
    if (!options.get(name) || options.get(name) === "system") continue;
    throw new Error(
      `DATABASE_URL must not have ${name}: take it out, and name the file of your ` +
        "certificate authority in NODE_EXTRA_CA_CERTS.",
    );
  }

  const colon = userInfo.indexOf(":");
  const userInUrl = decode(colon < 0 ? userInfo : userInfo.slice(0, colon));
  const passwordInUrl = colon < 0 ? "" : decode(userInfo.slice(colon + 1));
  const user = userInUrl || options.get("user") || env.PGUSER || "postgres";
  const password = passwordInUrl || options.get("password") || env.PGPASSWORD;
  const hosts = options.get("host")
    ? hostList("DATABASE_URL", options.get("host")!, options.get("port") ?? portOf(authority) ?? env.PGPORT)
    : hostsOfAuthority(authority, options.get("port") ?? env.PGPORT);
  return databaseSettings({
    hosts,
    database: decode(path) || options.get("dbname") || env.PGDATABASE || user,
    user,
    ...(password ? { password } : {}),
    ssl: sslOfUrl(options, env),
    source: "DATABASE_URL",
  });
}

function fromQueenVariables(host: string, env: Env): DatabaseSettings {
  const rejectUnauthorized = boolean(env, "PG_SSL_REJECT_UNAUTHORIZED", true);
  return databaseSettings({
    hosts: hostList("PG_HOST", host, env.PG_PORT, "PG_PORT"),
    database: env.PG_DB || "postgres",
    user: env.PG_USER || "postgres",
    password: env.PG_PASSWORD || "postgres",
    ssl: boolean(env, "PG_USE_SSL", false) ? { rejectUnauthorized } : false,
    source: "PG_HOST",
  });
}

function fromLibpqVariables(host: string, env: Env): DatabaseSettings {
  const user = env.PGUSER || "postgres";
  return databaseSettings({
    hosts: hostList("PGHOST", host, env.PGPORT, "PGPORT"),
    database: env.PGDATABASE || user,
    user,
    ...(env.PGPASSWORD ? { password: env.PGPASSWORD } : {}),
    ssl: sslMode("PGSSLMODE", env.PGSSLMODE),
    source: "PGHOST",
  });
}

/** "h1:5432,[::1]:5433,%2Frun%2Fpostgresql" in a URL. */
function hostsOfAuthority(authority: string, portDefault: string | undefined): DatabaseHost[] {
  return authority.split(",").map((text) => {
    const match = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::([^:]*))?$/.exec(text);
    if (match === null) throw new Error(hostsMistake("DATABASE_URL"));
    const host = decode(match[1] ?? match[2] ?? "") || "localhost";
    return checkedHost("DATABASE_URL", host, match[3] || portDefault, "DATABASE_URL");
  });
}

/** "h1,h2" with no port, one port for all, or one port each, as libpq takes them. */
function hostList(name: string, hosts: string, ports: string | undefined, portName = name): DatabaseHost[] {
  const hostTexts = hosts.split(",");
  const portTexts = ports ? ports.split(",") : [];
  if (portTexts.length > 1 && portTexts.length !== hostTexts.length)
    throw new Error(
      `${portName} must hold one port, or one port for each of the ${hostTexts.length} hosts in ${name}.`,
    );
  return hostTexts.map((host, index) =>
    checkedHost(name, host.trim(), portTexts.length > 1 ? portTexts[index] : portTexts[0], portName),
  );
}

function checkedHost(
  name: string,
  host: string,
  portText: string | undefined,
  portName: string,
): DatabaseHost {
  if (host === "" || /[\s@]/.test(host.startsWith("/") ? "" : host)) throw new Error(hostsMistake(name));
  const port = portText ? Number(portText) : PORT_DEFAULT;
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return { host, port };
  throw new Error(
    portName === "DATABASE_URL"
      ? "DATABASE_URL must name a port from 1 to 65535 after the host, as in postgres://user@host:5432/db."
      : `${portName} must be a port from 1 to 65535, got "${portText}".`,
  );
}

const portOf = (authority: string): string | undefined => /:(\d+)$/.exec(authority)?.[1];

const hostsMistake = (name: string): string =>
  name === "DATABASE_URL"
    ? "DATABASE_URL must name hosts as host:5432, [::1]:5432 or h1:5432,h2:5432; " +
      'percent-encode "/", "?" and ":" in the user and the password.'
    : `${name} must be a host name, an address, or the folder of a Unix socket; commas separate several.`;

function hostInUrl(host: string): string {
  if (host.startsWith("/")) return encodeURIComponent(host);
  return host.includes(":") ? `[${host}]` : host;
}

function sslOfUrl(options: URLSearchParams, env: Env): Ssl {
  const mode = options.get("sslmode");
  if (mode) return sslMode("sslmode in DATABASE_URL", mode);
  const ssl = options.get("ssl");
  if (ssl)
    return boolean({ "ssl in DATABASE_URL": ssl }, "ssl in DATABASE_URL", false) && SSL_MODES["verify-full"];
  return sslMode("PGSSLMODE", env.PGSSLMODE);
}

// "allow" and "prefer" promise no encryption, so they connect without; "verify-ca" also checks the host name.
const SSL_MODES = {
  disable: false,
  allow: false,
  prefer: false,
  require: { rejectUnauthorized: false },
  "no-verify": { rejectUnauthorized: false },
  "verify-ca": { rejectUnauthorized: true },
  "verify-full": { rejectUnauthorized: true },
} as const satisfies Record<string, Ssl>;

function sslMode(name: string, mode: string | undefined): Ssl {
  if (!mode) return false;
  if (Object.hasOwn(SSL_MODES, mode)) return SSL_MODES[mode as keyof typeof SSL_MODES];
  throw new Error(`${name} must be one of ${Object.keys(SSL_MODES).join(", ")}, got "${mode}".`);
}

function boolean(env: Env, name: string, otherwise: boolean): boolean {
  const text = env[name];
  if (!text) return otherwise;
  if (/^(true|1|yes|on)$/i.test(text)) return true;
  if (/^(false|0|no|off)$/i.test(text)) return false;
  throw new Error(`${name} must be true or false, got "${text}".`);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error(
      'DATABASE_URL has a "%" that no two hexadecimal digits follow: write a plain "%" as "%25".',
    );
  }
}
