/**
 * Encryption at rest: a payload is sealed (AES-256-GCM) where its fragment is made, before it waits, travels or is
 * stored anywhere, and opened only where it is delivered or shown. A sealed fragment says so itself, before the
 * payload, so that what a producer sends can never be taken for it:
 *
 *   "transactionId":…,"traceId":…,"producerSub":…,"isEncrypted":true,"keyId":"<8 hex digits>",
 *   "data":{"encrypted":"<base64>","iv":"<base64>","authTag":"<base64>"}
 *
 * Sealed are the payload's bytes as the producer sent them. Fragments are latin1 strings, one character per byte.
 */
import { createCipheriv, createDecipheriv, createHash, createSecretKey, type KeyObject } from "node:crypto";
import { BrokerError } from "@queen/protocol";

const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
const IV_BYTES = 16;
// Said when opening, too: a shorter tag is easier to forge.
const TAG = { authTagLength: 16 };

const DATA = ',"data":';
const MARK = /,"isEncrypted":true,"keyId":"([0-9a-f]{8})"$/;
const MARK_LENGTH = ',"isEncrypted":true,"keyId":"01234567"'.length;
// How a sealed fragment ends: sixteen bytes in base64, and the object's end.
const SEALED_END = '=="}';
const SEALED = /^\{"encrypted":"([^"]*)","iv":"([^"]*)","authTag":"([^"]*)"\}$/;

/** What is wrong with a list of keys; undefined: nothing. Never shows a key. */
export function keysProblem(text: string): string | undefined {
  const keys = splitKeys(text);
  const wrong = keys.findIndex((key) => !/^[0-9a-f]{64}$/i.test(key));
  if (keys.length > 0 && wrong < 0) return undefined;
  return (
    "must be keys of 64 hexadecimal characters with commas between them" +
    (wrong < 0 ? "" : `; key ${wrong + 1} of ${keys.length} has ${keys[wrong]!.length} characters`) +
    (keys[wrong]?.length === 2 * KEY_BYTES ? ", not all hexadecimal" : "") +
    ". Make one with: openssl rand -hex 32"
  );
}

/** The keys of a list that has no problem, the newest first. */
export const parseKeys = (text: string): Buffer[] => splitKeys(text).map((key) => Buffer.from(key, "hex"));

const splitKeys = (text: string): string[] => text.split(/[\s,]+/).filter((key) => key !== "");

/** A message as it is shown: its fragment's header, and the payload, opened if that is possible. */
export interface ShownMessage {
  /** The fragment without payload and mark. */
  readonly header: string;
  readonly payload: string;
  readonly isEncrypted: boolean;
  /** Why the payload is shown as it is stored. */
  readonly payloadError: string | null;
}

/** A header as listings have it, without its mark. */
export function readHeader(header: string): { readonly header: string; readonly isEncrypted: boolean } {
  return MARK.test(header.slice(-MARK_LENGTH))
    ? { header: header.slice(0, -MARK_LENGTH), isEncrypted: true }
    : { header, isEncrypted: false };
}

interface Key {
  readonly id: string;
  readonly secret: KeyObject;
}

/** The keys of a broker: the first one seals, all open. */
export class Keyring {
  readonly #keys: readonly Key[];
  readonly #randomBytes: (count: number) => Buffer;

  constructor(keys: readonly Buffer[], randomBytes: (count: number) => Buffer) {
    this.#keys = keys.map((bytes) => ({ id: keyId(bytes), secret: createSecretKey(bytes) }));
    this.#randomBytes = randomBytes;
  }

  get isEmpty(): boolean {
    return this.#keys.length === 0;
  }

  /** What the keys are called in marks, messages and logs. */
  get ids(): string[] {
    return this.#keys.map((key) => key.id);
  }

  /** Throws where there is no key; `queue` is for the message. */
  seal(fragment: string, queue: string): string {
    const key = this.#keys[0];
    if (!key) {
      throw new BrokerError(
        "ENCRYPTION_KEY_MISSING",
        `Queue ${queue} is encrypted and this broker has no key: nothing was stored. ` +
          "Set QUEEN_ENCRYPTION_KEY on every broker.",
      );
    }
    const cut = fragment.indexOf(DATA);
    const iv = this.#randomBytes(IV_BYTES);
    const cipher = createCipheriv(ALGORITHM, key.secret, iv, TAG);
    const encrypted = Buffer.concat([
      cipher.update(fragment.slice(cut + DATA.length), "latin1"),
      cipher.final(),
    ]).toString("base64");
    const tag = cipher.getAuthTag().toString("base64");
    return (
      `${fragment.slice(0, cut)},"isEncrypted":true,"keyId":"${key.id}"${DATA}` +
      `{"encrypted":"${encrypted}","iv":"${iv.toString("base64")}","authTag":"${tag}"}`
    );
  }

  /** The fragment as it was before it was sealed; any other as it is. Throws a BrokerError if no key opens it. */
  open(fragment: string): string {
    if (!fragment.endsWith(SEALED_END)) return fragment;
    const cut = fragment.indexOf(DATA);
    const mark = MARK.exec(fragment.slice(cut - MARK_LENGTH, cut));
    if (!mark) return fragment;
    return (
      fragment.slice(0, cut - MARK_LENGTH) +
      DATA +
      this.#openPayload(fragment.slice(cut + DATA.length), mark[1]!)
    );
  }

  /** For everything that shows messages; never throws. */
  show(fragment: string): ShownMessage {
    let payloadError: string | null = null;
    let shown = fragment;
    try {
      shown = this.open(fragment);
    } catch (error) {
      payloadError = (error as Error).message;
    }
    const cut = fragment.indexOf(DATA);
    const { header, isEncrypted } = readHeader(fragment.slice(0, cut));
    const payloadAt = shown.indexOf(DATA) + DATA.length;
    return { header, payload: shown.slice(payloadAt), isEncrypted, payloadError };
  }

  #openPayload(sealed: string, id: string): string {
    const keys = this.#keys.filter((key) => key.id === id);
    if (keys.length === 0) {
      throw new BrokerError(
        "ENCRYPTION_KEY_MISSING",
        `It is encrypted with key ${id}, which this broker does not have. Add that key to QUEEN_ENCRYPTION_KEY.`,
      );
    }
    const parts = SEALED.exec(sealed);
    for (const { secret } of parts ? keys : []) {
      const opened = decrypt(secret, parts!);
      if (opened !== undefined) return opened;
    }
    throw new BrokerError(
      "MESSAGE_DAMAGED",
      `It is encrypted with key ${id}, and its bytes were changed after it was stored.`,
    );
  }
}

function decrypt(secret: KeyObject, [, encrypted, iv, tag]: RegExpExecArray): string | undefined {
  try {
    const decipher = createDecipheriv(ALGORITHM, secret, Buffer.from(iv!, "base64"), TAG);
    decipher.setAuthTag(Buffer.from(tag!, "base64"));
    return Buffer.concat([decipher.update(encrypted!, "base64"), decipher.final()]).toString("latin1");
  } catch {
    return undefined; // the tag does not fit
  }
}

/** The first eight hexadecimal digits of the key's SHA-256. */
const keyId = (key: Buffer): string => createHash("sha256").update(key).digest("hex").slice(0, 8);
