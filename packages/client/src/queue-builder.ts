/**
 * A queue, and how to use it. Every method that says how returns a new builder, so that one can be kept and
 * used as the base of others.
 */

import type { BufferOptions } from "./buffer.ts";
import { BufferedQueue } from "./buffered-queue.ts";
import { Consumer, type HandlerContext } from "./consumer.ts";
import { type Callbacks, Consumption } from "./consumption.ts";
import { type PushItem, pushItem } from "./data-plane.ts";
import { DeadLetters } from "./dead-letters.ts";
import { InvalidPayloadError } from "./errors.ts";
import type { LeasedMessage, Message, NewMessage, PushResult } from "./message.ts";
import { iterateMessages } from "./message-iterator.ts";
import type { QueenCore } from "./queen-core.ts";
import { popRequest, type QueueConfig, type QueueSettings, wholeNumber } from "./queue-settings.ts";
import { read } from "./reader.ts";
import { describeIssues, type StandardSchema, validate } from "./standard-schema.ts";

export interface ConsumeOptions {
  /** Aborted: no more pops, and handlers at work finish. */
  readonly signal?: AbortSignal;
}

export interface MessagesOptions extends ConsumeOptions {
  readonly group?: string;
  readonly batch?: number;
  readonly partitions?: number;
  readonly limit?: number;
  readonly idleMillis?: number;
}

/** `Unit` is what a handler gets: all messages of a pop, or each. */
export class QueueBuilder<Out = unknown, In = Out, Unit = readonly Message<Out>[]> {
  readonly #core: QueenCore;
  readonly #settings: QueueSettings;
  readonly #schema: StandardSchema<unknown, Out> | undefined;
  readonly #isEach: boolean;

  constructor(
    core: QueenCore,
    settings: QueueSettings,
    schema: StandardSchema<unknown, Out> | undefined,
    isEach = false,
  ) {
    this.#core = core;
    this.#settings = settings;
    this.#schema = schema;
    this.#isEach = isEach;
  }

  #with(settings: Partial<QueueSettings>): QueueBuilder<Out, In, Unit> {
    return new QueueBuilder(this.#core, { ...this.#settings, ...settings }, this.#schema, this.#isEach);
  }

  /** One lane of the queue: messages in it keep their order. */
  partition(name: string) {
    return this.#with({ partition: name });
  }
  /** For `create`; or, without a queue's name, to pop from all queues of the namespace. */
  namespace(name: string) {
    return this.#with({ namespace: name });
  }
  task(name: string) {
    return this.#with({ task: name });
  }
  /** The consumer group that reads; without one, queue mode. */
  group(name: string) {
    return this.#with({ group: name });
  }
  /** Messages per pop, over all its partitions; 1 unless said. */
  batch(count: number) {
    return this.#with({ batch: wholeNumber("batch", count, 1) });
  }
  /** Partitions per pop; 1 unless said. */
  partitions(count: number) {
    return this.#with({ partitions: wholeNumber("partitions", count, 1) });
  }
  /** Handlers at a time; 1 unless said. */
  concurrency(count: number) {
    return this.#with({ concurrency: wholeNumber("concurrency", count, 1) });
  }
  /**
   * Of `consume`: whether messages are acked when the handler returns and failed when it throws; true unless
   * said. Of `pop`: whether they are finished at delivery, without a lease; false unless said.
   */
  autoAck(enabled: boolean) {
    return this.#with({ autoAck: enabled });
  }
  /** Whether `pop` waits for messages; `consume` always does. */
  wait(enabled: boolean) {
    return this.#with({ wait: enabled });
  }
  /** How long a pop waits; 30,000 unless said. */
  timeoutMillis(millis: number) {
    return this.#with({ timeoutMillis: wholeNumber("timeoutMillis", millis, 1) });
  }
  /** Leases are extended by so many seconds at a time while a handler works, 60 unless said; false: not at all. */
  renewLease(seconds: number | false) {
    return this.#with({ renewSeconds: seconds === false ? false : wholeNumber("renewLease", seconds, 1) });
  }
  /** `consume` ends after so many messages. */
  limit(count: number) {
    return this.#with({ limit: wholeNumber("limit", count, 1) });
  }
  /** `consume` ends when nothing came for so long. */
  idleMillis(millis: number) {
    return this.#with({ idleMillis: wholeNumber("idleMillis", millis, 1) });
  }
  /** At the group's first pop: `new` starts with what is pushed from then on, `all` with the oldest message. */
  subscriptionMode(mode: "all" | "new") {
    return this.#with({ subscriptionMode: mode });
  }
  /** At the group's first pop: where to start. */
  subscriptionFrom(time: Date | "now" | (string & {})) {
    return this.#with({ subscriptionFrom: time instanceof Date ? time.toISOString() : time });
  }
  /** The options that `create` gives the queue. */
  config(options: QueueConfig) {
    return this.#with({ config: { ...this.#settings.config, ...options } });
  }
  /** The handler of `consume` gets one message at a time. */
  each(): QueueBuilder<Out, In, Message<Out>> {
    return new QueueBuilder<Out, In, Message<Out>>(this.#core, this.#settings, this.#schema, true);
  }

  /** Makes the queue, or gives it exactly these options. A push makes a queue, too, with the defaults. */
  async create(): Promise<void> {
    const { namespace, task, config } = this.#settings;
    await this.#core.transport.send("POST", "/api/v1/configure", {
      body: { queue: this.#name(), namespace, task, options: config },
      repeatable: true,
    });
  }

