/** Cuts what a server sends into messages of PostgreSQL's protocol. */

type MessageListener = (type: number, bytes: Buffer, start: number, end: number) => void;

/**
 * Finds the messages in a stream of chunks. A message that lies whole in a chunk is handed on in place. One
 * that does not gets a buffer of its own as soon as its length is known, so that no byte is copied twice
 * however many chunks it comes in.
 */
export class MessageFramer {
  readonly #listener: MessageListener;
  /** The message begun in earlier chunks, or only its head while its length is unknown. */
  #partial = Buffer.alloc(0);
  #partialFilled = 0;
  #stopped = false;

  constructor(listener: MessageListener) {
    this.#listener = listener;
  }

  stop(): void {
    this.#stopped = true;
    this.#partial = Buffer.alloc(0);
  }

  receive(chunk: Buffer): void {
    let at = this.#partialFilled > 0 ? this.#finishPartial(chunk) : 0;
    while (!this.#stopped && chunk.length - at >= HEAD_BYTES) {
      const end = at + messageBytes(chunk, at);
      if (end > chunk.length) break;
      this.#listener(chunk[at]!, chunk, at + HEAD_BYTES, end);
      at = end;
    }
    if (!this.#stopped && at < chunk.length) this.#beginPartial(chunk, at);
  }

  #beginPartial(chunk: Buffer, at: number): void {
    const isLengthKnown = chunk.length - at >= HEAD_BYTES;
    this.#partial = Buffer.allocUnsafe(isLengthKnown ? messageBytes(chunk, at) : HEAD_BYTES);
    this.#partialFilled = chunk.copy(this.#partial, 0, at);
  }

  /** Returns where in the chunk the next message begins. */
  #finishPartial(chunk: Buffer): number {
    let at = 0;
    if (this.#partialFilled < HEAD_BYTES) {
      at = this.#fill(chunk, at);
      if (this.#partialFilled < HEAD_BYTES) return at;
      const head = this.#partial;
      this.#partial = Buffer.allocUnsafe(messageBytes(head, 0));
      head.copy(this.#partial);
    }
    at = this.#fill(chunk, at);
    const message = this.#partial;
    if (this.#partialFilled < message.length) return at;
    this.#partialFilled = 0;
    this.#partial = Buffer.alloc(0);
    this.#listener(message[0]!, message, HEAD_BYTES, message.length);
    return at;
  }

  #fill(chunk: Buffer, at: number): number {
    const taken = chunk.copy(this.#partial, this.#partialFilled, at);
    this.#partialFilled += taken;
    return at + taken;
  }
}

// A message is its type, its length (which counts itself, not the type), and its body.
const HEAD_BYTES = 5;

function messageBytes(bytes: Buffer, at: number): number {
  const length = bytes.readInt32BE(at + 1);
  if (length < 4) throw new Error(`the server sent a message of length ${length}`);
  return 1 + length;
}
