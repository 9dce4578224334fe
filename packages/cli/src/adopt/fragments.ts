/**
 * Messages of the source as our log stores them: a fragment each, gathered into segments. A segment has one time, so
 * that messages that were stored at different times are in different segments: each keeps its time.
 */
import { Keyring } from "@queen/broker";
import { UsageError } from "../exit-codes.ts";
import type { SourceMessage } from "./source.ts";

export interface Fragments {
  /** One element per message: the number of its segment. */
  readonly segments: readonly number[];
  readonly atUs: readonly number[];
  readonly transactionIds: readonly string[];
  readonly bytes: readonly Buffer[];
  readonly lastId: string;
}

// As the broker's own appends.
const MESSAGES_PER_SEGMENT = 128;
const BYTES_PER_SEGMENT = 64 * 1024;

export function fragmentsOf(messages: readonly SourceMessage[], keys: readonly Buffer[]): Fragments {
  const bytes = messages.map((message) => Buffer.from(fragmentOf(message, keys), "utf8"));
  return {
    segments: segmentsOf(messages, bytes),
    atUs: messages.map(({ atUs }) => atUs),
    transactionIds: messages.map(({ transactionId }) => transactionId),
    bytes,
    lastId: messages.at(-1)!.id,
  };
}

function segmentsOf(messages: readonly SourceMessage[], bytes: readonly Buffer[]): number[] {
  let segment = 0;
  let inSegment = 0;
  let bytesInSegment = 0;
  return messages.map(({ atUs }, index) => {
    const isSame = index > 0 && messages[index - 1]!.atUs === atUs;
    if (!isSame || inSegment >= MESSAGES_PER_SEGMENT || bytesInSegment >= BYTES_PER_SEGMENT) {
      segment += 1;
      inSegment = bytesInSegment = 0;
    }
    inSegment += 1;
    bytesInSegment += bytes[index]!.length;
    return segment;
  });
}

export function fragmentOf(message: SourceMessage, keys: readonly Buffer[]): string {
  const { transactionId, traceId, producerSub, isEncrypted, payload } = message;
  const header =
    `"transactionId":${JSON.stringify(transactionId)},"traceId":${JSON.stringify(traceId)},` +
    `"producerSub":${JSON.stringify(producerSub)}`;
  return isEncrypted ? sealed(header, message, keys) : `${header},"data":${payload}`;
}

/** The same secret, marked with the key that opens it: both Queens seal alike. */
function sealed(header: string, message: SourceMessage, keys: readonly Buffer[]): string {
  const { encrypted, iv, authTag } = JSON.parse(message.payload) as Record<string, unknown>;
  const data = `{"encrypted":${JSON.stringify(encrypted)},"iv":${JSON.stringify(iv)},"authTag":${JSON.stringify(authTag)}}`;
  for (const key of keys) {
    const ring = new Keyring([key], (count) => Buffer.alloc(count));
    const fragment = `${header},"isEncrypted":true,"keyId":"${ring.ids[0]}","data":${data}`;
    try {
      ring.open(Buffer.from(fragment, "utf8").toString("latin1"));
      return fragment;
    } catch {
      // another key
    }
  }
  throw new UsageError(
    `Message ${message.transactionId} is encrypted, and ${keys.length === 0 ? "no key is given" : "none of the keys opens it"}: ` +
      "set QUEEN_ENCRYPTION_KEY to the keys of the source's broker",
  );
}
