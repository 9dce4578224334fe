/**
 * Bodies of requests as they come in. One has a limit, and so have all that a worker holds together: where they
 * are too many, the largest that is still coming in is refused, so that a few large ones never cost the small ones.
 */
import type { Readable } from "node:stream";
import { BrokerError } from "@queen/protocol";

/** As much of an HTTP request as its body needs. */
export interface Incoming extends Readable {
  readonly headers: { readonly "content-length"?: string | undefined };
  readonly socket: { destroy(): unknown };
}

export interface RequestBodiesOptions {
  /** Of one body. */
  readonly bytesMax: number;
  /** Of all that are held. */
  readonly heldBytesMax: number;
}

export interface ArrivingBody {
  readonly whole: Promise<Buffer>;
  /** Its request is over. */
  release(): void;
}

interface Arriving {
  bytes: number;
  refuse(error: BrokerError): void;
}

// So much of a body above its limit is read: a client that sends little more keeps its connection.
const DROPPED_BYTES_MAX = 64 * 1024;
// A client that is not read any more has so long to see its answer before the connection is cut.
const CUT_AFTER_MS = 1_000;
const EMPTY = Buffer.alloc(0);

export class RequestBodies {
  readonly #options: RequestBodiesOptions;
  readonly #arriving = new Set<Arriving>();
  #heldBytes = 0;

  constructor(options: RequestBodiesOptions) {
    this.#options = options;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  read(incoming: Incoming): ArrivingBody {
    const { bytesMax } = this.#options;
    let chunks: Buffer[] = [];
    let received = 0;
    let isRefused = false;
    let end: (body: Buffer) => void;
    let fail: (error: Error) => void;
    const whole = new Promise<Buffer>((resolve, reject) => {
      end = resolve;
      fail = reject;
    });
    const release = (): void => {
      this.#arriving.delete(own);
      this.#heldBytes -= own.bytes;
      own.bytes = 0;
      chunks = [];
    };
    const own: Arriving = {
      bytes: 0,
      refuse: (error) => {
        isRefused = true;
        release();
        fail(error);
      },
    };
    const declared = Number(incoming.headers["content-length"] ?? 0);
    if (declared > bytesMax) own.refuse(tooLarge(bytesMax));
    incoming.on("data", (chunk: Buffer) => {
      received += chunk.length;
      if (!isRefused && received > bytesMax) own.refuse(tooLarge(bytesMax));
      if (!isRefused) {
        chunks.push(chunk);
        own.bytes += chunk.length;
        this.#hold(own, chunk.length);
      }
      if (isRefused && received > bytesMax + DROPPED_BYTES_MAX) stopReading(incoming);
    });
    incoming.on("end", () => {
      this.#arriving.delete(own);
      if (!isRefused)
        end(chunks.length === 1 ? chunks[0]! : chunks.length === 0 ? EMPTY : Buffer.concat(chunks));
      chunks = [];
    });
    incoming.on("error", (error) => fail(error));
    return { whole, release };
  }

  /** Of a request that came whole; returns what is to be called when it is over. */
  hold(body: Buffer): () => void {
    const own: Arriving = {
      bytes: body.length,
      refuse: (error) => {
        this.#heldBytes -= own.bytes;
        own.bytes = 0;
        throw error;
      },
    };
    this.#heldBytes += body.length;
    if (this.#heldBytes > this.#options.heldBytesMax) this.#refuseLargest(own);
    return () => {
      this.#heldBytes -= own.bytes;
      own.bytes = 0;
    };
  }

  /** Of a request that is refused whatever its body says. */
  drop(incoming: Incoming): void {
    let received = 0;
    incoming.on("data", (chunk: Buffer) => {
      received += chunk.length;
      if (received > this.#options.bytesMax) stopReading(incoming);
    });
  }

  #hold(own: Arriving, bytes: number): void {
    this.#arriving.add(own);
    this.#heldBytes += bytes;
    if (this.#heldBytes > this.#options.heldBytesMax) this.#refuseLargest(own);
  }

  #refuseLargest(own: Arriving): void {
    let largest = own;
    for (const each of this.#arriving) if (each.bytes > largest.bytes) largest = each;
    largest.refuse(
      new BrokerError(
        "OVERLOADED",
        "The broker holds as many bytes of requests as it may. Try again, or send less at once.",
      ),
    );
  }
}

const tooLarge = (bytesMax: number): BrokerError =>
  new BrokerError("BODY_TOO_LARGE", `The body is larger than ${bytesMax} bytes (QUEEN_MAX_BODY_BYTES).`);

/** A client that writes on sees its answer before its connection breaks. */
function stopReading(incoming: Incoming): void {
  if (incoming.isPaused()) return;
  incoming.pause();
  setTimeout(() => incoming.socket.destroy(), CUT_AFTER_MS).unref();
}
