/**
 * Capacity: a queue with `maxSize` takes no more messages while its slowest consumer group has that many
 * unfinished; if no group reads it, while that many are stored.
 *
 * The depth is read from the database when a push finds it older than a second, and what was let in here since
 * is added. So the limit is soft by what other workers push within that second. Queues without `maxSize` cost a
 * look in a map.
 */
import { BrokerError } from "@queen/protocol";
import type { Directory, LaneName } from "../lanes/directory.ts";
import type { Queue } from "../lanes/queue.ts";
import { isAway } from "../postgres/errors.ts";
import type { Session } from "../postgres/session.ts";
import { queueDepths } from "../postgres/statements.ts";

export interface CapacityOptions {
  readonly directory: Directory;
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  readonly now: () => number;
}

interface Depth {
  /** Unfinished messages when it was read. */
  messages: number;
  /** Let in here since that reading began. */
  admitted: number;
  goodUntilMs: number;
  reading: Promise<void> | undefined;
}

interface Asked {
  readonly queue: Queue;
  readonly depth: Depth;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

const GOOD_FOR_MS = 1_000;
// Queues of very many partitions take long to read; then they are read less often.
const GOOD_FOR_PER_READ = 5;

export class Capacity {
  readonly #options: CapacityOptions;
  readonly #depths = new WeakMap<Queue, Depth>();
  readonly #asked: Asked[] = [];
  #isReading = false;

  constructor(options: CapacityOptions) {
    this.#options = options;
  }

  /**
   * Lets all of a request's messages in, or none: rejects where a queue is full. Undefined: there is no limit. While
   * the database is away nothing is refused for its sake.
   */
  admit(items: readonly LaneName[]): Promise<void> | undefined {
    const { directory } = this.#options;
    let name: string | undefined;
    for (const item of items) {
      if (item.queue === name) continue;
      name = item.queue;
      const queue = directory.queue(name);
      if (!queue || queue.options.sizeMax > 0) {
        return this.#admitLimited(items).catch((error) => {
          if (!isAway(error)) throw error;
        });
      }
    }
    return undefined;
  }

  async #admitLimited(items: readonly LaneName[]): Promise<void> {
    const { directory } = this.#options;
    const counts = new Map<string, number>();
    const opened: Promise<unknown>[] = [];
    for (const item of items) {
      counts.set(item.queue, (counts.get(item.queue) ?? 0) + 1);
      if (!directory.queue(item.queue)) opened.push(directory.open(item, true)); // as the push itself would next
    }
    await Promise.all(opened);
    const limited = [...counts].flatMap(([name, count]) => {
      const queue = directory.queue(name);
      return queue && queue.options.sizeMax > 0 ? [{ queue, count, depth: this.#depth(queue) }] : [];
    });
    await Promise.all(limited.map(({ queue, depth }) => this.#refresh(queue, depth)));
    // From here on at once, so that requests that waited for the same reading count each other.
    for (const { queue, depth } of limited) {
      const { sizeMax } = queue.options;
      if (depth.messages + depth.admitted < sizeMax) continue;
      throw new BrokerError(
        "QUEUE_FULL",
        `Queue ${queue.name} has ${sizeMax} unfinished messages or more (maxSize). Nothing was stored; ` +
          "try again when its consumers are further.",
      );
    }
    for (const { count, depth } of limited) depth.admitted += count;
  }

  #depth(queue: Queue): Depth {
    const depth = this.#depths.get(queue) ?? {
      messages: 0,
      admitted: 0,
      goodUntilMs: -Infinity,
      reading: undefined,
    };
    this.#depths.set(queue, depth);
    return depth;
  }

  #refresh(queue: Queue, depth: Depth): Promise<void> {
    if (this.#options.now() < depth.goodUntilMs) return Promise.resolve();
    depth.reading ??= new Promise<void>((resolve, reject) => {
      this.#asked.push({ queue, depth, resolve, reject });
      if (this.#asked.length === 1 && !this.#isReading) void this.#readAll();
    }).finally(() => {
      depth.reading = undefined;
    });
    return depth.reading;
  }

  /** One call at a time; queues that are asked for meanwhile share the next one. */
  async #readAll(): Promise<void> {
    const { use, now } = this.#options;
    this.#isReading = true;
    while (this.#asked.length > 0) {
      const asked = this.#asked.splice(0);
      const startedAtMs = now();
      const admittedBefore = asked.map(({ depth }) => depth.admitted);
      try {
        const depths = await use((session) => session.run(queueDepths, [asked.map(({ queue }) => queue.id)]));
        const goodForMs = Math.max(GOOD_FOR_MS, (now() - startedAtMs) * GOOD_FOR_PER_READ);
        asked.forEach(({ depth, resolve }, index) => {
          depth.messages = depths[index]!;
          depth.admitted -= admittedBefore[index]!;
          depth.goodUntilMs = startedAtMs + goodForMs;
          resolve();
        });
      } catch (error) {
        for (const { reject } of asked) reject(error as Error);
      }
    }
    this.#isReading = false;
  }
}
