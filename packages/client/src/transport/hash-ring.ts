/**
 * A hash ring gives every key an order of members. Members own arcs of the ring, so that one member more or
 * less moves only its own share of the keys.
 */
// Enough points for arcs of about the same length; three members differ by some percent.
const POINTS_PER_MEMBER = 128;

export class HashRing {
  readonly #points: readonly { readonly hash: number; readonly member: number }[];
  readonly #members: number;

  constructor(names: readonly string[]) {
    this.#members = names.length;
    this.#points = names
      .flatMap((name, member) =>
        Array.from({ length: POINTS_PER_MEMBER }, (_, point) => ({
          hash: fnv1a(`${name}#${point}`),
          member,
        })),
      )
      .sort((a, b) => a.hash - b.hash || a.member - b.member);
  }

  /** All members, the owner of the key first, then those that take over from it. */
  order(key: string): number[] {
    const hash = fnv1a(key);
    let low = 0;
    let high = this.#points.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#points[middle]!.hash < hash) low = middle + 1;
      else high = middle;
    }
    const order = new Set<number>();
    for (let step = 0; order.size < this.#members; step++)
      order.add(this.#points[(low + step) % this.#points.length]!.member);
    return [...order];
  }
}

/** FNV-1a over UTF-8, 32 bits, and a last mix: keys that differ at their end only would be neighbours. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
