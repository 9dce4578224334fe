/** A UUID of version 7: the milliseconds first, so that ids made later sort later; then random bits. */
const RANDOM_BYTES = 10;
// Random bytes for many ids at once: asking for them costs far more than having them.
const pool = new Uint8Array(256 * RANDOM_BYTES);
let used = pool.length;
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export function uuidV7(nowMillis: number = Date.now()): string {
  if (used === pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  const millis = nowMillis.toString(16).padStart(12, "0");
  const version = HEX[0x70 | (pool[used]! & 0x0f)]! + HEX[pool[used + 1]!]!;
  const variant = HEX[0x80 | (pool[used + 2]! & 0x3f)]! + HEX[pool[used + 3]!]!;
  let rest = "";
  for (let index = 4; index < RANDOM_BYTES; index++) rest += HEX[pool[used + index]!]!;
  used += RANDOM_BYTES;
  return `${millis.slice(0, 8)}-${millis.slice(8)}-${version}-${variant}-${rest}`;
}
