/** A Queen is a client of one or several brokers that share a database. */
import { Acker } from "./acker.ts";
import { Admin } from "./admin/admin.ts";
import { Buffer } from "./buffer.ts";
import { affinityKey, DataPlane } from "./data-plane.ts";
import { AckError, ClosedError } from "./errors.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import type { AckResult, AckStatus, Message } from "./message.ts";
import { type QueenOptions, transportOptions } from "./options.ts";
import { Pusher } from "./pusher.ts";
import type { QueenCore } from "./queen-core.ts";
import { QueueBuilder } from "./queue-builder.ts";
import { DEFAULT_SETTINGS } from "./queue-settings.ts";
import type { InputOf, OutputOf, StandardSchema } from "./standard-schema.ts";
import { Telemetry } from "./telemetry.ts";
import { Transaction } from "./transaction.ts";
import type { Answer } from "./transport/call.ts";
import { onAbort } from "./transport/on-abort.ts";
import { type RequestOptions, Transport } from "./transport/transport.ts";

export interface TraceOptions {
  /** `info` unless said. */
  readonly eventType?: string;
  readonly traceNames?: string | readonly string[];
}

// As long as a broker gives requests under way when it stops, three times over.
const CLOSE_MILLIS = 30_000;
const RENEW_SECONDS = 60;
// When there is no more time, acks that give messages back get this much.
const LAST_ACKS_MILLIS = 2_000;

export class Queen {
  /** The control plane. */
  readonly admin: Admin;
  readonly #core: QueenCore;
  readonly #buffers = new Map<string, Buffer>();
  #closed: Promise<void> | undefined;

  constructor(options: string | QueenOptions = {}) {
    const forTransport = transportOptions(options);
    const {
      fetch: ownFetch,
      useWorker,
      onWarning,
    } = typeof options === "string" ? ({} as QueenOptions) : options;
    const transport = new Transport(forTransport);
    const data = new DataPlane(transport);
    const warn = onWarning ?? ((message, cause) => console.warn(`queen: ${message}`, cause ?? ""));
    this.admin = new Admin(transport);
    this.#core = {
      transport,
      data,
      admin: this.admin,
      pusher: new Pusher(data),
      acker: new Acker(data),
      keeper: new LeaseKeeper({
        transport,
        transportOptions: forTransport,
        useWorker: (useWorker ?? true) && ownFetch === undefined,
        warn,
      }),
      telemetry: new Telemetry(),
      settled: new WeakMap(),
      open: new Set(),
      warn,
      buffer: (queue, bufferOptions, push) => {
        const buffer = this.#buffers.get(queue) ?? new Buffer(push, bufferOptions);
        this.#buffers.set(queue, buffer);
        return buffer;
      },
    };
  }

  /** A queue whose messages have payloads of a type, or, with a schema, payloads that match it. */
  queue<T = unknown>(name?: string): QueueBuilder<T>;
  queue<S extends StandardSchema>(name: string, schema: S): QueueBuilder<OutputOf<S>, InputOf<S>>;
  queue(name?: string, schema?: StandardSchema): QueueBuilder {
    return new QueueBuilder(this.#core, { ...DEFAULT_SETTINGS, queue: name }, schema);
  }

  /** Acks and pushes in one commit. */
  transaction(): Transaction {
    return new Transaction(this.#core);
  }

  /**
   * Settles messages of one group: `true` is completed, `false` is failed. Rejects with AckError if one of them had
   * no effect, because the lease was lost or there is no such message.
   */
  async ack(
    messages: Message | readonly Message[],
    status: AckStatus | boolean = true,
    options: { readonly error?: string } = {},
  ): Promise<AckResult[]> {
    const all = Array.isArray(messages) ? (messages as readonly Message[]) : [messages as Message];
    const word = typeof status === "string" ? status : status ? "completed" : "failed";
    const [first] = all;
    if (first === undefined) return [];
    const { queue, consumerGroup } = first;
    if (all.some((message) => message.consumerGroup !== consumerGroup))
      throw new TypeError("Ack messages of one consumer group at a time.");
    const acks = all.map((message) => ({ message, status: word, error: options.error }) as const);
    const results = await this.#core.acker.ack(
      consumerGroup,
      affinityKey(queue, undefined, consumerGroup),
      acks,
    );
    for (const message of all) this.#core.settled.set(message, word);
    if (results.some((result) => !result.success)) throw new AckError(results);
    return results;
  }

  /** Extends the lease of a message, or by its id, and returns when it ends. Rejects with LeaseLostError. */
  renew(lease: Message | string, seconds: number = RENEW_SECONDS): Promise<string> {
    return this.#core.data.extend(typeof lease === "string" ? lease : lease.leaseId, seconds);
  }

  /** Notes something about a message, to be found by the message or by a name. */
  async trace(message: Message, data: unknown, options: TraceOptions = {}): Promise<void> {
    const { partitionId, transactionId, consumerGroup } = message;
    const { eventType, traceNames } = options;
    await this.#core.transport.send("POST", "/api/v1/traces", {
      body: { partitionId, transactionId, consumerGroup, data, eventType, traceNames },
    });
  }

  /** Resolves when all buffers are stored. */
  async flush(): Promise<void> {
    await Promise.all([...this.#buffers.values()].map((buffer) => buffer.flush()));
  }

  /** The brokers, and whether the last request to each had an answer. */
  get endpoints(): readonly { readonly url: string; readonly isHealthy: boolean }[] {
    return this.#core.transport.endpoints.map(({ url, isHealthy }) => ({ url, isHealthy }));
  }

  /** Any request of the HTTP API; the JSON of its answer, or null without a body. */
  async request<T = unknown>(method: string, path: string, options?: RequestOptions): Promise<T> {
    return (await this.#core.transport.send<T>(method, path, options)).body;
  }

  /** As `request`, with the status and the headers. */
  answer<T = unknown>(method: string, path: string, options?: RequestOptions): Promise<Answer<T>> {
    return this.#core.transport.send<T>(method, path, options);
  }

  /**
   * Ends in order: no more pops, handlers at work finish, what nobody has begun is given back, buffers are
   * stored. What takes longer than `timeoutMillis` is given back or given up. A second call gets the promise of
   * the first.
   */
  close(options: { readonly timeoutMillis?: number } = {}): Promise<void> {
    this.#closed ??= this.#close(options.timeoutMillis ?? CLOSE_MILLIS);
    return this.#closed;
  }

  async #close(timeoutMillis: number): Promise<void> {
    const { open, pusher, acker, keeper, transport } = this.#core;
    const hurry = new AbortController();
    const timer = setTimeout(
      () =>
        hurry.abort(
          new ClosedError(`The client closed, and the work did not end within ${timeoutMillis} ms.`),
        ),
      timeoutMillis,
    );
    try {
      // Consumers first: their handlers may still push into buffers.
      await Promise.all([...open].map((each) => each.close(hurry.signal)));
      const stored = await Promise.allSettled(
        [...this.#buffers.values()].map((buffer) => buffer.close(hurry.signal)),
      );
      await Promise.race([
        Promise.all([pusher.drained(), acker.drained()]),
        after(hurry.signal, LAST_ACKS_MILLIS),
      ]);
      for (const result of stored) if (result.status === "rejected") throw result.reason;
    } finally {
      clearTimeout(timer);
      await keeper.stop();
      transport.close();
    }
  }
}

/** Resolves so long after the signal; never without it. */
function after(signal: AbortSignal, millis: number): Promise<void> {
  return new Promise((resolve) => {
    onAbort(signal, () => void setTimeout(resolve, millis));
  });
}
