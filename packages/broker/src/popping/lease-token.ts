/** The number that a lease is known by: random, so that brokers need not agree on it and nobody guesses it. */
import { randomFillSync } from "node:crypto";
import { LEASE_TOKEN_LIMIT } from "@queen/protocol";

const randomPool = new Uint32Array(512);
let randomAt = randomPool.length;

export function newToken(): number {
  if (randomAt >= randomPool.length) {
    randomFillSync(randomPool);
    randomAt = 0;
  }
  const high = randomPool[randomAt++]!;
  const low = randomPool[randomAt++]!;
  return (high * 2 ** 20 + (low & 0xfffff)) % LEASE_TOKEN_LIMIT;
}
