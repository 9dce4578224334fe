/**
 * An API key is `qk_` with an id and a secret, `qk_0000002a_<43 characters>`. Only a hash of the secret is
 * stored: it has 256 random bits, so one round of SHA-256 is as good as any.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

const FORM = /^qk_([0-9a-f]{8,14})_([A-Za-z0-9_-]{43})$/;

export interface ParsedApiKey {
  readonly id: number;
  readonly secret: string;
}

export const newApiKeySecret = (): string => randomBytes(32).toString("base64url");

export const formatApiKey = (id: number, secret: string): string =>
  `qk_${id.toString(16).padStart(8, "0")}_${secret}`;

export function parseApiKey(text: string): ParsedApiKey | undefined {
  const match = FORM.exec(text);
  return match ? { id: Number.parseInt(match[1]!, 16), secret: match[2]! } : undefined;
}

export const hashApiKey = (secret: string): Buffer => createHash("sha256").update(secret).digest();

export const isSameHash = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);
