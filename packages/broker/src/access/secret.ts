/**
 * A secret that the broker hands out: `qk_0000002a_<43 characters>`, with what it is, its id, and 256 random bits. Only
 * a hash of these is stored; with so many, one round of SHA-256 is as good as any.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

export interface ParsedSecret {
  readonly id: number;
  readonly secret: string;
}

export interface SecretKind {
  /** What errors call it. */
  readonly name: string;
  format(id: number, secret: string): string;
  /** Undefined: this is none of them. */
  parse(text: string): ParsedSecret | undefined;
}

export const API_KEY = kind("qk", "API key");
/** What a browser holds while a user is signed in. */
export const USER_SESSION = kind("qs", "session");

function kind(prefix: string, name: string): SecretKind {
  const form = new RegExp(`^${prefix}_([0-9a-f]{8,14})_([A-Za-z0-9_-]{43})$`);
  return {
    name,
    format: (id, secret) => `${prefix}_${id.toString(16).padStart(8, "0")}_${secret}`,
    parse: (text) => {
      const match = form.exec(text);
      return match ? { id: Number.parseInt(match[1]!, 16), secret: match[2]! } : undefined;
    },
  };
}

export const newSecret = (): string => randomBytes(32).toString("base64url");

export const hashSecret = (secret: string): Buffer => createHash("sha256").update(secret).digest();

export const isSameHash = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);
