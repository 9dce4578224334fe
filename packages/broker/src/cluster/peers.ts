/**
 * The other workers on this database, of this broker and of others, as far as they were heard of lately.
 *
 * Of the workers that read for a consumer group, each lane has one that looks at it first: its home. Every worker reckons it
 * by itself, from the ids of those it hears (rendezvous hashing): who hears the same comes to the same, and where one comes or
 * goes only its own lanes move. For a moment two may think themselves at home, or none: a home is about who is first, never
 * about who may.
 */
interface Peer {
  readonly seed: number;
  seenAtMs: number;
  /** The ids of the consumer groups that pop there, or did not long ago. */
  readonly groups: readonly number[];
}

const GONE_MS = 16_000;
const NOBODY: readonly number[] = [];

export class Peers {
  readonly #seed: number;
  readonly #now: () => number;
  readonly #peers = new Map<string, Peer>();
  /** The seeds of those that read, by group. */
  readonly #readers = new Map<number, number[]>();
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

  /** As of the last time that somebody was heard or counted. */
  get isEmpty(): boolean {
    return this.#peers.size === 0;
  }

  /** How many were heard and fell silent. */
  get lostCount(): number {
    return this.#lostCount;
  }

  /** `groups` is undefined where it was not said: nothing changed, or it is a broker of a version that does not say it. */
  heard(id: string, groups: readonly number[] | undefined): void {
    const known = this.#peers.get(id);
    const seenAtMs = this.#now();
    if (known && (groups === undefined || String(groups) === String(known.groups))) {
      known.seenAtMs = seenAtMs;
      return;
    }
    this.#peers.set(id, { seed: hash(id), seenAtMs, groups: groups ?? [] });
    this.#findReaders();
  }

  /** Whether of all that read for the group this worker looks at the lane first. */
  isHome(lane: number, group: number): boolean {
    const own = score(this.#seed, lane);
    for (const seed of this.#readers.get(group) ?? NOBODY) if (score(seed, lane) > own) return false;
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
    this.#readers.clear();
    for (const { seed, groups } of this.#peers.values()) {
      for (const group of groups) {
        const seeds = this.#readers.get(group);
        if (seeds) seeds.push(seed);
        else this.#readers.set(group, [seed]);
      }
    }
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
