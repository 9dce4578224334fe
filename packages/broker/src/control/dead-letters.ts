/**
 * Dead letters as operators see them: lists by filter, requeue, purge. Requeue is a move: the letter's
 * deletion and the new message are one transaction.
 */
import { POP_BYTES_MAX } from "@queen/protocol";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";

export type { DeadLetterErrorRow, DeadLetterRow, RequeuedRow } from "../postgres/statements.ts";

export interface DeadLetterFilter {
  /** Undefined: any. */
  readonly queue: string | undefined;
  readonly consumerGroup: string | undefined;
  readonly partition: string | undefined;
  /** The whole error. */
  readonly error: string | undefined;
  /** When they failed, both ends included; as PostgreSQL writes times. */
  readonly from: string | undefined;
  readonly to: string | undefined;
}

/** The last letter of a page. */
export interface PageEnd {
  readonly failedAtUs: number;
  readonly id: number;
}

/** Which letters are meant: by filter, or one by one. */
export type Chosen =
  | { readonly filter: DeadLetterFilter }
  | {
      readonly letters: readonly number[];
      readonly messages: readonly { partition: number; offset: number }[];
      /** Of a message's letters, only this group's. */
      readonly group: string | undefined;
    };

export interface DeadLettersOptions {
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  /** Messages were appended here: [partition, queue, next offset]. */
  readonly appended: (partition: number, queue: number, nextOffset: number) => void;
}

export class DeadLetters {
  readonly #options: DeadLettersOptions;

  constructor(options: DeadLettersOptions) {
    this.#options = options;
  }

  async list(
    filter: DeadLetterFilter,
    page: { limit: number; offset: number; after: PageEnd | undefined },
  ): Promise<{ letters: statements.DeadLetterRow[]; hasMore: boolean; total: number }> {
    const [letters, total] = await Promise.all([
      this.#options.use((session) =>
        session.run(statements.listDeadLetters, [
          ...values(filter),
          page.after?.failedAtUs ?? null,
          page.after?.id ?? null,
          page.limit,
          page.offset,
          POP_BYTES_MAX,
        ]),
      ),
      this.count(filter),
    ]);
    const hasMore =
      letters.length > 0 && (letters.length < letters[0]!.matched || letters.length === page.limit);
    return { letters, hasMore, total };
  }

  /** By error, the most frequent first. */
  errors(
    queue: string | undefined,
    consumerGroup: string | undefined,
    limit: number,
  ): Promise<statements.DeadLetterErrorRow[]> {
    return this.#options.use((session) =>
      session.run(statements.listDeadLetterErrors, [queue ?? null, consumerGroup ?? null, limit]),
    );
  }

  async count(filter: DeadLetterFilter): Promise<number> {
    const [count] = await this.#options.use((session) =>
      session.run(statements.countDeadLetters, values(filter)),
    );
    return count!;
  }

  /** Moves up to `limit` letters back to their partitions, each for the group that had given it up. */
  async requeue(chosen: Chosen, limit: number): Promise<statements.RequeuedRow[]> {
    const letters = await this.#find(chosen, limit);
    if (letters.length === 0) return [];
    const rows = await this.#options.use((session) => session.run(statements.requeue, [letters]));
    const ends = new Map<number, statements.RequeuedRow>();
    for (const row of rows)
      if (row.offset >= (ends.get(row.partitionId)?.offset ?? 0)) ends.set(row.partitionId, row);
    for (const { partitionId, queueId, offset } of ends.values())
      this.#options.appended(partitionId, queueId, offset + 1);
    return rows;
  }

  /** Deletes up to `limit` letters; returns how many. */
  async purge(chosen: Chosen, limit: number): Promise<number> {
    const letters = await this.#find(chosen, limit);
    if (letters.length === 0) return 0;
    const [count] = await this.#options.use((session) => session.run(statements.purgeDeadLetters, [letters]));
    return count!;
  }

  async #find(chosen: Chosen, limit: number): Promise<number[]> {
    const { use } = this.#options;
    if ("filter" in chosen) {
      return use((session) => session.run(statements.matchDeadLetters, [...values(chosen.filter), limit]));
    }
    const { letters, messages, group } = chosen;
    if (messages.length === 0) return [...letters];
    const found = await use((session) =>
      session.run(statements.lettersOfMessages, [
        messages.map((message) => message.partition),
        messages.map((message) => message.offset),
        group ?? "",
      ]),
    );
    return [...new Set([...letters, ...found])];
  }
}

const values = (filter: DeadLetterFilter): (string | null)[] => [
  filter.queue ?? null,
  filter.consumerGroup ?? null,
  filter.partition ?? null,
  filter.error ?? null,
  filter.from ?? null,
  filter.to ?? null,
];
