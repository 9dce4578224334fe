/**
 * A transaction key is the 64-bit hash by which the database finds a transactionId: the same number as
 * PostgreSQL's `hashtextextended(text, 0)`, so that either side can compute it. PostgreSQL uses Bob
 * Jenkins' lookup3 over the UTF-8 bytes, read as little-endian words; b is the high half, c the low half.
 */
export interface Key {
  /** Unsigned, 32 bits. */
  readonly high: number;
  /** Unsigned, 32 bits. */
  readonly low: number;
}

const halves = new Uint32Array(2);

/** The key of a transactionId given as ordinary text. */
export function transactionKey(text: string): Key {
  hashText(text, halves);
  return { high: halves[0]!, low: halves[1]! };
}

/** The key of ordinary text as segments hold it: eight bytes, big-endian. */
export function transactionKeyBytes(text: string): Buffer {
  const { high, low } = transactionKey(text);
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeUInt32BE(high, 0);
  bytes.writeUInt32BE(low, 4);
  return bytes;
}

/** Writes [high, low] of the key of ordinary text to `out`. */
export function hashText(text: string, out: Uint32Array): void {
  const bytes = Buffer.from(text, "utf8");
  hash(bytes, 0, bytes.length, out);
}

// PostgreSQL's starting state, before the length is added: the golden ratio, plus its own constant.
const INITIAL_STATE = (0x9e3779b9 + 3923095) | 0;

/** Writes [high, low] of the key of the UTF-8 text from `start` to `end` to `out`. */
export function hash(bytes: Uint8Array, start: number, end: number, out: Uint32Array): void {
  let a = (INITIAL_STATE + end - start) | 0;
  let b = a;
  let c = a;

  let at = start;
  for (; at + 12 <= end; at += 12) {
    a = (a + word(bytes, at)) | 0;
    b = (b + word(bytes, at + 4)) | 0;
    c = (c + word(bytes, at + 8)) | 0;

    a = ((a - c) | 0) ^ ((c << 4) | (c >>> 28));
    c = (c + b) | 0;
    b = ((b - a) | 0) ^ ((a << 6) | (a >>> 26));
    a = (a + c) | 0;
    c = ((c - b) | 0) ^ ((b << 8) | (b >>> 24));
    b = (b + a) | 0;
    a = ((a - c) | 0) ^ ((c << 16) | (c >>> 16));
    c = (c + b) | 0;
    b = ((b - a) | 0) ^ ((a << 19) | (a >>> 13));
    a = (a + c) | 0;
    c = ((c - b) | 0) ^ ((b << 4) | (b >>> 28));
    b = (b + a) | 0;
  }

  // Up to 11 bytes are left. The lowest byte of c stays free: it belongs to the length.
  for (let shift = 0; at < end; at++, shift += 8) {
    const byte = bytes[at]!;
    if (shift < 32) a = (a + (byte << shift)) | 0;
    else if (shift < 64) b = (b + (byte << (shift - 32))) | 0;
    else c = (c + (byte << (shift - 56))) | 0;
  }

  c = ((c ^ b) - ((b << 14) | (b >>> 18))) | 0;
  a = ((a ^ c) - ((c << 11) | (c >>> 21))) | 0;
  b = ((b ^ a) - ((a << 25) | (a >>> 7))) | 0;
  c = ((c ^ b) - ((b << 16) | (b >>> 16))) | 0;
  a = ((a ^ c) - ((c << 4) | (c >>> 28))) | 0;
  b = ((b ^ a) - ((a << 14) | (a >>> 18))) | 0;
  c = ((c ^ b) - ((b << 24) | (b >>> 8))) | 0;

  out[0] = b;
  out[1] = c;
}

/** Four bytes as one little-endian word. */
function word(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}
