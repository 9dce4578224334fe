/**
 * The search for a transactionId in a whole queue, or in all. Nothing knows in which lane it is, so the keys of the log
 * are walked, the newest messages of every lane first. It is done in steps: each is short, tells how far it came, and
 * names the place from which the next one goes on. A worker does one step at a time, because it has few connections for
 * what is no push, pop or ack.
 */
import { Turns } from "../access/turns.ts";
import { encodeString } from "../operations/json-scanner.ts";
import { transactionIdJson } from "../operations/segment.ts";
import { transactionKeyBytes } from "../operations/transaction-key.ts";
import * as statements from "../postgres/statements.ts";
import type { MessageRow, Messages, MessagesOptions, Place } from "./messages.ts";

export interface SearchTarget {
  readonly transactionId: string;
  /** Undefined: in all. */
  readonly queue: string | undefined;
  readonly partition: string | undefined;
}

/** Where a search stands. */
export interface SearchPlace extends statements.SearchPlaceRow {
  /** Messages that were looked at, and that there were when it began. */
  readonly searched: number;
  readonly total: number;
}

export interface SearchStep {
  readonly found: readonly { readonly place: Place; readonly message: MessageRow }[];
  readonly searched: number;
  readonly total: number;
  /** Undefined: everything was looked at. */
  readonly next: SearchPlace | undefined;
}

const STEP_MS = 100;
const NOTHING: SearchStep = { found: [], searched: 0, total: 0, next: undefined };

export class MessageSearch {
  readonly #use: MessagesOptions["use"];
  readonly #messages: Messages;
  readonly #turns = new Turns({
    waitingMax: 20,
    message: "Too many search for messages at this moment",
    pauseMs: 2_000,
  });

  constructor(use: MessagesOptions["use"], messages: Messages) {
    this.#use = use;
    this.#messages = messages;
  }

  /** Undefined as a place: from the beginning. */
  step(target: SearchTarget, from: SearchPlace | undefined, limit: number): Promise<SearchStep> {
    return this.#turns.take(() => this.#step(target, from, limit));
  }

  async #step(target: SearchTarget, from: SearchPlace | undefined, limit: number): Promise<SearchStep> {
    const { queue, partition, transactionId } = target;
    let queueId: number | null = null;
    let laneId: number | null = null;
    if (queue !== undefined) {
      const [place] = await this.#use((session) =>
        session.run(statements.findPlace, [queue, partition ?? null]),
      );
      if (!place || (partition !== undefined && place.partitionId === null)) return NOTHING;
      queueId = place.queueId;
      laneId = place.partitionId;
    }
    const { band, atQueue, atPartition, below, searched, total } =
      from ?? (await this.#beginning(queueId, laneId));
    const [row] = await this.#use((session) =>
      session.run(statements.searchMessages, [
        queueId,
        laneId,
        transactionId,
        transactionKeyBytes(transactionId),
        band,
        atQueue,
        atPartition,
        below,
        limit,
        STEP_MS,
      ]),
    );
    const { next } = row!;
    const searchedNow = Math.min(total, searched + row!.searched);
    return {
      found: await this.#read(row!.found, transactionId),
      searched: next ? searchedNow : total,
      total,
      next: next && { ...next, searched: searchedNow, total },
    };
  }

  async #beginning(queue: number | null, partition: number | null): Promise<SearchPlace> {
    const [total] = await this.#use((session) => session.run(statements.countStored, [queue, partition]));
    return { band: 1, atQueue: 0, atPartition: 0, below: null, searched: 0, total: total! };
  }

  /** Without those that only have the same key, or are gone by now. */
  async #read(places: readonly Place[], transactionId: string): Promise<SearchStep["found"]> {
    const json = encodeString(transactionId);
    const found = [];
    for (const place of places) {
      const message = await this.#messages.read(place);
      if (message && transactionIdJson(message.fragment) === json) found.push({ place, message });
    }
    return found;
  }
}
