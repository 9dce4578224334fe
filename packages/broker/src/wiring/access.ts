/** Who may come in: by token, by API key, by session, or as anybody; and what is written down of them. */
import { AuditLog } from "../access/audit-log.ts";
import { Guard } from "../access/guard.ts";
import { PasswordCheck } from "../access/password-check.ts";
import type { Role } from "../access/roles.ts";
import { API_KEY, USER_SESSION } from "../access/secret.ts";
import { SecretVerifier } from "../access/secret-verifier.ts";
import type { TokenVerifier } from "../access/token-verifier.ts";
import type { Config } from "../config.ts";
import { ApiKeys } from "../control/api-keys.ts";
import { AuditEntries } from "../control/audit-entries.ts";
import { Users } from "../control/users.ts";
import type { UserSessions } from "../http/sessions.ts";
import type { Log } from "../telemetry.ts";
import { listOf } from "./comma-list.ts";
import type { Use } from "./connections.ts";

export interface AccessOptions {
  readonly config: Config;
  /** Undefined: nobody comes in by token. */
  readonly tokens: TokenVerifier | undefined;
  readonly use: Use;
  readonly now: () => number;
  readonly log: Log;
}

export interface Access {
  readonly keys: ApiKeys;
  readonly users: Users;
  readonly auditEntries: AuditEntries;
  readonly audit: AuditLog;
  readonly guard: Guard;
  /** Undefined: nobody signs in by name and password. */
  readonly userSessions: UserSessions | undefined;
}

export function accessOf({ config, tokens, use, now, log }: AccessOptions): Access {
  const keys = new ApiKeys(use);
  const users = new Users(use);
  const hasKeys = config.keysEnabled || config.adminKey !== undefined;
  const auditEntries = new AuditEntries(use);
  const audit = new AuditLog({ write: (rows) => auditEntries.write(rows), log });
  const guard = new Guard({
    tokens,
    keys: hasKeys ? new SecretVerifier({ kind: API_KEY, read: (id) => keys.read(id), now }) : undefined,
    sessions: hasKeys
      ? new SecretVerifier({ kind: USER_SESSION, read: (id) => users.readSession(id), now })
      : undefined,
    adminKey: config.adminKey,
    openPaths: listOf(config.openPaths),
    now,
  });
  const passwords = new PasswordCheck({
    read: (name) => users.read(name),
    wrong: (user, remote) =>
      log.warn({ message: `Somebody tried to sign in as ${user} in vain`, user, remote }, "user.refused"),
    now,
  });
  const userSessions: UserSessions = {
    check: (name, password, address) => passwords.check(name, password, address),
    start: (user) => users.startSession(user),
    end: (credential) => users.endSession(credential),
  };
  return {
    keys,
    users,
    auditEntries,
    audit,
    guard,
    userSessions: hasKeys ? userSessions : undefined,
  };
}

/** Tokens are verified, and what verifies them is loaded, only where they are switched on. */
export async function tokensOf(
  config: Config,
  now: () => number,
  log: Log,
): Promise<TokenVerifier | undefined> {
  if (!config.tokensEnabled) return undefined;
  const { TokenVerifier } = await import("../access/token-verifier.ts");
  return new TokenVerifier({
    algorithm: config.tokenAlgorithm,
    secret: config.tokenSecret,
    publicKeyPem: config.tokenPublicKey,
    jwksUrl: config.jwksUrl,
    jwksTimeoutMs: config.jwksTimeoutMs,
    jwksRefreshMs: config.jwksRefreshSeconds * 1000,
    issuer: config.tokenIssuer,
    audience: config.tokenAudience,
    clockSkewSeconds: config.tokenClockSkewSeconds,
    requiresExpiry: config.tokenRequiresExpiry,
    rolesClaim: config.rolesClaim,
    rolesArrayClaim: config.rolesArrayClaim,
    queuesClaim: config.queuesClaim,
    roleNames: new Map<string, Role>([
      [config.roleAdmin, "admin"],
      [config.roleReadWrite, "read-write"],
      [config.roleReadOnly, "read-only"],
      [config.roleProduce, "produce"],
      [config.roleConsume, "consume"],
    ]),
    now,
    log: (event, error) => log.warn({ error }, event),
  });
}
