/**
 * Verifies JSON Web Tokens. Which keys may verify a token follows from its algorithm's family alone: a secret
 * for HS…, public keys for all others; nothing in a token names a key but its `kid`, which only chooses among
 * keys that are configured.
 */
import { BrokerError } from "@queen/protocol";
import {
  type CryptoKey,
  createRemoteJWKSet,
  customFetch,
  decodeProtectedHeader,
  errors,
  importSPKI,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from "jose";
import { Identity } from "./identity.ts";
import type { Role } from "./roles.ts";

export const SECRET_ALGORITHMS = ["HS256", "HS384", "HS512"] as const;
export const PUBLIC_ALGORITHMS = ["RS256", "RS384", "RS512", "ES256", "EdDSA"] as const;

export interface TokenOptions {
  /** One algorithm, or `auto`: every one that a configured key fits. */
  readonly algorithm: string;
  readonly secret: string | undefined;
  readonly publicKeyPem: string | undefined;
  readonly jwksUrl: string | undefined;
  readonly jwksTimeoutMs: number;
  readonly jwksRefreshMs: number;
  readonly issuer: string | undefined;
  readonly audience: string | undefined;
  readonly clockSkewSeconds: number;
  readonly requiresExpiry: boolean;
  readonly rolesClaim: string;
  readonly rolesArrayClaim: string;
  readonly queuesClaim: string;
  /** A role by the name that tokens give it. */
  readonly roleNames: ReadonlyMap<string, Role>;
  readonly now: () => number;
  readonly log: (event: string, error: unknown) => void;
}

interface Verified {
  readonly identity: Identity;
  readonly untilMs: number;
}

// At most one fetch in this time for keys that are not known, be it answered or not; while none is known at all,
// nobody can be let in, so it is tried more often.
const UNKNOWN_KEY_PAUSE_MS = 30_000;
const FIRST_KEYS_PAUSE_MS = 5_000;
// A token that was verified is believed so long, and never past its expiry.
const BELIEVED_MS = 30_000;
const BELIEVED_MAX = 10_000;
const TOKEN_LENGTH_MAX = 16_384;
const QUEUES_MAX = 100;
const KID_SHOWN_MAX = 80;

/** The keys were fetched, or could not be, a moment ago. */
class FetchedJustNow extends Error {}

const refused = (message: string): BrokerError => new BrokerError("UNAUTHENTICATED", message);

export class TokenVerifier {
  readonly #options: TokenOptions;
  readonly #algorithms: readonly string[];
  readonly #believed = new Map<string, Verified>();
  readonly #publicKeys = new Map<string, ReturnType<typeof importSPKI>>();
  readonly #jwks: ReturnType<typeof createRemoteJWKSet> | undefined;
  #refresh: NodeJS.Timeout | undefined;
  #fetchAgainAtMs = 0;

  constructor(options: TokenOptions) {
    this.#options = options;
    const { algorithm, secret, publicKeyPem, jwksUrl } = options;
    const fitting = [
      ...(secret === undefined ? [] : SECRET_ALGORITHMS),
      ...(publicKeyPem === undefined && jwksUrl === undefined ? [] : PUBLIC_ALGORITHMS),
    ];
    this.#algorithms = algorithm === "auto" ? fitting : fitting.filter((each) => each === algorithm);
    if (jwksUrl !== undefined && publicKeyPem === undefined) {
      this.#jwks = createRemoteJWKSet(new URL(jwksUrl), {
        timeoutDuration: options.jwksTimeoutMs,
        cooldownDuration: UNKNOWN_KEY_PAUSE_MS,
        cacheMaxAge: Number.POSITIVE_INFINITY,
        [customFetch]: (url, request) => this.#fetch(url, request),
      });
    }
  }

  /** Fetches keys now and on schedule. */
  start(): void {
    if (!this.#jwks) return;
    const reload = (): void => {
      this.#fetchAgainAtMs = 0;
      this.#jwks!.reload().then(
        () => this.#believed.clear(),
        (error) => this.#options.log("jwks.failed", error),
      );
    };
    reload();
    this.#refresh = setInterval(reload, this.#options.jwksRefreshMs).unref();
  }

  async #fetch(url: string, request: RequestInit): Promise<Response> {
    const nowMs = this.#options.now();
    if (nowMs < this.#fetchAgainAtMs) throw new FetchedJustNow();
    this.#fetchAgainAtMs = nowMs + (this.#hasKeys ? UNKNOWN_KEY_PAUSE_MS : FIRST_KEYS_PAUSE_MS);
    return fetch(url, request);
  }

  get #hasKeys(): boolean {
    return this.#jwks?.jwks() !== undefined;
  }

  stop(): void {
    clearInterval(this.#refresh);
  }

  /** A token that was verified a moment ago is answered at once. */
  verify(token: string): Identity | Promise<Identity> {
    const believed = this.#believed.get(token);
    if (believed && believed.untilMs > this.#options.now()) return believed.identity;
    return this.#verify(token);
  }

  /** Whether it was verified a while ago. */
  knows(token: string): boolean {
    return this.#believed.has(token);
  }

  async #verify(token: string): Promise<Identity> {
    const { now, clockSkewSeconds } = this.#options;
    if (token.length > TOKEN_LENGTH_MAX) throw refused("Token decode error: the token is too long");
    this.#checkAlgorithm(token);
    const { payload } = await this.#checkSignature(token).catch((error) => {
      this.#believed.delete(token);
      throw error;
    });
    const identity = this.#identityOf(payload);
    const leftMs =
      payload.exp === undefined ? BELIEVED_MS : (payload.exp + clockSkewSeconds) * 1000 - Date.now();
    if (this.#believed.size >= BELIEVED_MAX) this.#believed.delete(this.#believed.keys().next().value!);
    this.#believed.set(token, { identity, untilMs: now() + Math.min(BELIEVED_MS, leftMs) });
    return identity;
  }

  #checkAlgorithm(token: string): void {
    let alg: unknown;
    try {
      ({ alg } = decodeProtectedHeader(token));
    } catch (error) {
      throw refused(`Token decode error: ${(error as Error).message}`);
    }
    if (this.#algorithms.some((each) => each === alg)) return;
    const { algorithm } = this.#options;
    const shown =
      typeof alg === "string" && /^[\w-]{1,20}$/.test(alg) ? alg : String(JSON.stringify(alg)).slice(0, 20);
    throw refused(
      algorithm === "auto" ? `Unsupported algorithm: ${shown}` : `Token uses ${shown}, expected ${algorithm}`,
    );
  }

  async #checkSignature(token: string) {
    const { issuer, audience, clockSkewSeconds, requiresExpiry } = this.#options;
    const rules: JWTVerifyOptions = {
      algorithms: [...this.#algorithms],
      clockTolerance: clockSkewSeconds,
      ...(issuer === undefined ? {} : { issuer }),
      ...(audience === undefined ? {} : { audience }),
      requiredClaims: requiresExpiry ? ["exp"] : [],
    };
    try {
      return await jwtVerify(token, this.#key, rules).catch((error: unknown) => {
        if (error instanceof errors.JWKSMultipleMatchingKeys) return verifyByAny(token, error, rules);
        throw error;
      });
    } catch (error) {
      throw this.#told(error, token);
    }
  }

  readonly #key: JWTVerifyGetKey = async (header, token) => {
    const { secret, publicKeyPem } = this.#options;
    if (header.alg!.startsWith("HS")) return new TextEncoder().encode(secret);
    if (publicKeyPem !== undefined) {
      let key = this.#publicKeys.get(header.alg!);
      if (!key) {
        key = importSPKI(publicKeyPem, header.alg!);
        this.#publicKeys.set(header.alg!, key);
      }
      return key;
    }
    return this.#jwks!({ alg: header.alg!, ...(header.kid === undefined ? {} : { kid: header.kid }) }, token);
  };

  #told(error: unknown, token: string): Error {
    if (error instanceof errors.JWTExpired) return refused("Token has expired");
    if (error instanceof errors.JWSSignatureVerificationFailed) return refused("Invalid token signature");
    const isUnknown =
      error instanceof FetchedJustNow ? this.#hasKeys : error instanceof errors.JWKSNoMatchingKey;
    if (isUnknown)
      return refused(`Unknown key ID: ${String(decodeProtectedHeader(token).kid).slice(0, KID_SHOWN_MAX)}`);
    if (error instanceof errors.JWTClaimValidationFailed) {
      if (error.claim === "iss") return refused("Invalid token issuer");
      if (error.claim === "aud") return refused("Invalid token audience");
      if (error.claim === "exp") return refused("Token has no expiry");
      return refused(`Invalid token: ${error.message}`);
    }
    if (error instanceof errors.JWKSTimeout || error instanceof FetchedJustNow || isFetchFailure(error)) {
      if (!(error instanceof FetchedJustNow)) this.#options.log("jwks.failed", error);
      return new BrokerError(
        "IDENTITY_PROVIDER_UNAVAILABLE",
        "The keys that verify tokens cannot be fetched now.",
      );
    }
    if (error instanceof errors.JOSEError || error instanceof TypeError) {
      return refused(`Token decode error: ${error.message}`);
    }
    return error as Error;
  }

  #identityOf(payload: JWTPayload): Identity {
    const { rolesClaim, rolesArrayClaim, queuesClaim, roleNames } = this.#options;
    const one = payload[rolesClaim];
    const many = payload[rolesArrayClaim];
    const names = [one, ...(Array.isArray(many) ? many : [])].filter((each) => typeof each === "string");
    const roles = names.flatMap((name) => roleNames.get(name as string) ?? []);
    const subject = typeof payload.sub === "string" && payload.sub !== "" ? payload.sub : null;
    return new Identity({
      subject,
      name: subject ?? "a token without sub",
      roles,
      queues: queuesOf(payload[queuesClaim]),
    });
  }
}

/** A token that does not name its key is verified by whichever fits. */
async function verifyByAny(token: string, keys: AsyncIterable<CryptoKey>, rules: JWTVerifyOptions) {
  for await (const key of keys) {
    try {
      return await jwtVerify(token, key, rules);
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
    }
  }
  throw new errors.JWSSignatureVerificationFailed();
}

/** A claim that is there and no list of patterns opens nothing. */
function queuesOf(claim: unknown): readonly string[] | undefined {
  if (claim === undefined) return undefined;
  const isList = Array.isArray(claim) && claim.length <= QUEUES_MAX;
  return isList && claim.every((each) => typeof each === "string") ? (claim as string[]) : [];
}

const isFetchFailure = (error: unknown): boolean =>
  error instanceof errors.JOSEError
    ? error.code === "ERR_JOSE_GENERIC"
    : error instanceof TypeError && error.message === "fetch failed";
