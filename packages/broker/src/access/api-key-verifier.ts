/**
 * Verifies API keys against the database. What was read counts for a moment, so that a revoked key is
 * refused within a second; while the database is away, keys that were known go on to count.
 */
import { BrokerError } from "@queen/protocol";
import { hashApiKey, isSameHash, parseApiKey } from "./api-key.ts";
import { Identity } from "./identity.ts";
import { isRole } from "./roles.ts";

/** A key as it is stored. */
export interface StoredApiKey {
  readonly id: number;
  readonly name: string;
  readonly hash: Buffer;
  readonly role: string;
  readonly queues: readonly string[] | null;
  readonly expiresAtMs: number | null;
}

export interface ApiKeyVerifierOptions {
  /** The key with this id, unless it was revoked. */
  readonly read: (id: number) => Promise<StoredApiKey | undefined>;
  readonly now: () => number;
}

interface Known {
  readonly key: StoredApiKey | undefined;
  readonly identity: Identity | undefined;
  readonly readAtMs: number;
}

const FRESH_MS = 1_000;
// So long a key counts that cannot be read again.
const STALE_MS_MAX = 15 * 60_000;
const KNOWN_MAX = 10_000;

export class ApiKeyVerifier {
  readonly #options: ApiKeyVerifierOptions;
  readonly #known = new Map<number, Known>();
  readonly #reading = new Map<number, Promise<Known>>();

  constructor(options: ApiKeyVerifierOptions) {
    this.#options = options;
  }

  /** Undefined: this is no API key at all. */
  verify(text: string): Identity | Promise<Identity> | undefined {
    const parsed = parseApiKey(text);
    if (!parsed) return undefined;
    const known = this.#known.get(parsed.id);
    if (known && this.#options.now() - known.readAtMs < FRESH_MS) return this.#check(known, parsed.secret);
    return this.#read(parsed.id).then((read) => this.#check(read, parsed.secret));
  }

  /** Whether it was right when its key was read last. */
  knows(text: string): boolean {
    const parsed = parseApiKey(text);
    const key = parsed && this.#known.get(parsed.id)?.key;
    return key !== undefined && isSameHash(key.hash, hashApiKey(parsed!.secret));
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
      const key = await read(id);
      const identity = key && identityOf(key);
      const known = { key, identity, readAtMs: now() };
      if (this.#known.size >= KNOWN_MAX) this.#known.delete(this.#known.keys().next().value!);
      this.#known.set(id, known);
      return known;
    } catch (error) {
      if (before?.key && now() - before.readAtMs < STALE_MS_MAX) return before;
      throw error;
    }
  }

  #check({ key, identity }: Known, secret: string): Identity {
    if (!key || !identity || !isSameHash(key.hash, hashApiKey(secret))) {
      throw new BrokerError("UNAUTHENTICATED", "Invalid API key");
    }
    if (key.expiresAtMs !== null && key.expiresAtMs <= Date.now()) {
      throw new BrokerError("UNAUTHENTICATED", "API key has expired");
    }
    return identity;
  }
}

function identityOf({ id, name, role, queues }: StoredApiKey): Identity {
  return new Identity({
    subject: `key:${name}`,
    name: `key ${id} (${name})`,
    roles: isRole(role) ? [role] : [],
    queues: queues ?? undefined,
  });
}
