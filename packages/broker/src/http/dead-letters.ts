/** The handlers of dead letters: list, requeue, purge. */
import {
  BrokerError,
  deadLetterId,
  messageId,
  parseDeadLetterId,
  parseMessageId,
  partitionId,
} from "@queen/protocol";
import type {
  Chosen,
  DeadLetterFilter,
  DeadLetterRow,
  DeadLetters,
  PageEnd,
} from "../control/dead-letters.ts";
import type { Keyring } from "../operations/encryption.ts";
import { encodeString } from "../operations/json-scanner.ts";
import { checkName } from "../operations/names.ts";
import { isoMilliseconds } from "../operations/timestamp.ts";
import { json } from "./answers.ts";
import type { Answer, Request } from "./route.ts";
import { checkTime, type ReadTimestamp } from "./times.ts";

const REQUEUED_AT_ONCE_MAX = 1_000;
const PURGED_AT_ONCE_MAX = 10_000;

/** Which letters are meant. */
type Fields = {
  readonly [K in "queue" | "consumerGroup" | "partition" | "error" | "from" | "to"]?: unknown;
};

const invalid = (message: string): BrokerError => new BrokerError("VALIDATION_FAILED", message);

export class DeadLetterRoutes {
  readonly #letters: DeadLetters;
  readonly #readTimestamp: ReadTimestamp;
  readonly #keyring: Keyring;

  constructor(letters: DeadLetters, readTimestamp: ReadTimestamp, keyring: Keyring) {
    this.#letters = letters;
    this.#keyring = keyring;
    this.#readTimestamp = readTimestamp;
  }

  async list(query: Fields & { limit: number; offset: number; page: string | undefined }): Promise<Answer> {
    const { limit, offset } = query;
    const filter = await this.#filter(query);
    const after = pageEnd(query.page);
    const { letters, hasMore, total } = await this.#letters.list(filter, { limit, offset, after });
    const last = hasMore ? letters[letters.length - 1] : undefined;
    const nextPage = last ? `"${last.failedAtUs}.${last.id}"` : "null";
    return {
      status: 200,
      body:
        `{"messages":[${letters.map((letter) => show(letter, this.#keyring)).join(",")}],"total":${total},"nextPage":${nextPage},` +
        `"pagination":{"limit":${limit},"offset":${offset}}}`,
    };
  }

  async errors(query: {
    queue: string | undefined;
    consumerGroup: string | undefined;
    limit: number;
  }): Promise<Answer> {
    const rows = await this.#letters.errors(query.queue, query.consumerGroup, query.limit);
    return json(200, {
      errors: rows.map(({ error, letters, queues, partitions, firstAtUs, lastAtUs }) => ({
        error,
        count: letters,
        queues,
        partitions,
        firstFailedAt: isoMilliseconds(firstAtUs),
        lastFailedAt: isoMilliseconds(lastAtUs),
      })),
    });
  }

  async requeue(request: Request): Promise<Answer> {
    const { chosen, limit } = await this.#chosen(request, REQUEUED_AT_ONCE_MAX);
    const moved = await this.#letters.requeue(chosen, limit);
    return json(200, {
      success: true,
      requeued: moved.length,
      remaining: "filter" in chosen ? await this.#letters.count(chosen.filter) : 0,
      messages: moved.map((row) => ({
        deadLetterId: deadLetterId(row.letter),
        id: messageId(row.partitionId, row.offset),
        partitionId: partitionId(row.partitionId),
      })),
    });
  }

  async purge(request: Request): Promise<Answer> {
    const { chosen, limit } = await this.#chosen(request, PURGED_AT_ONCE_MAX);
    const purged = await this.#letters.purge(chosen, limit);
    const remaining = "filter" in chosen ? await this.#letters.count(chosen.filter) : 0;
    return json(200, { success: true, purged, remaining });
  }

  /** Which letters a body means. Meaning all of them must be said. */
  async #chosen(request: Request, limitMax: number): Promise<{ chosen: Chosen; limit: number }> {
    const body = request.json();
    const fields = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
    const { ids, limit = limitMax } = fields;
    if (typeof limit !== "number" || !Number.isInteger(limit) || limit < 1) {
      throw invalid("limit must be a positive integer.");
    }
    if (ids !== undefined) return { chosen: chosenIds(ids, fields.consumerGroup, limitMax), limit: limitMax };
    const filter = await this.#filter(fields);
    if (fields.all !== true && Object.values(filter).every((each) => each === undefined)) {
      throw invalid(
        'Say which: ids, or any of queue, consumerGroup, partition, error, from and to, or "all": true for all of them.',
      );
    }
    return { chosen: { filter }, limit: Math.min(limit, limitMax) };
  }

  async #filter(fields: Fields): Promise<DeadLetterFilter> {
    const time = async (field: "from" | "to"): Promise<string | undefined> =>
      isGiven(fields[field]) ? checkTime(fields[field], field, this.#readTimestamp) : undefined;
    const name = (field: keyof Fields): string | undefined =>
      isGiven(fields[field]) ? checkName(fields[field], field) : undefined;
    return {
      queue: name("queue"),
      consumerGroup: name("consumerGroup"),
      partition: name("partition"),
      error: isGiven(fields.error) ? String(fields.error) : undefined,
      from: await time("from"),
      to: await time("to"),
    };
  }
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null && value !== "";

function chosenIds(ids: unknown, group: unknown, max: number): Chosen {
  if (!Array.isArray(ids) || ids.length === 0 || ids.length > max) {
    throw invalid(`ids must be an array of 1 to ${max} ids.`);
  }
  const letters: number[] = [];
  const messages: { partition: number; offset: number }[] = [];
  for (const [index, id] of ids.entries()) {
    const letter = typeof id === "string" ? parseDeadLetterId(id) : undefined;
    const message = typeof id === "string" ? parseMessageId(id) : undefined;
    if (letter !== undefined) letters.push(letter);
    else if (message) messages.push(message);
    else throw invalid(`ids[${index}] must be the deadLetterId or the id of a dead letter.`);
  }
  return { letters, messages, group: isGiven(group) ? checkName(group, "consumerGroup") : undefined };
}

function pageEnd(text: string | undefined): PageEnd | undefined {
  if (text === undefined) return undefined;
  const match = /^(\d{1,16})\.(\d{1,15})$/.exec(text);
  if (match) return { failedAtUs: Number(match[1]), id: Number(match[2]) };
  throw invalid("page must be the nextPage of an answer.");
}

/** As bytes, one per character: the payload is what the producer sent. */
function show(letter: DeadLetterRow, keyring: Keyring): string {
  const { header, payload, isEncrypted, payloadError } = keyring.show(letter.fragment);
  return (
    `{"id":"${messageId(letter.partitionId, letter.offset)}",${header},"data":${payload},` +
    `"partitionId":"${partitionId(letter.partitionId)}","queue":${encodeString(letter.queue)},` +
    `"partition":${encodeString(letter.partition)},"consumerGroup":${encodeString(letter.consumerGroup)},` +
    `"errorMessage":${encodeString(letter.errorMessage)},"retryCount":${letter.retryCount},` +
    `"createdAt":"${isoMilliseconds(letter.createdAtUs)}","failedAt":"${isoMilliseconds(letter.failedAtUs)}",` +
    `"deadLetterId":"${deadLetterId(letter.id)}","isEncrypted":${isEncrypted},` +
    `"payloadError":${payloadError === null ? "null" : encodeString(payloadError)}}`
  );
}
