/**
 * Ids on the wire are UUIDs (version 8) made by arithmetic from the numbers inside, so that no column,
 * no index and no look-up is needed to find what an id names:
 *
 *   message    pppppppp-pppp-8001-8000-oooooooooooo     partition, offset
 *   partition  pppppppp-pppp-8002-8000-000000000000     partition
 *   queue      qqqqqqqq-qqqq-8003-8000-000000000000     queue
 *   letter     dddddddd-dddd-8004-8000-000000000000     dead letter
 *   trace      tttttttt-tttt-8005-8000-000000000000     trace
 *   lease      pppppppp-pppp-8ttt-8ttt-ttttttt00000     first partition, token (52 bits), then the
 *              distances to the further partitions in base 36: «<uuid>.1.a.3»
 *
 * Numbers have 48 bits. A lease over several partitions is one id that names them all.
 */
import { POP_PARTITIONS_MAX } from "./limits.ts";
import { rememberingLast } from "./remembering-last.ts";

const NUMBER_LIMIT = 2 ** 48;

const hex12 = (value: number): string => value.toString(16).padStart(12, "0");
const head = (value: number): string => {
  const hex = hex12(value);
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
};

/** The constant part of every message id of one partition; append the offset with `offsetSuffix`. */
export const messageIdPrefix = (partition: number): string => `${head(partition)}-8001-8000-`;

// The last three digits of any id, and the others of the one that was made last: neighbours share them.
const LAST_DIGITS = Array.from({ length: 4096 }, (_, value) => value.toString(16).padStart(3, "0"));
let highPart = 0;
let highDigits = "000000000";

export function offsetSuffix(offset: number): string {
  const high = Math.floor(offset / 4096);
  if (high !== highPart) {
    highPart = high;
    highDigits = high.toString(16).padStart(9, "0");
  }
  return highDigits + LAST_DIGITS[offset % 4096]!;
}

export const messageId = (partition: number, offset: number): string =>
  messageIdPrefix(partition) + hex12(offset);
export const partitionId = (partition: number): string => `${head(partition)}-8002-8000-000000000000`;
export const queueId = (queue: number): string => `${head(queue)}-8003-8000-000000000000`;

export const deadLetterId = (letter: number): string => `${head(letter)}-8004-8000-000000000000`;
export const traceRecordId = (trace: number): string => `${head(trace)}-8005-8000-000000000000`;

const LETTER_ID = /^([0-9a-f]{8})-([0-9a-f]{4})-8004-8000-0{12}$/i;

/** The dead letter that an id names; undefined for any other text. */
export function parseDeadLetterId(text: string): number | undefined {
  const match = LETTER_ID.exec(text);
  return match ? Number.parseInt(match[1]! + match[2]!, 16) : undefined;
}

const MESSAGE_ID = /^([0-9a-f]{8})-([0-9a-f]{4})-8001-8000-([0-9a-f]{12})$/i;

/** The partition and the offset that a message id names; undefined for any other text. */
export function parseMessageId(text: string): { partition: number; offset: number } | undefined {
  const match = MESSAGE_ID.exec(text);
  if (!match) return undefined;
  return {
    partition: Number.parseInt(match[1]! + match[2]!, 16),
    offset: Number.parseInt(match[3]!, 16),
  };
}

const NUMBER_ID = /^([0-9a-f]{8})-([0-9a-f]{4})-8002-8000-0{12}$/i;

/** The partition that a partition id names; undefined for any other text, well-formed UUIDs included. */
export const parsePartitionId = rememberingLast((text): number | undefined => {
  const match = NUMBER_ID.exec(text);
  return match ? Number.parseInt(match[1]! + match[2]!, 16) : undefined;
});

export interface Lease {
  readonly token: number;
  readonly partitions: readonly number[];
}

/** Tokens are random below this: exact as numbers, and never met twice on one cursor. */
export const LEASE_TOKEN_LIMIT = 2 ** 52;

export function leaseId(lease: Lease): string {
  const [first, ...more] = [...lease.partitions].sort((a, b) => a - b);
  const token = lease.token.toString(16).padStart(13, "0");
  let id = `${head(first!)}-8${token.slice(0, 3)}-8${token.slice(3, 6)}-${token.slice(6)}00000`;
  let last = first!;
  for (const partition of more) {
    id += `.${(partition - last).toString(36)}`;
    last = partition;
  }
  return id;
}

const LEASE_ID =
  /^([0-9a-f]{8})-([0-9a-f]{4})-8([0-9a-f]{3})-8([0-9a-f]{3})-([0-9a-f]{7})00000((?:\.[0-9a-z]{1,10})*)$/;

/** The token and the partitions that a lease id names; undefined for any other text. */
export const parseLeaseId = rememberingLast((text): Lease | undefined => {
  const match = LEASE_ID.exec(text);
  if (!match) return undefined;
  let partition = Number.parseInt(match[1]! + match[2]!, 16);
  const partitions = [partition];
  for (const distance of match[6]!.split(".").slice(1)) {
    partition += Number.parseInt(distance, 36);
    partitions.push(partition);
    if (partition >= NUMBER_LIMIT || partitions.length > POP_PARTITIONS_MAX) return undefined; // not one of ours
  }
  return { token: Number.parseInt(match[3]! + match[4]! + match[5]!, 16), partitions };
});
