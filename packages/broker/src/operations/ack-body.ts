/**
 * The bodies of acks: one, or a batch with one group for all. In a batch, messages that stand side by side in a lease may be
 * completed as a range: by the ids of the first and the last, which say where they are.
 */
import {
  ACK_ITEMS_MAX,
  BrokerError,
  POP_BATCH_MAX,
  parseMessageId,
  partitionId,
  QUEUE_MODE_GROUP,
  rememberingLast,
} from "@queen/protocol";
import { encodeString } from "./json-scanner.ts";
import { checkName } from "./names.ts";

export type AckStatus = "completed" | "failed" | "dlq" | "retry";

export interface AckItem {
  /** How many it is about. */
  readonly messages: 1;
  readonly transactionId: string;
  /** As it stands in a fragment. */
  readonly transactionIdJson: string;
  readonly partitionId: string;
  /** Undefined: a status that does not exist; nothing is changed, and the answer says so. */
  readonly status: AckStatus | undefined;
  readonly statusText: string;
  readonly leaseId: string | undefined;
  readonly error: string | undefined;
  readonly group: string;
}

export interface AckRange {
  readonly messages: number;
  readonly partition: number;
  readonly partitionId: string;
  /** The offsets, the last one not included. */
  readonly from: number;
  readonly to: number;
  readonly status: "completed";
  readonly leaseId: string;
  readonly group: string;
}

export type AckOrRange = AckItem | AckRange;

export const isRange = (ack: AckOrRange): ack is AckRange => "from" in ack;

const STATUSES: Readonly<Record<string, AckStatus>> = {
  completed: "completed",
  success: "completed",
  failed: "failed",
  dlq: "dlq",
  retry: "retry",
};

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const isUuid = rememberingLast((text) => UUID.test(text));
// Errors are kept with the message's history; a stack trace fits, a log file does not.
const ERROR_LENGTH_MAX = 8_000;

type Place = NonNullable<ReturnType<typeof parseMessageId>>;

const invalid = (message: string): BrokerError => new BrokerError("VALIDATION_FAILED", message);

function fail(message: string): never {
  throw invalid(message);
}

function optionalString(value: unknown, field: string): string | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value !== "string") throw invalid(`${field} must be a string`);
  return value;
}

function groupName(value: unknown, field: string): string {
  return optionalString(value, field) === undefined ? QUEUE_MODE_GROUP : checkName(value, field);
}

/** One ack out of a batch or a transaction; `path` names it in messages. `group` wins over the ack's own. */
export function parseAckItem(value: unknown, path: string, group?: string): AckItem {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw invalid(`${path}: Ack must be an object`);
  const item = value as Record<string, unknown>;
  const { transactionId, partitionId } = item;
  if (typeof transactionId !== "string" || transactionId === "") {
    throw invalid(`${path}.transactionId: Each acknowledgment must have a valid transactionId string`);
  }
  if (typeof partitionId !== "string" || !isUuid(partitionId)) {
    throw invalid(
      `${path}.partitionId: Each acknowledgment must have a valid partitionId string to ensure message uniqueness`,
    );
  }
  const ownGroup = groupName(item.consumerGroup, `${path}.consumerGroup`);
  const statusText = optionalString(item.status, `${path}.status: Status`) ?? "completed";
  return {
    messages: 1,
    transactionId,
    transactionIdJson: encodeString(transactionId),
    partitionId,
    status: Object.hasOwn(STATUSES, statusText) ? STATUSES[statusText] : undefined,
    statusText,
    leaseId: optionalString(item.leaseId, `${path}.leaseId: LeaseId`),
    // PostgreSQL holds no NUL in a text, and UTF-8 no half of a surrogate pair.
    error: optionalString(item.error, `${path}.error: Error`)
      ?.slice(0, ERROR_LENGTH_MAX)
      .replaceAll(/\0|\p{Surrogate}/gu, "\uFFFD"),
    group: group ?? ownGroup,
  };
}

function parseAckOrRange(value: unknown, path: string, group: string | undefined): AckOrRange {
  if (typeof value === "object" && value !== null && "firstId" in value)
    return parseAckRange(value, path, group);
  return parseAckItem(value, path, group);
}

function parseAckRange(item: Record<string, unknown>, path: string, group: string | undefined): AckRange {
  const [first, last] = ["firstId", "lastId"].map((field) => {
    const place = typeof item[field] === "string" ? parseMessageId(item[field]) : undefined;
    return place ?? fail(`${path}.${field} must be the id of a message, as a pop gave it`);
  }) as [Place, Place];
  if (first.partition !== last.partition || first.offset > last.offset)
    throw invalid(`${path}: lastId must be of the same partition as firstId, and not before it`);
  const messages = last.offset - first.offset + 1;
  if (messages > POP_BATCH_MAX)
    throw invalid(`${path}: a range is of one delivery, which has at most ${POP_BATCH_MAX} messages`);
  const leaseId = optionalString(item.leaseId, `${path}.leaseId: LeaseId`);
  if (leaseId === undefined) throw invalid(`${path}.leaseId: a range is acked with the lease of its pop`);
  const status = optionalString(item.status, `${path}.status: Status`) ?? "completed";
  if (!Object.hasOwn(STATUSES, status) || STATUSES[status] !== "completed")
    throw invalid(`${path}.status: a range can be completed, nothing else; ack other messages one by one`);
  return {
    messages,
    partition: first.partition,
    partitionId: partitionId(first.partition),
    from: first.offset,
    to: last.offset + 1,
    status: "completed",
    leaseId,
    group: group ?? groupName(item.consumerGroup, `${path}.consumerGroup`),
  };
}

/** `POST /api/v1/ack`. */
export function parseAckBody(body: unknown): AckItem {
  const item = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  if (typeof item.transactionId !== "string" || item.transactionId === "") {
    throw invalid("transactionId is required");
  }
  if (typeof item.partitionId !== "string" || item.partitionId === "") {
    throw invalid("partitionId is required to ensure message uniqueness");
  }
  return parseAckItem(item, "ack");
}

/** `POST /api/v1/ack/batch`. The group of the batch wins over an item's own. */
export function parseAckBatchBody(body: unknown): AckOrRange[] {
  const batch = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  if (!Array.isArray(batch.acknowledgments)) throw invalid("acknowledgments array is required");
  if (batch.acknowledgments.length > ACK_ITEMS_MAX) {
    throw invalid(`acknowledgments must be at most ${ACK_ITEMS_MAX}`);
  }
  const group = optionalString(batch.consumerGroup, "consumerGroup: ConsumerGroup");
  const checked = group === undefined ? undefined : checkName(group, "consumerGroup");
  return batch.acknowledgments.map((item, index) =>
    parseAckOrRange(item, `acknowledgments[${index}]`, checked),
  );
}
