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
  hash(NON_ASCII.test(text) ? Buffer.from(text, "utf8").toString("latin1") : text, out);
}

const NON_ASCII = /[\u0080-\uffff]/;

// PostgreSQL's starting state, before the length is added: the golden ratio, plus its own constant.
const INITIAL_STATE = (0x9e3779b9 + 3923095) | 0;

/** Writes [high, low] of the key to `out`. Each character of `bytes` is one byte of the UTF-8 text. */
export function hash(bytes: string, out: Uint32Array): void {
  const length = bytes.length;
  let a = (INITIAL_STATE + length) | 0;
  let b = a;
  let c = a;

  let at = 0;
  for (; at + 12 <= length; at += 12) {
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
  for (let shift = 0; at < length; at++, shift += 8) {
    const byte = bytes.charCodeAt(at);
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
function word(bytes: string, at: number): number {
  return (
    bytes.charCodeAt(at) |
    (bytes.charCodeAt(at + 1) << 8) |
    (bytes.charCodeAt(at + 2) << 16) |
    (bytes.charCodeAt(at + 3) << 24)
  );
}
