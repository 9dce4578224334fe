/** A transaction: acks and pushes in one commit, all or nothing. */

import { type Ack, type PushItem, pushItem, type TransactionResult } from "./data-plane.ts";
import { InvalidPayloadError, QueenError } from "./errors.ts";
import type { AckStatus, Message, NewMessage } from "./message.ts";
import type { QueenCore } from "./queen-core.ts";
import { describeIssues, type InputOf, type StandardSchema, validate } from "./standard-schema.ts";

interface Push {
  readonly item: PushItem;
  readonly schema: StandardSchema | undefined;
}

export class Transaction {
  readonly #core: QueenCore;
  readonly #acks: (Ack & { readonly message: Message; readonly group: string })[] = [];
  readonly #pushes: Push[] = [];
  #result: Promise<TransactionResult> | undefined;

  constructor(core: QueenCore) {
    this.#core = core;
  }

  /** Their leases must still be held when the transaction commits. */
  ack(messages: Message | readonly Message[], status: AckStatus = "completed", error?: string): this {
    for (const message of Array.isArray(messages) ? (messages as readonly Message[]) : [messages as Message])
      this.#acks.push({ message, status, error, group: message.consumerGroup });
    return this;
  }

  queue<T = unknown>(name: string): TransactionQueue<T>;
  queue<S extends StandardSchema>(name: string, schema: S): TransactionQueue<InputOf<S>>;
  queue(name: string, schema?: StandardSchema): TransactionQueue<unknown> {
    return new TransactionQueue((partition, messages) => {
      // With its transactionId, so that a commit which is tried again stores it once.
      for (const message of messages) this.#pushes.push({ item: pushItem(name, partition, message), schema });
      return this;
    });
  }

  /** Rejects with ConflictError if a lease is lost or a message was finished before; then nothing is kept. */
  commit(): Promise<TransactionResult> {
    this.#result ??= this.#commit().catch((error) => {
      this.#result = undefined;
      throw error;
    });
    return this.#result;
  }

  async #commit(): Promise<TransactionResult> {
    for (const [index, { item, schema }] of this.#pushes.entries()) {
      const result = schema && (await validate(schema, item.payload));
      if (result?.issues) throw new InvalidPayloadError(index, result.issues, describeIssues(result.issues));
    }
    const items = this.#pushes.map(({ item }) => item);
    if (items.length === 0 && this.#acks.length === 0)
      throw new QueenError(
        "EMPTY_TRANSACTION",
        "The transaction is empty: ack or push something before commit().",
      );
    const span = await this.#core.telemetry.push(
      items[0]?.queue ?? this.#acks[0]!.message.queue,
      items.length,
    );
    const { traceparent } = span;
    try {
      const traced = traceparent === undefined ? items : items.map((item) => ({ traceparent, ...item }));
      const result = await span.run(() =>
        this.#core.data.transaction(
          traced,
          this.#acks,
          traceparent === undefined ? {} : { headers: { traceparent } },
        ),
      );
      for (const { message, status } of this.#acks) this.#core.settled.set(message, status);
      span.end();
      return result;
    } catch (error) {
      span.end(error);
      throw error;
    }
  }
}

/** A queue inside a transaction: `push` leads back to the transaction. */
export class TransactionQueue<In> {
  readonly #add: (partition: string | undefined, messages: readonly NewMessage[]) => Transaction;
  readonly #partition: string | undefined;

  constructor(
    add: (partition: string | undefined, messages: readonly NewMessage[]) => Transaction,
    partition?: string,
  ) {
    this.#add = add;
    this.#partition = partition;
  }

  partition(name: string): TransactionQueue<In> {
    return new TransactionQueue(this.#add, name);
  }

  push(messages: NewMessage<In> | readonly NewMessage<In>[]): Transaction {
    return this.#add(this.#partition, Array.isArray(messages) ? messages : [messages as NewMessage<In>]);
  }
}
