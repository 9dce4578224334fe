/** Messages as answers show them: listed, in brief, and with everything. As bytes, like all that is cut out of segments. */
import { messageId, partitionId, QUEUE_MODE_GROUP } from "@queen/protocol";
import type { ListedMessageRow, MessageRow, MessageStatus, Place } from "../control/messages.ts";
import { type Keyring, readHeader } from "../operations/encryption.ts";
import { encodeString } from "../operations/json-scanner.ts";
import { showQueueOptions } from "../operations/queue-options.ts";
import { transactionIdJson } from "../operations/segment.ts";
import { isoMicroseconds, isoMilliseconds } from "../operations/timestamp.ts";

export const modeType = (hasQueueMode: boolean, namedGroups: number): string =>
  hasQueueMode ? (namedGroups > 0 ? "hybrid" : "queue") : namedGroups > 0 ? "bus" : "none";

/** By queue mode where the queue is read so, otherwise by all named groups. */
function statusOf(message: {
  isDead: boolean;
  queueFinished: boolean | null;
  isLeased: boolean;
  consumedBy: number;
  groups: number;
}): MessageStatus {
  if (message.isDead) return "dead_letter";
  const isFinished = message.queueFinished ?? (message.groups > 0 && message.consumedBy === message.groups);
  if (isFinished) return "completed";
  return message.isLeased ? "processing" : "pending";
}

const timeOrNull = (us: number | null): string => (us === null ? "null" : `"${isoMilliseconds(us)}"`);

function listedStatus(row: Omit<ListedMessageRow, "header">): MessageStatus {
  return statusOf({ ...row, isLeased: row.queueLeaseExpiresAtUs !== null });
}

export function showListed(row: ListedMessageRow): string {
  const { header, isEncrypted } = readHeader(row.header!);
  return showAs(row, header, isEncrypted);
}

function showAs(row: Omit<ListedMessageRow, "header">, header: string, isEncrypted: boolean): string {
  const queueStatus =
    row.queueFinished === null
      ? null
      : row.queueFinished
        ? "completed"
        : row.queueLeaseExpiresAtUs === null
          ? "pending"
          : "processing";
  return (
    `{"id":"${messageId(row.partitionId, row.offset)}",${header},"isEncrypted":${isEncrypted},` +
    `"partitionId":"${partitionId(row.partitionId)}","queuePath":${encodeString(`${row.queue}/${row.partition}`)},` +
    `"queue":${encodeString(row.queue)},"partition":${encodeString(row.partition)},` +
    `"namespace":${encodeString(row.namespace)},"task":${encodeString(row.task)},` +
    `"status":"${listedStatus(row)}","queueStatus":${JSON.stringify(queueStatus)},` +
    `"busStatus":{"consumedBy":${row.consumedBy},"totalGroups":${row.groups}},"queuePriority":${row.priority},` +
    `"createdAt":"${isoMicroseconds(row.createdAtUs)}","leaseExpiresAt":${timeOrNull(row.queueLeaseExpiresAtUs)}}`
  );
}

export function showBrief(row: ListedMessageRow): string {
  return (
    `{"id":"${messageId(row.partitionId, row.offset)}",` +
    `"transactionId":${transactionIdJson(row.header!)},` +
    `"partitionId":"${partitionId(row.partitionId)}","queuePath":${encodeString(`${row.queue}/${row.partition}`)},` +
    `"queue":${encodeString(row.queue)},"partition":${encodeString(row.partition)},` +
    `"status":"${listedStatus(row)}","createdAt":"${isoMicroseconds(row.createdAtUs)}"}`
  );
}

/** One that was found by itself, as in a list. */
export function showFound({ partition, offset }: Place, message: MessageRow, keyring: Keyring): string {
  const { queue } = message;
  const { queueMode, named, consumedBy } = readersOf(message);
  const { header, isEncrypted } = keyring.show(message.fragment);
  return showAs(
    {
      partitionId: partition,
      offset,
      createdAtUs: message.createdAtUs,
      queue: queue.name as string,
      namespace: queue.namespace as string,
      task: queue.task as string,
      priority: queue.priority as number,
      partition: message.partition,
      isDead: message.letters.length > 0,
      queueFinished: queueMode ? queueMode.consumed : null,
      queueLeaseExpiresAtUs: queueMode?.leaseExpiresAtUs ?? null,
      consumedBy,
      groups: named.length,
    },
    header,
    isEncrypted,
  );
}

function readersOf({ groups }: MessageRow) {
  const queueMode = groups.find((group) => group.name === QUEUE_MODE_GROUP);
  const named = groups.filter((group) => group.name !== QUEUE_MODE_GROUP);
  return { queueMode, named, consumedBy: named.filter((group) => group.consumed).length };
}

export function showMessage({ partition, offset }: Place, message: MessageRow, keyring: Keyring): string {
  const { queue, groups, letters } = message;
  const { queueMode, named, consumedBy } = readersOf(message);
  const shown = statusOf({
    isDead: letters.length > 0,
    queueFinished: queueMode ? queueMode.consumed : null,
    isLeased: queueMode?.leaseExpiresAtUs != null,
    consumedBy,
    groups: named.length,
  });
  const { header, payload, isEncrypted, payloadError } = keyring.show(message.fragment);
  const name = queue.name as string;
  const { leaseTime, retryLimit, retryDelay, ttl, priority } = showQueueOptions(queue);
  const config = { leaseTime, retryLimit, retryDelay, ttl, priority };
  const mode = {
    hasQueueMode: queueMode !== undefined,
    busGroupsCount: named.length,
    consumedByGroups: consumedBy,
    type: modeType(queueMode !== undefined, named.length),
  };
  const [letter] = letters;
  return (
    `{"id":"${messageId(partition, offset)}",${header},"partitionId":"${partitionId(partition)}",` +
    `"queuePath":${encodeString(`${name}/${message.partition}`)},"queue":${encodeString(name)},` +
    `"partition":${encodeString(message.partition)},"namespace":${encodeString(queue.namespace as string)},` +
    `"task":${encodeString(queue.task as string)},"status":"${shown}","payload":${payload},"isEncrypted":${isEncrypted},` +
    `"payloadError":${payloadError === null ? "null" : encodeString(payloadError)},` +
    `"createdAt":"${isoMicroseconds(message.createdAtUs)}",` +
    `"errorMessage":${letter ? encodeString(letter.error) : "null"},"retryCount":${letter ? letter.retries : "null"},` +
    `"leaseExpiresAt":${timeOrNull(queueMode?.leaseExpiresAtUs ?? null)},` +
    `"queueConfig":${JSON.stringify(config)},"mode":${JSON.stringify(mode)},"consumerGroups":[${groups
      .map(
        (group) =>
          `{"name":${encodeString(group.name)},"consumed":${group.consumed},` +
          `"leaseExpiresAt":${timeOrNull(group.leaseExpiresAtUs)}}`,
      )
      .join(",")}]}`
  );
}
