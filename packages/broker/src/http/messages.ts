/** The handlers of messages: list, one message, delete, retry, move to the dead letters. */
import { BrokerError, messageId, parseMessageId, parsePartitionId, QUEUE_MODE_GROUP } from "@queen/protocol";
import type { MessageSearch, SearchPlace } from "../control/message-search.ts";
import type {
  MessageFilter,
  MessageList,
  MessagePage,
  MessageStatus,
  Messages,
  Place,
} from "../control/messages.ts";
import type { Keyring } from "../operations/encryption.ts";
import { encodeString } from "../operations/json-scanner.ts";
import { checkName } from "../operations/names.ts";
import { transactionIdJson } from "../operations/segment.ts";
import { json } from "./answers.ts";
import type { Answer, Request } from "./route.ts";
import { modeType, showBrief, showFound, showListed, showMessage } from "./shown-messages.ts";
import { checkTime, type ReadTimestamp } from "./times.ts";

// Across partitions, skipping walks what it skips; a page token does not.
const OFFSET_ACROSS_PARTITIONS_MAX = 10_000;
const RANGE_MS_DEFAULT = 3_600_000;
const FOUND_AT_ONCE_MAX = 50;
const NO_READERS = { hasQueueMode: false, namedGroups: 0 };
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
  readonly transactionId: string | undefined;
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
  readonly #search: MessageSearch;
  readonly #readTimestamp: ReadTimestamp;
  readonly #keyring: Keyring;

  constructor(messages: Messages, search: MessageSearch, readTimestamp: ReadTimestamp, keyring: Keyring) {
    this.#messages = messages;
    this.#search = search;
    this.#keyring = keyring;
    this.#readTimestamp = readTimestamp;
  }

  async list(query: ListQuery): Promise<Answer> {
    if (query.partition !== undefined && query.queue === undefined) {
      throw invalid("partition needs queue: partitions of different queues may have the same name.");
    }
    if (query.transactionId !== undefined) return this.#find(query.transactionId, query);
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
    const { limit, offset } = checkPage(query);
    const list = await this.#messages.list(filter, { limit, offset, after: pageEnd(query.page) });
    const readers = list?.readers ?? NO_READERS;
    return answerOf({
      messages: (list?.messages ?? []).map(showListed),
      readers,
      next: nextPage(list) ?? "null",
      limit,
      offset,
      search: null,
    });
  }

  /** A step of the search for a transactionId. */
  async #find(transactionId: string, query: ListQuery): Promise<Answer> {
    const others = ["ns", "task", "status", "from", "to"] as const;
    const more = others.find((name) => query[name] !== undefined);
    if (more)
      throw invalid(`transactionId is looked for in a queue and a partition only: leave out ${more}.`);
    const { queue, partition } = query;
    const limit = Math.min(query.limit, FOUND_AT_ONCE_MAX);
    const target = { transactionId, queue, partition };
    const { found, next, searched, total } = await this.#search.step(target, searchPlace(query.page), limit);
    return answerOf({
      messages: found.map(({ place, message }) => showFound(place, message, this.#keyring)),
      readers: NO_READERS,
      next: next ? `"${searchPage(next)}"` : "null",
      limit,
      offset: 0,
      search: { searched, total },
    });
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

/** A place in a search, as a page token. */
const searchPage = ({ band, atQueue, atPartition, below, searched, total }: SearchPlace): string =>
  `s${[band, atQueue, atPartition, below ?? "", searched, total].join(".")}`;

function searchPlace(text: string | undefined): SearchPlace | undefined {
  if (text === undefined) return undefined;
  const match = /^s([123])\.(\d{1,15})\.(\d{1,15})\.(\d{0,15})\.(\d{1,15})\.(\d{1,15})$/.exec(text);
  if (!match) throw invalid("page must be the nextPage of an answer about this transactionId.");
  const [band, atQueue, atPartition, below, searched, total] = match.slice(1).map(Number);
  return {
    band: band!,
    atQueue: atQueue!,
    atPartition: atPartition!,
    below: match[4] === "" ? null : below!,
    searched: searched!,
    total: total!,
  };
}

function answerOf(list: {
  readonly messages: readonly string[];
  readonly readers: { readonly hasQueueMode: boolean; readonly namedGroups: number };
  /** As JSON. */
  readonly next: string;
  readonly limit: number;
  readonly offset: number;
  readonly search: { readonly searched: number; readonly total: number } | null;
}): Answer {
  const { hasQueueMode, namedGroups } = list.readers;
  const mode = { hasQueueMode, busGroupsCount: namedGroups, type: modeType(hasQueueMode, namedGroups) };
  return {
    status: 200,
    body:
      `{"messages":[${list.messages.join(",")}],"mode":${JSON.stringify(mode)},"nextPage":${list.next},` +
      `"search":${JSON.stringify(list.search)},"pagination":{"limit":${list.limit},"offset":${list.offset}}}`,
  };
}
