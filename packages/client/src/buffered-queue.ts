/** A queue whose pushes go through a buffer: fast and many, stored a little later. */
import type { Buffer } from "./buffer.ts";
import type { PushItem } from "./data-plane.ts";
import type { NewMessage } from "./message.ts";

export class BufferedQueue<In> {
  readonly #buffer: Buffer;
  readonly #items: (
    messages: readonly NewMessage<In>[],
    partition: string | undefined,
  ) => Promise<PushItem[]>;
  readonly #partition: string | undefined;

  constructor(
    buffer: Buffer,
    items: (messages: readonly NewMessage<In>[], partition: string | undefined) => Promise<PushItem[]>,
    partition: string | undefined,
  ) {
    this.#buffer = buffer;
    this.#items = items;
    this.#partition = partition;
  }

  partition(name: string): BufferedQueue<In> {
    return new BufferedQueue(this.#buffer, this.#items, name);
  }

  /** Resolves when the messages are in the buffer, which is later when it is full. */
  push(messages: NewMessage<In> | readonly NewMessage<In>[]): Promise<void> {
    const all = (Array.isArray(messages) ? messages : [messages]) as readonly NewMessage<In>[];
    return this.#buffer.add(this.#items(all, this.#partition));
  }

  /** Messages that are not stored yet. */
  get pending(): number {
    return this.#buffer.size;
  }

  /** Resolves when everything is stored that was pushed so far. */
  flush(): Promise<void> {
    return this.#buffer.flush();
  }
}
