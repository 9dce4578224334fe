/**
 * The other workers on this database, of this broker and of others, as far as they were heard of lately.
 *
 * Of the workers that read, each lane has one that looks at it first: its home. Every worker reckons it by itself, from the
 * ids of those it hears (rendezvous hashing): who hears the same comes to the same, and where one comes or goes only its
 * own lanes move. For a moment two may think themselves at home, or none: a home is about who is first, never about who may.
 */
interface Peer {
  readonly seed: number;
  seenAtMs: number;
  /** Somebody pops there, or did not long ago. */
  readonly reads: boolean;
}

const GONE_MS = 16_000;

export class Peers {
  readonly #seed: number;
  readonly #now: () => number;
  readonly #peers = new Map<string, Peer>();
  readonly #seedsOfReaders: number[] = [];
  #lostCount = 0;

  /** `id`: this worker's own. */
  constructor(id: string, now: () => number) {
    this.#seed = hash(id);
    this.#now = now;
  }

  get count(): number {
    this.dropSilent();
    return this.#peers.size;
  }

  /** How many were heard and fell silent. */
  get lostCount(): number {
    return this.#lostCount;
  }

  /** As of the last time that somebody was heard or counted. */
  get isEmpty(): boolean {
    return this.#peers.size === 0;
  }

  /** `reads` is undefined where it was not said: nothing changed, or it is a broker of a version that does not say it. */
  heard(id: string, reads: boolean | undefined): void {
    const known = this.#peers.get(id);
    const seenAtMs = this.#now();
    if (known && (reads === undefined || reads === known.reads)) {
      known.seenAtMs = seenAtMs;
      return;
    }
    this.#peers.set(id, { seed: hash(id), seenAtMs, reads: reads ?? true });
    this.#findReaders();
  }

  isHome(lane: number): boolean {
    const own = score(this.#seed, lane);
    for (const seed of this.#seedsOfReaders) if (score(seed, lane) > own) return false;
    return true;
  }

  /** Who was not heard for a while is gone. */
  dropSilent(): void {
    const aliveSinceMs = this.#now() - GONE_MS;
    for (const [id, peer] of this.#peers) {
      if (peer.seenAtMs >= aliveSinceMs) continue;
      this.#peers.delete(id);
      this.#lostCount++;
      this.#findReaders();
    }
  }

  #findReaders(): void {
    this.#seedsOfReaders.length = 0;
    for (const { seed, reads } of this.#peers.values()) if (reads) this.#seedsOfReaders.push(seed);
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++)
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value;
}

/** Even for lanes whose numbers follow each other. */
function score(seed: number, lane: number): number {
  let value = Math.imul(seed ^ lane, 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
