/** Tokens (JWT) as honest and dishonest issuers make them. */
import { createHmac, type KeyObject, sign as signBytes } from "node:crypto";

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

export const inAnHour = (): number => Math.floor(Date.now() / 1000) + 3600;

/** Any header and any claims, with a signature over them. */
export function forge(header: unknown, claims: unknown, signature: (signed: string) => string): string {
  const signed = `${part(header)}.${part(claims)}`;
  return `${signed}.${signature(signed)}`;
}

export const hmac =
  (secret: string | Buffer) =>
  (signed: string): string =>
    createHmac("sha256", secret).update(signed).digest("base64url");

export const rsa =
  (key: KeyObject) =>
  (signed: string): string =>
    signBytes("sha256", Buffer.from(signed), key).toString("base64url");

export const unsigned = (): string => "";
