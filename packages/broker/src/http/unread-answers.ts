/**
 * Answers that are on their way to clients who may not read them. One that makes no progress is cut, and where all
 * of a worker are too many bytes together, the oldest are that are not being read. A pop that is cut gives its messages
 * back, unless they were acked at delivery: so a client that reads, however slowly, is cut only in the utmost need.
 */

/** As much of an HTTP answer as is needed here. */
export interface Outgoing {
  readonly writableFinished: boolean;
  setTimeout(ms: number): unknown;
  destroy(): unknown;
}

export interface UnreadAnswersOptions {
  readonly bytesMax: number;
  readonly now: () => number;
}

interface Unread {
  readonly bytes: number;
  /** When the client was last seen to read. */
  readAtMs: number;
}

// The operating system takes what is smaller.
const BYTES_MIN = 16 * 1024;
// Twice at most: the part that the operating system took counts as progress once.
const STALLED_MS = 20_000;
// A client that reads has taken some more by then. Before, it is cut only where there is so many times too much.
const READ_WITHIN_MS = 500;
const FAR_TOO_MUCH = 8;

export class UnreadAnswers {
  readonly #options: UnreadAnswersOptions;
  /** The oldest first. */
  readonly #unread = new Map<Outgoing, Unread>();
  #bytes = 0;

  constructor(options: UnreadAnswersOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The answer was handed over for writing. */
  add(response: Outgoing, bytes: number): void {
    if (bytes < BYTES_MIN || response.writableFinished) return;
    response.setTimeout(STALLED_MS); // without progress; nobody listens, so the connection is cut
    this.#unread.set(response, { bytes, readAtMs: this.#options.now() });
    this.#bytes += bytes;
    this.#cut(response);
  }

  /** Its client took some of it. */
  progressed(response: Outgoing): void {
    const unread = this.#unread.get(response);
    if (unread) unread.readAtMs = this.#options.now();
  }

  /** It was read, or its connection is closed. */
  remove(response: Outgoing): void {
    const unread = this.#unread.get(response);
    if (!unread) return;
    this.#unread.delete(response);
    this.#bytes -= unread.bytes;
  }

  #cut(newest: Outgoing): void {
    const { bytesMax, now } = this.#options;
    for (const [response, { readAtMs }] of this.#unread) {
      if (this.#bytes <= bytesMax || response === newest) return;
      if (this.#bytes <= FAR_TOO_MUCH * bytesMax && now() - readAtMs < READ_WITHIN_MS) continue;
      this.remove(response);
      response.destroy();
    }
  }
}
