/**
 * The acker groups acks. For each consumer group one call is under way at a time, and what comes meanwhile
 * gathers for the next: a busy consumer makes its own batches, and a quiet one waits for nothing. Acks of one
 * group keep their order, so that "completed" arrives before the "retry" which gives the rest of a lane back.
 */
import type { Ack, DataPlane } from "./data-plane.ts";
import type { AckResult } from "./message.ts";
import { soon } from "./soon.ts";

interface Waiting {
  readonly acks: readonly Ack[];
  readonly resolve: (results: AckResult[]) => void;
  readonly reject: (error: unknown) => void;
}

interface Line {
  readonly group: string;
  readonly key: string;
  readonly waiting: Waiting[];
  isSending: boolean;
}

// Of the 10,000 that a broker takes; a batch of one delivery is not split.
const ACKS_PER_CALL_MAX = 1_000;

export class Acker {
  readonly #data: DataPlane;
  readonly #lines = new Map<string, Line>();
  #idle: (() => void)[] = [];

  constructor(data: DataPlane) {
    this.#data = data;
  }

  /** The acks go in one call, so that those of one lane count together. */
  ack(group: string, key: string, acks: readonly Ack[]): Promise<AckResult[]> {
    if (acks.length === 0) return Promise.resolve([]);
    const name = JSON.stringify([group, key]);
    const line = this.#lines.get(name) ?? { group, key, waiting: [], isSending: false };
    this.#lines.set(name, line);
    return new Promise((resolve, reject) => {
      line.waiting.push({ acks, resolve, reject });
      if (line.isSending) return;
      line.isSending = true;
      soon(() => void this.#send(name, line));
    });
  }

  /** Resolves when nothing is under way. */
  async drained(): Promise<void> {
    if (this.#lines.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  async #send(name: string, line: Line): Promise<void> {
    while (line.waiting.length > 0) {
      const taken = [line.waiting.shift()!];
      let count = taken[0]!.acks.length;
      for (
        let next = line.waiting[0];
        next && count + next.acks.length <= ACKS_PER_CALL_MAX;
        next = line.waiting[0]
      ) {
        taken.push(line.waiting.shift()!);
        count += next.acks.length;
      }
      try {
        const acks = taken.flatMap((each) => each.acks);
        const results = await this.#data.ack(line.group, acks, line.key);
        for (const each of taken) each.resolve(results.splice(0, each.acks.length));
      } catch (error) {
        for (const each of taken) each.reject(error);
      }
    }
    this.#lines.delete(name);
    if (this.#lines.size > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}
