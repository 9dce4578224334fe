/**
 * A dedup window says whether a transaction key may be among a partition's recent messages. "No" is
 * certain; "maybe" is verified in the database, so 32 bits of the key are enough: with 100,000 messages in
 * the window, one new message in 43,000 is looked up for nothing.
 *
 * Keys are kept in generations, so that old ones are dropped whole: the first few of one as they came, more of
 * them in an open-addressing table. (Where lanes are very many, most have few messages.) The window covers at
 * least the messages younger than `windowUs`, but never fewer than the last `messagesMin` and not more than the
 * last `messagesMax` (plus up to one generation).
 */
export interface WindowLimits {
  readonly windowUs: number;
  readonly messagesMin: number;
  readonly messagesMax: number;
}

const GENERATIONS = 4;
const FEW_MAX = 8;
const SLOTS_MIN = 32;
const NO_SLOTS = new Int32Array(0);

class Generation {
  count = 0;
  newestAtUs = 0;
  /** It has keys whose messages' time is not known yet. */
  isOpen = false;
  /** Undefined: they are in the slots. */
  #few: readonly number[] | undefined = [];
  #slots = NO_SLOTS;

  /** About so many, as V8 lays them out. */
  get bytes(): number {
    return this.#few ? 140 + 8 * this.count : 320 + this.#slots.byteLength;
  }

  has(fingerprint: number): boolean {
    if (this.#few) return this.#few.includes(fingerprint);
    const mask = this.#slots.length - 1;
    for (let at = scatter(fingerprint) & mask; ; at = (at + 1) & mask) {
      const held = this.#slots[at]!;
      if (held === fingerprint) return true;
      if (held === 0) return false;
    }
  }

  add(fingerprint: number): void {
    // Not by spreading, which leaves room for sixteen more.
    if (this.#few && this.count < FEW_MAX) this.#few = this.#few.concat(fingerprint);
    else {
      if (this.#few || this.count * 3 >= this.#slots.length * 2) this.#grow();
      this.#place(fingerprint);
    }
    this.count++;
  }

  #grow(): void {
    const old = this.#few ?? this.#slots;
    this.#few = undefined;
    this.#slots = new Int32Array(Math.max(SLOTS_MIN, this.#slots.length * 2));
    for (const held of old) if (held !== 0) this.#place(held);
  }

  #place(fingerprint: number): void {
    const mask = this.#slots.length - 1;
    let at = scatter(fingerprint) & mask;
    while (this.#slots[at] !== 0) at = (at + 1) & mask;
    this.#slots[at] = fingerprint;
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
    let bytes = 140;
    for (const generation of this.#generations) bytes += generation.bytes;
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
