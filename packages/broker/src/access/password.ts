/**
 * A password as it is stored: `$scrypt$ln=15,r=8,p=3$<salt>$<hash>`, with the cost of its hash beside it, so that new
 * ones can be made dearer while old ones go on to count. Hashing is done in node's thread pool.
 */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto";

export const PASSWORD_LENGTH_MIN = 12;
export const PASSWORD_LENGTH_MAX = 256;

// 32 MiB of memory and a few tenths of a second for each.
const COST = { ln: 15, r: 8, p: 3 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;
const FORM = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+)$/;

export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await derive(password, salt, HASH_BYTES, COST);
  return stored(salt, hash);
}

/** Takes as long for every password, right or wrong. */
export async function isPassword(password: string, text: string): Promise<boolean> {
  const [, ln, r, p, salt, hash] = FORM.exec(text) ?? [];
  if (hash === undefined) throw new Error("a stored password is not of the form that brokers write");
  const expected = Buffer.from(hash, "base64");
  const cost = { ln: Number(ln), r: Number(r), p: Number(p) };
  return timingSafeEqual(
    await derive(password, Buffer.from(salt!, "base64"), expected.length, cost),
    expected,
  );
}

/** Of nobody; comparing with it takes as long as with anybody's. */
export const nobodysPassword = (): string => stored(randomBytes(SALT_BYTES), randomBytes(HASH_BYTES));

const stored = (salt: Buffer, hash: Buffer): string =>
  `$scrypt$ln=${COST.ln},r=${COST.r},p=${COST.p}$${salt.toString("base64")}$${hash.toString("base64")}`;

function derive(password: string, salt: Buffer, bytes: number, cost: typeof COST): Promise<Buffer> {
  const { ln, r, p } = cost;
  const options: ScryptOptions = { N: 2 ** ln, r, p, maxmem: 2 * 128 * 2 ** ln * r };
  return new Promise((resolve, reject) => {
    // One letter can be written in several ways; keyboards differ in which they choose.
    scrypt(password.normalize("NFC"), salt, bytes, options, (error, key) =>
      error ? reject(error) : resolve(key),
    );
  });
}
