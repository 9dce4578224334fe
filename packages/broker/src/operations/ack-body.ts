/** The bodies of acks: one, or a batch with one group for all. */
import { ACK_ITEMS_MAX, BrokerError, QUEUE_MODE_GROUP, rememberingLast } from "@queen/protocol";
import { encodeString } from "./json-scanner.ts";
import { checkName } from "./names.ts";

export type AckStatus = "completed" | "failed" | "dlq" | "retry";

export interface AckItem {
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

const invalid = (message: string): BrokerError => new BrokerError("VALIDATION_FAILED", message);

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
export function parseAckBatchBody(body: unknown): AckItem[] {
  const batch = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  if (!Array.isArray(batch.acknowledgments)) throw invalid("acknowledgments array is required");
  if (batch.acknowledgments.length > ACK_ITEMS_MAX) {
    throw invalid(`acknowledgments must be at most ${ACK_ITEMS_MAX}`);
  }
  const group = optionalString(batch.consumerGroup, "consumerGroup: ConsumerGroup");
  const checked = group === undefined ? undefined : checkName(group, "consumerGroup");
  return batch.acknowledgments.map((item, index) => parseAckItem(item, `acknowledgments[${index}]`, checked));
}
