/** Clearing removes all messages of a queue or of one partition, in rounds that are short transactions. */
import { BrokerError } from "@queen/protocol";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import type { DeadLetters } from "./dead-letters.ts";

export interface ClearingOptions {
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  readonly letters: DeadLetters;
  /** A lease of this lane ended. */
  readonly changed: (partition: number) => void;
}

export interface Clear {
  readonly queue: string;
  /** Undefined: all partitions. */
  readonly partition: string | undefined;
  readonly deadLetters: boolean;
}

export interface Cleared {
  readonly messages: number;
  readonly partitions: number;
  readonly deadLetters: number;
}

const MESSAGES_PER_ROUND = 100_000;
const LETTERS_PER_ROUND = 10_000;

export class Clearing {
  readonly #options: ClearingOptions;

  constructor(options: ClearingOptions) {
    this.#options = options;
  }

  async clear({ queue, partition, deadLetters }: Clear): Promise<Cleared> {
    const { use, changed } = this.#options;
    const [place] = await use((session) => session.run(statements.findPlace, [queue, partition ?? null]));
    if (!place) throw new BrokerError("NOT_FOUND", "Queue not found");
    if (partition !== undefined && place.partitionId === null)
      throw new BrokerError("NOT_FOUND", "Partition not found");
    const round = (after: number, below: number | null): Promise<statements.ClearedRow[]> =>
      use((session) =>
        session.run(statements.clearLanes, [
          place.queueId,
          place.partitionId,
          after,
          below,
          MESSAGES_PER_ROUND,
        ]),
      );
    let [messages, partitions] = [0, 0];
    for (let after: number | null = 0, below: number | null = null; after !== null; ) {
      const [cleared] = await round(after, below);
      ({ after, below } = cleared!);
      messages += cleared!.messages;
      partitions += cleared!.lanes;
      cleared!.released.forEach(changed);
    }
    return { messages, partitions, deadLetters: deadLetters ? await this.#purge(queue, partition) : 0 };
  }

  async #purge(queue: string, partition: string | undefined): Promise<number> {
    const filter = {
      queue,
      partition,
      consumerGroup: undefined,
      error: undefined,
      from: undefined,
      to: undefined,
    };
    for (let purged = 0; ; ) {
      const count = await this.#options.letters.purge({ filter }, LETTERS_PER_ROUND);
      purged += count;
      if (count < LETTERS_PER_ROUND) return purged;
    }
  }
}
