/**
 * Verifies API keys, or the sessions of users, against the database. What was read counts for a moment, so that one
 * that was revoked is refused within a second; while the database is away, those that were known go on to count.
 */
import { BrokerError } from "@queen/protocol";
import type { Identity } from "./identity.ts";
import { hashSecret, isSameHash, type SecretKind } from "./secret.ts";

/** A secret as it is stored, and who shows it. */
export interface StoredSecret {
  readonly hash: Buffer;
  readonly expiresAtMs: number | null;
  readonly identity: Identity;
}

export interface SecretVerifierOptions {
  readonly kind: SecretKind;
  /** The one with this id, unless it was revoked. */
  readonly read: (id: number) => Promise<StoredSecret | undefined>;
  readonly now: () => number;
}

interface Known {
  readonly stored: StoredSecret | undefined;
  readonly readAtMs: number;
}

const FRESH_MS = 1_000;
// So long one counts that cannot be read again.
const STALE_MS_MAX = 15 * 60_000;
const KNOWN_MAX = 10_000;

export class SecretVerifier {
  readonly #options: SecretVerifierOptions;
  readonly #known = new Map<number, Known>();
  readonly #reading = new Map<number, Promise<Known>>();

  constructor(options: SecretVerifierOptions) {
    this.#options = options;
  }

  /** Undefined: this is nothing of its kind. */
  verify(text: string): Identity | Promise<Identity> | undefined {
    const { kind, now } = this.#options;
    const parsed = kind.parse(text);
    if (!parsed) return undefined;
    const known = this.#known.get(parsed.id);
    if (known && now() - known.readAtMs < FRESH_MS) return this.#check(known, parsed.secret);
    return this.#read(parsed.id).then((read) => this.#check(read, parsed.secret));
  }

  /** Whether it was right when it was read last. */
  knows(text: string): boolean {
    const parsed = this.#options.kind.parse(text);
    const stored = parsed && this.#known.get(parsed.id)?.stored;
    return stored !== undefined && isSameHash(stored.hash, hashSecret(parsed!.secret));
  }

  #read(id: number): Promise<Known> {
    let reading = this.#reading.get(id);
    if (!reading) {
      reading = this.#readNow(id).finally(() => this.#reading.delete(id));
      this.#reading.set(id, reading);
    }
    return reading;
  }

  async #readNow(id: number): Promise<Known> {
    const { read, now } = this.#options;
    const before = this.#known.get(id);
    try {
      const known = { stored: await read(id), readAtMs: now() };
      if (this.#known.size >= KNOWN_MAX) this.#known.delete(this.#known.keys().next().value!);
      this.#known.set(id, known);
      return known;
    } catch (error) {
      if (before?.stored && now() - before.readAtMs < STALE_MS_MAX) return before;
      throw error;
    }
  }

  #check({ stored }: Known, secret: string): Identity {
    const { name } = this.#options.kind;
    if (!stored || !isSameHash(stored.hash, hashSecret(secret))) {
      throw new BrokerError("UNAUTHENTICATED", `Invalid ${name}`);
    }
    if (stored.expiresAtMs !== null && stored.expiresAtMs <= Date.now()) {
      throw new BrokerError(
        "UNAUTHENTICATED",
        `${name.slice(0, 1).toUpperCase()}${name.slice(1)} has expired`,
      );
    }
    return stored.identity;
  }
}
