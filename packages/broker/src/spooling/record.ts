/**
 * A spool record is one message on disk.
 *
 *   0  magic, FF 51 53 FE    4  crc32 of all that follows    8  length of the body    12  sequence    20  body
 *
 * The body is the length of its head, the head (JSON: queue, partition, when it was spooled, doubt) and the content,
 * which is the message's fragment, sealed. The byte FF occurs in no UTF-8 text: no payload looks like a record.
 */
import { crc32 } from "node:zlib";
import type { Doubt } from "../lanes/lane.ts";

/** A message on its way to the spool. */
export interface NewRecord {
  readonly queue: string;
  readonly partition: string;
  /** Where an append with an unknown outcome may have stored it. */
  readonly doubt: Doubt | undefined;
  readonly content: Buffer;
}

export interface SpoolRecord extends NewRecord {
  /** Grows with every record of a spool. */
  readonly sequence: number;
  /** By the broker's clock, milliseconds since 1970. */
  readonly spooledAtMs: number;
}

/** Where a record, or damaged bytes, stand in a file: [start, end). */
export interface Range {
  readonly start: number;
  readonly end: number;
}

export interface Scanned {
  readonly records: readonly (Range & { readonly record: SpoolRecord })[];
  readonly damage: readonly Range[];
}

const MAGIC = Buffer.from([0xff, 0x51, 0x53, 0xfe]);
const CRC_AT = 4;
const LENGTH_AT = 8;
const SEQUENCE_AT = 12;
export const RECORD_HEADER_BYTES = 20;

export function encodeRecord(record: SpoolRecord): Buffer {
  const { queue, partition, spooledAtMs, doubt, content, sequence } = record;
  const head = Buffer.from(
    JSON.stringify([queue, partition, spooledAtMs, ...(doubt ? [doubt.partition, doubt.from] : [])]),
  );
  const bytes = Buffer.allocUnsafe(RECORD_HEADER_BYTES + 4 + head.length + content.length);
  MAGIC.copy(bytes);
  bytes.writeUInt32BE(4 + head.length + content.length, LENGTH_AT);
  bytes.writeBigUInt64BE(BigInt(sequence), SEQUENCE_AT);
  bytes.writeUInt32BE(head.length, RECORD_HEADER_BYTES);
  head.copy(bytes, RECORD_HEADER_BYTES + 4);
  content.copy(bytes, RECORD_HEADER_BYTES + 4 + head.length);
  bytes.writeUInt32BE(crc32(bytes.subarray(LENGTH_AT)), CRC_AT);
  return bytes;
}

/** All good records of some bytes, and the bytes between them that are none. */
export function scanRecords(bytes: Buffer): Scanned {
  const records: (Range & { record: SpoolRecord })[] = [];
  const damage: Range[] = [];
  let at = 0;
  while (at < bytes.length) {
    const found = readRecord(bytes, at);
    if (found) {
      records.push(found);
      at = found.end;
      continue;
    }
    const start = at;
    do {
      const next = bytes.indexOf(MAGIC, at + 1);
      at = next < 0 ? bytes.length : next;
    } while (at < bytes.length && !readRecord(bytes, at));
    damage.push({ start, end: at });
  }
  return { records, damage };
}

function readRecord(bytes: Buffer, start: number): (Range & { record: SpoolRecord }) | undefined {
  const bodyAt = start + RECORD_HEADER_BYTES;
  if (bodyAt > bytes.length || bytes.compare(MAGIC, 0, MAGIC.length, start, start + MAGIC.length) !== 0)
    return undefined;
  const end = bodyAt + bytes.readUInt32BE(start + LENGTH_AT);
  if (end > bytes.length) return undefined;
  if (crc32(bytes.subarray(start + LENGTH_AT, end)) !== bytes.readUInt32BE(start + CRC_AT)) return undefined;
  const record = readBody(bytes.subarray(bodyAt, end), Number(bytes.readBigUInt64BE(start + SEQUENCE_AT)));
  return record && { start, end, record };
}

/** Undefined: whole, and yet nothing that was written here. */
function readBody(body: Buffer, sequence: number): SpoolRecord | undefined {
  if (body.length < 4) return undefined;
  const headEnd = 4 + body.readUInt32BE(0);
  if (headEnd > body.length) return undefined;
  let head: unknown;
  try {
    head = JSON.parse(body.toString("utf8", 4, headEnd));
  } catch {
    return undefined;
  }
  if (!Array.isArray(head)) return undefined;
  const [queue, partition, spooledAtMs, doubtIn, doubtFrom] = head as unknown[];
  if (typeof queue !== "string" || typeof partition !== "string" || typeof spooledAtMs !== "number")
    return undefined;
  const doubt =
    typeof doubtIn === "number" && typeof doubtFrom === "number"
      ? { partition: doubtIn, from: doubtFrom }
      : undefined;
  return { sequence, queue, partition, spooledAtMs, doubt, content: body.subarray(headEnd) };
}

/** A lane's name as a key of a map. */
export const laneKey = (queue: string, partition: string): string => `${queue}\0${partition}`;
