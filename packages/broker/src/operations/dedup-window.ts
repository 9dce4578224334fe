/**
 * A dedup window says whether a transaction key may be among a partition's recent messages. "No" is
 * certain; "maybe" is verified in the database, so 32 bits of the key are enough: with 100,000 messages in
 * the window, one new message in 43,000 is looked up for nothing.
 *
 * Keys are kept in generations, each an open-addressing table, so that old ones are dropped whole. The
 * window covers at least the messages younger than `windowUs`, but never fewer than the last `messagesMin`
 * and not more than the last `messagesMax` (plus up to one generation).
 */
export interface WindowLimits {
  readonly windowUs: number;
  readonly messagesMin: number;
  readonly messagesMax: number;
}

const GENERATIONS = 4;
const SLOTS_MIN = 16;

class Generation {
  count = 0;
  newestAtUs = 0;
  /** It has keys whose messages' time is not known yet. */
  isOpen = false;
  slots = new Int32Array(SLOTS_MIN);

  has(fingerprint: number): boolean {
    const mask = this.slots.length - 1;
    for (let at = scatter(fingerprint) & mask; ; at = (at + 1) & mask) {
      const held = this.slots[at]!;
      if (held === fingerprint) return true;
      if (held === 0) return false;
    }
  }

  add(fingerprint: number): void {
    if (this.count * 3 >= this.slots.length * 2) {
      const old = this.slots;
      this.slots = new Int32Array(old.length * 2);
      for (const held of old) if (held !== 0) this.#place(held);
    }
    this.count++;
    this.#place(fingerprint);
  }

  #place(fingerprint: number): void {
    const mask = this.slots.length - 1;
    let at = scatter(fingerprint) & mask;
    while (this.slots[at] !== 0) at = (at + 1) & mask;
    this.slots[at] = fingerprint;
  }
}

// The low bits of the key decide the slot; mixing in the high ones keeps runs short.
const scatter = (fingerprint: number): number => fingerprint ^ (fingerprint >>> 15);
// 0 marks a free slot.
const fingerprintOf = (keyLow: number): number => keyLow | 0 || 1;

export class DedupWindow {
  /** The keys of all messages of the partition below this offset are in the window or too old for it. */
  completeTo: number;
  readonly #limits: WindowLimits;
  readonly #generations = [new Generation()];
  #count = 0;

  constructor(limits: WindowLimits, completeTo: number) {
    this.#limits = limits;
    this.completeTo = completeTo;
  }

  get bytes(): number {
    let bytes = 200;
    for (const generation of this.#generations) bytes += generation.slots.byteLength + 100;
    return bytes;
  }

  maybeHas(keyLow: number): boolean {
    const fingerprint = fingerprintOf(keyLow);
    for (const generation of this.#generations) if (generation.has(fingerprint)) return true;
    return false;
  }

  /** Adds a key; `stamp` tells later when its message was stored. */
  add(keyLow: number): void {
    let newest = this.#generations[this.#generations.length - 1]!;
    if (newest.count >= Math.max(this.#limits.messagesMin, this.#limits.messagesMax / GENERATIONS)) {
      newest = new Generation();
      this.#generations.push(newest);
    }
    newest.add(fingerprintOf(keyLow));
    newest.isOpen = true;
    this.#count++;
  }

  /** The keys added last were stored at this time, by the database's clock. */
  stamp(createdAtUs: number): void {
    for (const generation of this.#generations) {
      if (!generation.isOpen) continue;
      generation.newestAtUs = Math.max(generation.newestAtUs, createdAtUs);
      generation.isOpen = false;
    }
    this.#dropOld(createdAtUs);
  }

  /** Keys as they stand in a segment: eight bytes each, as a latin1 string. */
  addSegment(keys: string, createdAtUs: number): void {
    for (let at = 4; at < keys.length; at += 8) {
      this.add(
        (keys.charCodeAt(at) << 24) |
          (keys.charCodeAt(at + 1) << 16) |
          (keys.charCodeAt(at + 2) << 8) |
          keys.charCodeAt(at + 3),
      );
    }
    this.stamp(createdAtUs);
  }

  #dropOld(nowUs: number): void {
    for (;;) {
      const oldest = this.#generations[0]!;
      const left = this.#count - oldest.count;
      const tooMany = left >= this.#limits.messagesMax;
      const tooOld = oldest.newestAtUs < nowUs - this.#limits.windowUs && left >= this.#limits.messagesMin;
      if (this.#generations.length < 2 || !(tooMany || tooOld)) return;
      this.#generations.shift();
      this.#count = left;
    }
  }
}
