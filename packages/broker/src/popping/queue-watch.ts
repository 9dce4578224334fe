/**
 * A queue watch looks after pops that ask for the queues of a namespace and a task, and wait: queues that come to
 * match are told to them. The database is asked when a queue was made or changed, once for all who want the same.
 */
import type { EmptyReason } from "./empty-reason.ts";

export interface QueueListener {
  /** These match now, the most urgent first. */
  found(queues: readonly string[]): void;
  /** Nobody waits any longer. */
  ended(reason: EmptyReason): void;
}

/** What one pop watches. It may begin before anybody listens: then what came first is kept. */
export class Watch {
  readonly namespace: string;
  readonly task: string;
  /** Whether there is no queue yet to wait for. */
  isAlone = false;
  readonly #left: (watch: Watch) => void;
  #listener: QueueListener | undefined;
  #found: readonly string[] | undefined;
  #reason: EmptyReason | undefined;

  constructor(namespace: string, task: string, left: (watch: Watch) => void) {
    this.namespace = namespace;
    this.task = task;
    this.#left = left;
  }

  listen(listener: QueueListener): void {
    this.#listener = listener;
    if (this.#found) listener.found(this.#found);
    if (this.#reason) listener.ended(this.#reason);
  }

  tell(queues: readonly string[]): void {
    this.#found = queues;
    this.#listener?.found(queues);
  }

  end(reason: EmptyReason): void {
    this.#reason = reason;
    this.#listener?.ended(reason);
  }

  close(): void {
    this.#left(this);
  }
}

export class QueueWatch {
  readonly #read: (namespace: string, task: string) => Promise<readonly string[]>;
  readonly #log: (message: string, error: unknown) => void;
  readonly #watches = new Set<Watch>();
  #asking: Promise<void> | undefined;
  #isStale = false;
  #isMissed = false;

  constructor(
    read: (namespace: string, task: string) => Promise<readonly string[]>,
    log: (message: string, error: unknown) => void,
  ) {
    this.#read = read;
    this.#log = log;
  }

  get size(): number {
    return this.#watches.size;
  }

  /** Those for which no queue exists yet. */
  get aloneCount(): number {
    let count = 0;
    for (const watch of this.#watches) if (watch.isAlone) count++;
    return count;
  }

  /** Begins before the caller asks for the queues itself, so that nothing falls between. */
  open(namespace: string, task: string): Watch {
    const watch = new Watch(namespace, task, (left) => this.#watches.delete(left));
    this.#watches.add(watch);
    return watch;
  }

  /** Queues were made or changed. */
  changed(): void {
    if (this.#watches.size === 0) return;
    this.#isStale = true;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
  }

  /** Asks again where asking failed. */
  retry(): void {
    if (!this.#isMissed) return;
    this.#isMissed = false;
    this.changed();
  }

  endAll(reason: EmptyReason): void {
    for (const watch of [...this.#watches]) watch.end(reason);
  }

  async #ask(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      const byWish = new Map<string, Watch[]>();
      for (const watch of this.#watches) {
        const wish = JSON.stringify([watch.namespace, watch.task]);
        byWish.set(wish, [...(byWish.get(wish) ?? []), watch]);
      }
      for (const watches of byWish.values()) {
        const { namespace, task } = watches[0]!;
        try {
          const queues = await this.#read(namespace, task);
          for (const watch of watches) if (this.#watches.has(watch)) watch.tell(queues);
        } catch (error) {
          this.#isMissed = true;
          this.#log("pop.queues_unknown", error);
        }
      }
    }
  }
}
