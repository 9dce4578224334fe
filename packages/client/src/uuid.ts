/** A UUID of version 7: the milliseconds first, so that ids made later sort later; then random bits. */
const RANDOM_BYTES = 10;
// Random bytes for many ids at once: asking for them costs far more than having them.
const pool = new Uint8Array(256 * RANDOM_BYTES);
let used = pool.length;
let lastMillis = -1;
let lastTime = "";
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const DIGITS = "0123456789abcdef";
const VARIANTS = "89ab";

export function uuidV7(nowMillis: number = Date.now()): string {
  if (used === pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  if (nowMillis !== lastMillis) {
    lastMillis = nowMillis;
    const time = nowMillis.toString(16).padStart(12, "0");
    lastTime = `${time.slice(0, 8)}-${time.slice(8)}-7`;
  }
  const at = used;
  used += RANDOM_BYTES;
  const hex = (index: number): string => HEX[pool[at + index]!]!;
  const loose = pool[at + 2]!;
  const a = hex(0) + DIGITS[loose & 0xf]!;
  const b = VARIANTS[pool[at + 3]! & 3]! + hex(1) + DIGITS[loose >> 4]!;
  return `${lastTime}${a}-${b}-${hex(4)}${hex(5)}${hex(6)}${hex(7)}${hex(8)}${hex(9)}`;
}
