/**
 * Messages as operators see them: lists by filter and page, one message with what each group made of it,
 * delete, retry, move to the dead letters. A message is named by its partition and its transactionId, of
 * which the newest counts, or by its id, which spares the search.
 */
import { BrokerError } from "@queen/protocol";
import { encodeString } from "../operations/json-scanner.ts";
import { transactionIdJson } from "../operations/segment.ts";
import { transactionKeyBytes } from "../operations/transaction-key.ts";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import type { DeadLetters } from "./dead-letters.ts";

export type { ListedMessageRow, MessageRow, ReadersRow } from "../postgres/statements.ts";

export const MESSAGE_STATUSES = ["pending", "processing", "completed", "dead_letter"] as const;
export type MessageStatus = (typeof MESSAGE_STATUSES)[number];

export interface MessageFilter {
  /** Undefined: any. */
  readonly queue: string | undefined;
  readonly partition: string | undefined;
  readonly namespace: string | undefined;
  readonly task: string | undefined;
  readonly status: MessageStatus | undefined;
  /** Times as PostgreSQL reads them; the second counts to the end of its minute. */
  readonly from: string | undefined;
  readonly to: string | undefined;
}

/** Where a page ended. */
export interface MessagePage {
  readonly createdAtUs: number;
  readonly partition: number;
  readonly offset: number;
}

export interface MessageList {
  readonly messages: readonly statements.ListedMessageRow[];
  /** Undefined: there is nothing more. */
  readonly next: MessagePage | undefined;
  readonly readers: statements.ReadersRow;
}

/** A message's place in the log. */
export interface Place {
  readonly partition: number;
  readonly offset: number;
}

export type RetryAction = "requeued" | "redelivered" | "pending" | "leased" | "copied";

export interface MessagesOptions {
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  readonly letters: DeadLetters;
  /** A place in this lane was changed: leases may be over, and it may have work. */
  readonly changed: (partition: number) => void;
  /** A segment of this lane was written anew. */
  readonly rewritten: (partition: number) => void;
}

// The search for a transactionId goes back in steps: recent messages are asked for most.
const SEARCH_STEPS = [50_000, 1_000_000, Infinity];

export class Messages {
  readonly #options: MessagesOptions;

  constructor(options: MessagesOptions) {
    this.#options = options;
  }

  /** Undefined: there is no such queue, or it has no such partition. */
  async list(
    filter: MessageFilter,
    page: { limit: number; offset: number; after: MessagePage | undefined },
  ): Promise<MessageList | undefined> {
    const { use } = this.#options;
    let place: statements.PlaceRow | undefined;
    if (filter.queue !== undefined) {
      [place] = await use((session) =>
        session.run(statements.findPlace, [filter.queue, filter.partition ?? null]),
      );
      if (!place || (filter.partition !== undefined && place.partitionId === null)) return undefined;
    }
    const [rows, [readers]] = await Promise.all([
      use((session) =>
        session.run(statements.listMessages, [
          place?.queueId ?? null,
          place?.partitionId ?? null,
          filter.namespace ?? null,
          filter.task ?? null,
          filter.status ?? null,
          filter.from ?? null,
          filter.to ?? null,
          page.after?.createdAtUs ?? null,
          page.after?.partition ?? null,
          page.after?.offset ?? null,
          page.limit,
          page.offset,
        ]),
      ),
      use((session) =>
        session.run(statements.readersOf, [
          place?.queueId ?? null,
          filter.namespace ?? null,
          filter.task ?? null,
        ]),
      ),
    ]);
    const end = rows[rows.length - 1];
    return {
      messages: rows.filter((row) => row.header !== null),
      next:
        end?.header === null
          ? { createdAtUs: end.createdAtUs, partition: end.partitionId, offset: end.offset }
          : undefined,
      readers: readers!,
    };
  }

  /** The newest message of a partition with this transactionId. */
  async find(partition: number, transactionId: string): Promise<Place | undefined> {
    const { use } = this.#options;
    const key = transactionKeyBytes(transactionId);
    const json = encodeString(transactionId);
    const [lane] = await use((session) => session.run(statements.readPartition, [partition]));
    let below = lane?.nextOffset ?? 0;
    for (const step of SEARCH_STEPS) {
      if (below === 0) break;
      const from = Math.max(0, below - step);
      const rows = await use((session) => session.run(statements.findInLane, [partition, key, from, below]));
      const found = rows.find((row) => transactionIdJson(row.fragment) === json);
      if (found) return { partition, offset: found.offset };
      below = from;
    }
    const [offset] = await use((session) =>
      session.run(statements.findLetterOffset, [partition, transactionId]),
    );
    return offset === undefined ? undefined : { partition, offset };
  }

  async read({ partition, offset }: Place): Promise<statements.MessageRow | undefined> {
    const [row] = await this.#options.use((session) =>
      session.run(statements.readMessage, [partition, offset]),
    );
    return row;
  }

  /** Returns whether it was there. */
  async delete({ partition, offset }: Place): Promise<boolean> {
    const { use, rewritten, changed } = this.#options;
    const [deleted] = await use((session) => session.run(statements.deleteMessage, [partition, offset]));
    if (deleted) {
      rewritten(partition);
      changed(partition);
    }
    return deleted!;
  }

  /** Has a group deliver it again. A dead letter is requeued; see queen.retry_message for the others. */
  async retry(place: Place, group: string): Promise<{ action: RetryAction; at: Place }> {
    const { use, letters, changed } = this.#options;
    const [requeued] = await letters.requeue({ letters: [], messages: [place], group }, 1);
    if (requeued) {
      return { action: "requeued", at: { partition: requeued.partitionId, offset: requeued.offset } };
    }
    const [row] = await use((session) =>
      session.run(statements.retryMessage, [place.partition, place.offset, group]),
    );
    const { action, offset } = row!;
    checkFound(action);
    changed(place.partition);
    return {
      action: action as RetryAction,
      at: offset === null ? place : { partition: place.partition, offset },
    };
  }

  /** Finishes it for a group, and puts it to the group's dead letters. */
  async bury(place: Place, group: string, error: string): Promise<void> {
    const [action] = await this.#options.use((session) =>
      session.run(statements.buryMessage, [place.partition, place.offset, group, error]),
    );
    checkFound(action!);
    this.#options.changed(place.partition);
  }
}

function checkFound(action: string): void {
  if (action === "gone") throw new BrokerError("NOT_FOUND", "Message not found");
  if (action === "no group") throw new BrokerError("NOT_FOUND", "Consumer group not found");
}
