/** The handlers of messages: list, one message, delete, retry, move to the dead letters. */
import {
  BrokerError,
  messageId,
  parseMessageId,
  parsePartitionId,
  partitionId,
  QUEUE_MODE_GROUP,
} from "@queen/protocol";
import type {
  ListedMessageRow,
  MessageFilter,
  MessageList,
  MessagePage,
  MessageRow,
  MessageStatus,
  Messages,
  Place,
} from "../control/messages.ts";
import { type Keyring, readHeader } from "../operations/encryption.ts";
import { encodeString } from "../operations/json-scanner.ts";
import { checkName } from "../operations/names.ts";
import { transactionIdJson } from "../operations/segment.ts";
import { isoMicroseconds, isoMilliseconds } from "../operations/timestamp.ts";
import { json } from "./answers.ts";
import type { Answer, Request } from "./route.ts";
import { checkTime, type ReadTimestamp } from "./times.ts";

// Across partitions, skipping walks what it skips; a page token does not.
const OFFSET_ACROSS_PARTITIONS_MAX = 10_000;
const RANGE_MS_DEFAULT = 3_600_000;
const ERROR_LENGTH_MAX = 8_000;
const MOVED_BY_OPERATOR = "Moved to the dead letters by an operator";

export interface PageQuery {
  readonly partition: string | undefined;
  readonly status: MessageStatus | undefined;
  readonly limit: number;
  readonly offset: number;
  readonly page: string | undefined;
}

export interface ListQuery extends PageQuery {
  readonly queue: string | undefined;
  readonly ns: string | undefined;
  readonly task: string | undefined;
  readonly from: string | undefined;
  readonly to: string | undefined;
}

export interface ActQuery {
  readonly id: string | undefined;
  readonly consumerGroup: string | undefined;
}

export interface ActBody {
  readonly consumerGroup?: string | null | undefined;
  readonly error?: string | null | undefined;
}

const invalid = (message: string): BrokerError => new BrokerError("VALIDATION_FAILED", message);

export class MessageRoutes {
  readonly #messages: Messages;
  readonly #readTimestamp: ReadTimestamp;
  readonly #keyring: Keyring;

  constructor(messages: Messages, readTimestamp: ReadTimestamp, keyring: Keyring) {
    this.#messages = messages;
    this.#keyring = keyring;
    this.#readTimestamp = readTimestamp;
  }

  async list(query: ListQuery): Promise<Answer> {
    const time = async (name: "from" | "to"): Promise<string | undefined> =>
      query[name] ? checkTime(query[name], name, this.#readTimestamp) : undefined;
    const filter: MessageFilter = {
      queue: query.queue,
      partition: query.partition,
      namespace: query.ns,
      task: query.task,
      status: query.status,
      from: (await time("from")) ?? new Date(Date.now() - RANGE_MS_DEFAULT).toISOString(),
      to: await time("to"),
    };
    if (filter.partition !== undefined && filter.queue === undefined) {
      throw invalid("partition needs queue: partitions of different queues may have the same name.");
    }
    const { limit, offset } = checkPage(query);
    const list = await this.#messages.list(filter, { limit, offset, after: pageEnd(query.page) });
    const readers = list?.readers ?? { hasQueueMode: false, namedGroups: 0 };
    return {
      status: 200,
      body:
        `{"messages":[${(list?.messages ?? []).map(showListed).join(",")}],` +
        `"mode":${JSON.stringify({
          hasQueueMode: readers.hasQueueMode,
          busGroupsCount: readers.namedGroups,
          type: modeType(readers.hasQueueMode, readers.namedGroups),
        })},` +
        `"nextPage":${nextPage(list) ?? "null"},"pagination":{"limit":${limit},"offset":${offset}}}`,
    };
  }

  /** A queue's messages, of any age. */
  async ofQueue(request: Request, query: PageQuery): Promise<Answer> {
    const { partition, status } = query;
    const { limit, offset } = checkPage(query);
    const list = await this.#messages.list(
      {
        queue: checkName(request.params.queue, "queue", { allowEmpty: true }),
        partition,
        namespace: undefined,
        task: undefined,
        status,
        from: undefined,
        to: undefined,
      },
      { limit, offset, after: pageEnd(query.page) },
    );
    if (!list) {
      throw new BrokerError(
        "NOT_FOUND",
        partition === undefined ? "Queue not found" : "Queue or partition not found",
      );
    }
    const next = nextPage(list);
    return {
      status: 200,
      body: `[${list.messages.map(showBrief).join(",")}]`,
      ...(next === undefined ? {} : { headers: { "Queen-Next-Page": JSON.parse(next) as string } }),
    };
  }

