/**
 * The guard finds out who sends a request. An address that shows wrong credentials again and again is told to wait,
 * and what it shows is not looked at meanwhile, unless it is known to be right: guessing keys takes for ever, and
 * costs neither the database nor those behind the same proxy anything.
 */
import { BrokerError } from "@queen/protocol";
import { ANYBODY, Identity, NOBODY } from "./identity.ts";
import { RateLimiter } from "./rate-limiter.ts";
import type { Access } from "./roles.ts";
import { hashSecret, isSameHash } from "./secret.ts";
import type { SecretVerifier } from "./secret-verifier.ts";
import type { TokenVerifier } from "./token-verifier.ts";
import { TooManyRequests } from "./too-many-requests.ts";

export interface GuardOptions {
  /** Undefined: no tokens are accepted. */
  readonly tokens: TokenVerifier | undefined;
  /** Undefined: no keys are accepted. */
  readonly keys: SecretVerifier | undefined;
  /** Sessions of users; undefined: there are no users. */
  readonly sessions: SecretVerifier | undefined;
  /** The administrator's own key; undefined: there is none. */
  readonly adminKey: string | undefined;
  /** Paths that are open to everybody; one that ends in `/` and is longer stands for all below it. */
  readonly openPaths: readonly string[];
  readonly now: () => number;
}

/** What a client shows, and where it comes from. */
export interface Shown {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly address: string;
}

// A person who mistypes and a deployment with an old key stay below; a program that guesses does not.
const WRONG_PER_SECOND = 10;
const WRONG_AT_ONCE = 100;

const ADMINISTRATOR = new Identity({
  subject: "key:admin",
  name: "the administrator's key",
  roles: ["admin"],
  queues: undefined,
});

export class Guard {
  readonly #options: GuardOptions;
  /** Wrong credentials of an address. */
  readonly #wrong: RateLimiter;

  constructor(options: GuardOptions) {
    this.#options = options;
    this.#wrong = new RateLimiter({ perSecond: WRONG_PER_SECOND, burst: WRONG_AT_ONCE, now: options.now });
  }

  get isOn(): boolean {
    const { tokens, keys, adminKey } = this.#options;
    return tokens !== undefined || keys !== undefined || adminKey !== undefined;
  }

  /** Who everybody is while nobody is asked. */
  get anybody(): Identity {
    return ANYBODY;
  }

  /** Who sends a request for this path; throws where there is no valid credential. */
  identify(access: Access, { path, authorization, address }: Shown): Identity | Promise<Identity> {
    if (access === "open") return NOBODY;
    if (this.#isOpen(path)) return ANYBODY;
    if (!authorization) throw new BrokerError("UNAUTHENTICATED", "Authentication required");
    const credential = authorization.replace(/^bearer( +|$)/i, "").trim();
    if (credential === "") throw new BrokerError("UNAUTHENTICATED", "Empty token");
    const waitMs = this.#wrong.waitMs(address);
    if (waitMs > 0 && !this.#isKnown(credential))
      throw new TooManyRequests("Too many wrong credentials from this address", waitMs);
    try {
      const identity = this.#verify(credential);
      return identity instanceof Promise ? identity.catch((error) => this.#failed(address, error)) : identity;
    } catch (error) {
      return this.#failed(address, error);
    }
  }

  #verify(credential: string): Identity | Promise<Identity> {
    const { keys, sessions, tokens } = this.#options;
    if (this.#isAdministrator(credential)) return ADMINISTRATOR;
    const bySecret = keys?.verify(credential) ?? sessions?.verify(credential);
    if (bySecret) return bySecret;
    if (tokens) return tokens.verify(credential);
    throw new BrokerError("UNAUTHENTICATED", "Invalid API key");
  }

  #failed(address: string, error: unknown): never {
    if (error instanceof BrokerError && error.code === "UNAUTHENTICATED") this.#wrong.take(address);
    throw error;
  }

  /** Whether it was right a while ago, or is the administrator's. */
  #isKnown(credential: string): boolean {
    const { keys, sessions, tokens } = this.#options;
    const verifiers = [keys, sessions, tokens];
    return this.#isAdministrator(credential) || verifiers.some((each) => each?.knows(credential));
  }

  #isAdministrator(credential: string): boolean {
    const { adminKey } = this.#options;
    return adminKey !== undefined && isSameHash(hashSecret(adminKey), hashSecret(credential));
  }

  #isOpen(path: string): boolean {
    return this.#options.openPaths.some(
      (open) => path === open || (open.length > 1 && open.endsWith("/") && path.startsWith(open)),
    );
  }
}
