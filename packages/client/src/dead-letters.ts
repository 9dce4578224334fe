/** The dead letters of a queue: to look at, to put back, to delete. */
import type { Answers } from "./admin/admin.ts";
import type { Transport } from "./transport/transport.ts";

export interface DeadLetterFilter {
  readonly queue?: string;
  readonly consumerGroup?: string;
  readonly partition?: string;
  /** Times of failure, both included. */
  readonly from?: string;
  readonly to?: string;
}

export type DeadLetter = Answers["GET /api/v1/dlq"]["messages"][number];

// What a broker does in one call at most.
const REQUEUE_MAX = 1_000;
const PURGE_MAX = 10_000;
const PAGE = 1_000;

export class DeadLetters {
  readonly #transport: Transport;
  readonly #filter: DeadLetterFilter;
  readonly #limit: number | undefined;

  constructor(transport: Transport, filter: DeadLetterFilter, limit?: number) {
    this.#transport = transport;
    this.#filter = filter;
    this.#limit = limit;
  }

  /** At most so many. */
  limit(count: number): DeadLetters {
    return new DeadLetters(this.#transport, this.#filter, count);
  }
  /** Only what failed then or later. */
  from(time: Date | string): DeadLetters {
    return new DeadLetters(this.#transport, { ...this.#filter, from: timeText(time) }, this.#limit);
  }
  /** Only what failed then or earlier. */
  to(time: Date | string): DeadLetters {
    return new DeadLetters(this.#transport, { ...this.#filter, to: timeText(time) }, this.#limit);
  }

  /** A page, the newest failure first, with the `total`; 100 unless `limit` says otherwise. */
  get(): Promise<Answers["GET /api/v1/dlq"]> {
    return this.#page(undefined, this.#limit);
  }

  /** All of them, page by page, the newest failure first. */
  async *[Symbol.asyncIterator](): AsyncGenerator<DeadLetter, void, void> {
    let left = this.#limit ?? Number.POSITIVE_INFINITY;
    let page: string | undefined;
    do {
      const answer = await this.#page(page, Math.min(PAGE, left));
      yield* answer.messages;
      left -= answer.messages.length;
      page = answer.nextPage ?? undefined;
    } while (page !== undefined && left > 0);
  }

  /** Makes them messages again, at the end of their partitions, for the group that had given them up. */
  async requeue(): Promise<{ readonly requeued: number; readonly messageIds: readonly string[] }> {
    const messageIds: string[] = [];
    await this.#all(REQUEUE_MAX, async (limit) => {
      const answer = await this.#post<Answers["POST /api/v1/dlq/requeue"]>("requeue", limit);
      messageIds.push(...answer.messages.map((message) => message.id));
      return { done: answer.requeued, remaining: answer.remaining };
    });
    return { requeued: messageIds.length, messageIds };
  }

  /** Deletes them. */
  async purge(): Promise<{ readonly purged: number }> {
    let purged = 0;
    await this.#all(PURGE_MAX, async (limit) => {
      const answer = await this.#post<Answers["POST /api/v1/dlq/purge"]>("purge", limit);
      purged += answer.purged;
      return { done: answer.purged, remaining: answer.remaining };
    });
    return { purged };
  }

  async #all(
    max: number,
    step: (limit: number) => Promise<{ done: number; remaining: number }>,
  ): Promise<void> {
    for (let left = this.#limit ?? Number.POSITIVE_INFINITY; left > 0; ) {
      const { done, remaining } = await step(Math.min(max, left));
      if (done === 0 || remaining === 0) return;
      left -= done;
    }
  }

  #page(page: string | undefined, limit: number | undefined): Promise<Answers["GET /api/v1/dlq"]> {
    return this.#transport
      .send<Answers["GET /api/v1/dlq"]>("GET", "/api/v1/dlq", { query: { ...this.#filter, limit, page } })
      .then(({ body }) => body);
  }

  /** A letter is put back or deleted once, however often it is asked for. */
  #post<T>(what: "requeue" | "purge", limit: number): Promise<T> {
    return this.#transport
      .send<T>("POST", `/api/v1/dlq/${what}`, { body: { ...this.#filter, limit } })
      .then(({ body }) => body);
  }
}

const timeText = (time: Date | string): string => (time instanceof Date ? time.toISOString() : time);