  /** Deletes the queue with everything in it. */
  async delete(): Promise<void> {
    await this.#core.admin.deleteQueue(this.#name());
  }

  /** One result per message, in their order. Every message has a transactionId, so retries store it once. */
  async push(messages: NewMessage<In> | readonly NewMessage<In>[]): Promise<PushResult[]> {
    const items = await this.#items(asArray(messages), this.#settings.partition);
    return items.length === 0 ? [] : this.#push(items);
  }

  /** Pushes through a buffer, shared by all who name this queue; the options of the first of them hold. */
  buffer(options: BufferOptions = {}): BufferedQueue<In> {
    const buffer = this.#core.buffer(this.#name(), options, (items) => this.#push(items));
    return new BufferedQueue(
      buffer,
      (messages, partition) => this.#items(messages, partition),
      this.#settings.partition,
    );
  }

  /** Takes messages, under a lease unless `autoAck`; ack them with `queen.ack`. */
  async pop(options: ConsumeOptions = {}): Promise<Message<Out>[]> {
    const { messages } = await read(this.#core, popRequest(this.#settings), this.#schema, options);
    return [...messages];
  }

  /**
   * Calls the handler with messages until the limit is reached, nothing comes for `idleMillis`, or it is
   * stopped. Await it to wait for that end.
   */
  consume(
    handler: (unit: Unit, context: HandlerContext) => unknown,
    options: ConsumeOptions = {},
  ): Consumption<Unit> {
    const settings = this.#settings;
    const pop = popRequest({ ...settings, autoAck: false });
    const unitOf = (messages: readonly Message<Out>[]): Unit =>
      (this.#isEach ? messages[0] : messages) as Unit;
    return new Consumption<Unit>(
      ({ onSuccess, onError }: Callbacks<Unit>) =>
        new Consumer<Out>(this.#core, {
          pop,
          schema: this.#schema,
          concurrency: settings.concurrency,
          autoAck: settings.autoAck ?? true,
          renewSeconds: settings.renewSeconds,
          limit: settings.limit,
          idleMillis: settings.idleMillis,
          split: (messages) => (this.#isEach ? messages.map((message) => [message]) : [messages]),
          handle: (messages, context) => handler(unitOf(messages), context),
          onSuccess: (messages, result) => onSuccess(unitOf(messages), result),
          onError: onError && ((error, messages) => onError(error, unitOf(messages))),
          signal: options.signal,
        }),
    );
  }

  /**
   * The messages, one after the other. The next step of the loop finishes a message; leaving the loop gives the
   * present one and the rest back.
   */
  messages(options: MessagesOptions = {}): AsyncGenerator<LeasedMessage<Out>, void, void> {
    const { signal, ...said } = options;
    const settings: QueueSettings = { ...this.#settings, ...said, autoAck: false };
    const { renewSeconds, limit, idleMillis } = settings;
    return iterateMessages(this.#core, {
      pop: popRequest(settings),
      schema: this.#schema,
      renewSeconds,
      limit,
      idleMillis,
      signal,
    });
  }

  /** The dead letters of the queue; of one group, if it is named. */
  dlq(group: string | undefined = this.#settings.group): DeadLetters {
    const { partition } = this.#settings;
    return new DeadLetters(this.#core.transport, {
      queue: this.#name(),
      ...(group === undefined ? {} : { consumerGroup: group }),
      ...(partition === undefined ? {} : { partition }),
    });
  }

  #name(): string {
    const { queue } = this.#settings;
    if (queue === undefined) throw new TypeError("Name the queue: queen.queue(name).");
    return queue;
  }

  async #items(messages: readonly NewMessage<In>[], partition: string | undefined): Promise<PushItem[]> {
    const queue = this.#name();
    const items: PushItem[] = [];
    for (const message of messages) {
      const result = this.#schema && (await validate(this.#schema, message.data));
      if (result?.issues)
        throw new InvalidPayloadError(items.length, result.issues, describeIssues(result.issues));
      items.push(pushItem(queue, partition, message));
    }
    return items;
  }

  async #push(items: readonly PushItem[]): Promise<PushResult[]> {
    const span = await this.#core.telemetry.push(this.#name(), items.length);
    const { traceparent } = span;
    try {
      const traced = traceparent === undefined ? items : items.map((item) => ({ traceparent, ...item }));
      const headers = traceparent === undefined ? undefined : { traceparent };
      const results = await span.run(() => this.#core.pusher.push(traced, headers));
      span.end();
      return results;
    } catch (error) {
      span.end(error);
      throw error;
    }
  }
}

function asArray<T>(one: T | readonly T[]): readonly T[] {
  return Array.isArray(one) ? (one as readonly T[]) : [one as T];
}