  async read(request: Request, id: string | undefined): Promise<Answer> {
    const place = await this.#place(request, id);
    const message = place && (await this.#messages.read(place));
    if (!message) throw new BrokerError("NOT_FOUND", "Message not found");
    return { status: 200, body: showMessage(place, message, this.#keyring) };
  }

  /** Deleting what is not there is no error: the answer says so. */
  async delete(request: Request, id: string | undefined): Promise<Answer> {
    const place = await this.#place(request, id);
    const deleted = place !== undefined && (await this.#messages.delete(place));
    return json(200, {
      success: deleted,
      partitionId: request.params.partitionId,
      transactionId: request.params.transactionId,
      message: deleted ? "Message deleted successfully" : "Message not found",
    });
  }

  async retry(request: Request, query: ActQuery, body: ActBody): Promise<Answer> {
    const { partitionId: partition, transactionId } = request.params;
    const { consumerGroup } = act(query, body);
    const place = await this.#existing(request, query.id);
    const { action, at } = await this.#messages.retry(place, consumerGroup);
    return json(200, {
      success: true,
      partitionId: partition,
      transactionId,
      consumerGroup,
      action,
      messageId: messageId(at.partition, at.offset),
    });
  }

  async bury(request: Request, query: ActQuery, body: ActBody): Promise<Answer> {
    const { partitionId: partition, transactionId } = request.params;
    const { consumerGroup, error } = act(query, body);
    const place = await this.#existing(request, query.id);
    await this.#messages.bury(place, consumerGroup, error);
    return json(200, {
      success: true,
      partitionId: partition,
      transactionId,
      consumerGroup,
      messageId: messageId(place.partition, place.offset),
    });
  }

  async #existing(request: Request, id: string | undefined): Promise<Place> {
    const place = await this.#place(request, id);
    if (place) return place;
    throw new BrokerError("NOT_FOUND", "Message not found");
  }

  /** By the query's `id`, or by a search for the transactionId. */
  async #place(request: Request, id: string | undefined): Promise<Place | undefined> {
    const text = request.params.partitionId!;
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) {
      throw invalid(`partitionId must be a UUID, got "${text.slice(0, 40)}".`);
    }
    const partition = parsePartitionId(text);
    const transactionId = checkName(request.params.transactionId, "transactionId");
    if (partition === undefined) return undefined;
    if (id === undefined) return this.#messages.find(partition, transactionId);
    const place = parseMessageId(id);
    if (!place || place.partition !== partition)
      throw invalid("id must be the id of a message of this partition.");
    const message = await this.#messages.read(place);
    return message && transactionIdJson(message.fragment) === encodeString(transactionId) ? place : undefined;
  }
}

/** The group and the reason that a body or a query names. */
function act(query: ActQuery, body: ActBody): { consumerGroup: string; error: string } {
  const group = body.consumerGroup ?? query.consumerGroup;
  return {
    consumerGroup: group ? checkName(group, "consumerGroup") : QUEUE_MODE_GROUP,
    // PostgreSQL holds no NUL in a text, and UTF-8 no half of a surrogate pair.
    error: (body.error || MOVED_BY_OPERATOR)
      .slice(0, ERROR_LENGTH_MAX)
      .replaceAll(/\0|\p{Surrogate}/gu, "\uFFFD"),
  };
}

function checkPage(query: PageQuery): { limit: number; offset: number } {
  const { limit, offset, partition } = query;
  if (partition === undefined && offset > OFFSET_ACROSS_PARTITIONS_MAX) {
    throw invalid(
      `offset may be at most ${OFFSET_ACROSS_PARTITIONS_MAX} across partitions; ` +
        "name a partition, or go on with page, the nextPage of an answer.",
    );
  }
  return { limit, offset };
}

function pageEnd(text: string | undefined): MessagePage | undefined {
  if (text === undefined) return undefined;
  const match = /^(\d{1,16})\.(\d{1,15})\.(\d{1,15})$/.exec(text);
  if (match) return { createdAtUs: Number(match[1]), partition: Number(match[2]), offset: Number(match[3]) };
  throw invalid("page must be the nextPage of an answer.");
}

function nextPage(list: MessageList | undefined): string | undefined {
  const next = list?.next;
  return next && `"${next.createdAtUs}.${next.partition}.${next.offset}"`;
}

const modeType = (hasQueueMode: boolean, namedGroups: number): string =>
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

function listedStatus(row: ListedMessageRow): MessageStatus {
  return statusOf({ ...row, isLeased: row.queueLeaseExpiresAtUs !== null });
}

/** As bytes, one per character, like everything that is cut out of segments. */
function showListed(row: ListedMessageRow): string {
  const queueStatus =
    row.queueFinished === null
      ? null
      : row.queueFinished
        ? "completed"
        : row.queueLeaseExpiresAtUs === null
          ? "pending"
          : "processing";
  const { header, isEncrypted } = readHeader(row.header!);
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

function showBrief(row: ListedMessageRow): string {
  return (
    `{"id":"${messageId(row.partitionId, row.offset)}",` +
    `"transactionId":${transactionIdJson(row.header!)},` +
    `"partitionId":"${partitionId(row.partitionId)}","queuePath":${encodeString(`${row.queue}/${row.partition}`)},` +
    `"queue":${encodeString(row.queue)},"partition":${encodeString(row.partition)},` +
    `"status":"${listedStatus(row)}","createdAt":"${isoMicroseconds(row.createdAtUs)}"}`
  );
}

function showMessage({ partition, offset }: Place, message: MessageRow, keyring: Keyring): string {
  const { queue, groups, letters } = message;
  const queueMode = groups.find((group) => group.name === QUEUE_MODE_GROUP);
  const named = groups.filter((group) => group.name !== QUEUE_MODE_GROUP);
  const consumedBy = named.filter((group) => group.consumed).length;
  const shown = statusOf({
    isDead: letters.length > 0,
    queueFinished: queueMode ? queueMode.consumed : null,
    isLeased: queueMode?.leaseExpiresAtUs != null,
    consumedBy,
    groups: named.length,
  });
  const { header, payload, isEncrypted, payloadError } = keyring.show(message.fragment);
  const name = queue.name as string;
  const config = {
    leaseTime: queue.lease_time,
    retryLimit: queue.retry_limit,
    retryDelay: queue.retry_delay,
    ttl: queue.ttl,
    priority: queue.priority,
  };
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
