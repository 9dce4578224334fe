/** The guard finds out who sends a request. */
import { BrokerError } from "@queen/protocol";
import { hashApiKey, isSameHash } from "./api-key.ts";
import type { ApiKeyVerifier } from "./api-key-verifier.ts";
import { ANYBODY, Identity, NOBODY } from "./identity.ts";
import type { Access } from "./roles.ts";
import type { TokenVerifier } from "./token-verifier.ts";

export interface GuardOptions {
  /** Undefined: no tokens are accepted. */
  readonly tokens: TokenVerifier | undefined;
  /** Undefined: no keys are accepted. */
  readonly keys: ApiKeyVerifier | undefined;
  /** The administrator's own key; undefined: there is none. */
  readonly adminKey: string | undefined;
  /** Paths that are open to everybody; one that ends in `/` and is longer stands for all below it. */
  readonly openPaths: readonly string[];
}

const ADMINISTRATOR = new Identity({
  subject: "key:admin",
  name: "the administrator's key",
  roles: ["admin"],
  queues: undefined,
});

export class Guard {
  readonly #options: GuardOptions;

  constructor(options: GuardOptions) {
    this.#options = options;
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
  identify(access: Access, path: string, authorization: string | undefined): Identity | Promise<Identity> {
    if (access === "open") return NOBODY;
    if (this.#isOpen(path)) return ANYBODY;
    const credential = authorization?.replace(/^bearer( +|$)/i, "").trim();
    if (!credential) throw new BrokerError("UNAUTHENTICATED", "Authentication required");
    const { keys, tokens, adminKey } = this.#options;
    if (adminKey !== undefined && isSameHash(hashApiKey(adminKey), hashApiKey(credential)))
      return ADMINISTRATOR;
    const byKey = keys?.verify(credential);
    if (byKey) return byKey;
    if (tokens) return tokens.verify(credential);
    throw new BrokerError("UNAUTHENTICATED", "Invalid API key");
  }

  #isOpen(path: string): boolean {
    return this.#options.openPaths.some(
      (open) => path === open || (open.length > 1 && open.endsWith("/") && path.startsWith(open)),
    );
  }
}
