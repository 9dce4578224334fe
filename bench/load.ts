/**
 * A session is the generator's side of one run: connections, the requests that producers and consumers make
 * on them, and the count of unexpected answers.
 *
 * Nothing here throws for a bad answer. It is counted, the sender pauses, and the ledger tells in the end
 * whether anything was lost. Every loop ends by time or by count.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Accountant } from "./accounting.ts";
import type { Ledger, Reader } from "./check.ts";
import { type Address, type Answer, HttpConnection } from "./http-connection.ts";
import {
  ackBatchBody,
  ackBody,
  MessageWriter,
  type Padding,
  type PoppedMessage,
  type PopRequest,
  popPath,
  rangeAckBody,
  transactionBody,
} from "./messages.ts";

export const QUEUE = "bench";

export interface Timing {
  readonly warmupSeconds: number;
  readonly seconds: number;
}

/** What a load needs to run: where to send, whom to account, how long, and whom to tell. */
export interface LoadContext {
  readonly session: Session;
  readonly accountant: Accountant;
  readonly timing: Timing;
  readonly addresses: readonly Address[];
  /** The database under the brokers, or of a peer; null for a load that has none. */
  readonly databaseUrl: string | null;
  readonly padding: Padding;
  readonly enterPhase: (phase: Phase) => void;
}

export type Phase = "preloading" | "warming up" | "parking" | "measuring" | "draining" | "checking";

export interface Push {
  readonly queue: string;
  readonly ledger: Ledger;
  readonly producer: number;
  readonly count: number;
  /** The partition of the request's message at this index. */
  readonly partition: (index: number) => number;
}

export interface PushOutcome {
  readonly queued: number;
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
}

export interface PopOutcome {
  readonly messages: readonly PoppedMessage[];
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
}

const PAUSE_AFTER_ERROR_MS = 20;
const PAUSE_AFTER_EMPTY_POP_MS = 5;
// Answers to pushes of ten and more are parsed one in 16; the reading back finds what the others hide.
const PARSED_ALWAYS_BELOW = 10;
const PARSED_ONE_IN = 16;
const CONNECTS_AT_ONCE = 128;
const ERROR_LENGTH_MAX = 160;

// Reading everything back, or draining what is left: no longer than this, and no longer without a message.
export const DRAIN_SECONDS_MAX = 180;
const IDLE_SECONDS_MAX = 30;

export class Session {
  readonly errors: Record<string, number> = {};
  readonly #addresses: readonly Address[];
  readonly #writer: MessageWriter;
  readonly #connections: HttpConnection[] = [];
  #pushesAnswered = 0;

  constructor(addresses: readonly Address[], padding: Padding, payloadBytes?: number) {
    this.#addresses = addresses;
    this.#writer = new MessageWriter(padding, payloadBytes);
  }

  /** Opens connections, in turn to each of the brokers. */
  async connect(count: number): Promise<HttpConnection[]> {
    const connections: HttpConnection[] = [];
    for (let first = 0; first < count; first += CONNECTS_AT_ONCE) {
      const length = Math.min(CONNECTS_AT_ONCE, count - first);
      const chunk = Array.from({ length }, (_, index) => {
        const address = this.#addresses[(first + index) % this.#addresses.length];
        return new HttpConnection(address!);
      });
      this.#connections.push(...chunk);
      connections.push(...chunk);
      await Promise.all(chunk.map((connection) => connection.open()));
    }
    return connections;
  }

  close(): void {
    for (const connection of this.#connections.splice(0)) connection.destroy();
  }

  async push(connection: HttpConnection, push: Push): Promise<PushOutcome> {
    const { ledger, count } = push;
    const sentAtMs = performance.now();
    const first = ledger.sentCount;
    let body = '{"items":[';
    for (let index = 0; index < count; index += 1) {
      const partition = push.partition(index);
      const number = ledger.send(partition);
      if (index > 0) body += ",";
      body += this.#writer.item(push.queue, partition, push.producer, number, sentAtMs);
    }
    const answer = await this.#send(connection, "push", "/api/v1/push", `${body}]}`);
    const answeredAtMs = performance.now();
    if (!answer) return { queued: 0, sentAtMs, answeredAtMs };
    this.#pushesAnswered += 1;
    const parsed = count < PARSED_ALWAYS_BELOW || this.#pushesAnswered % PARSED_ONE_IN === 0;
    const queued = parsed ? this.#confirmEach(answer, ledger, first, count) : count;
    if (!parsed) for (let index = 0; index < count; index += 1) ledger.confirm(first + index);
    return { queued, sentAtMs, answeredAtMs };
  }

  /** Undefined if the pop failed; the failure is counted. */
  async pop(connection: HttpConnection, path: string): Promise<PopOutcome | undefined> {
    const sentAtMs = performance.now();
    const answer = await this.#send(connection, "pop", path);
    const answeredAtMs = performance.now();
    if (!answer) return undefined;
    if (answer.status === 204) return { messages: [], sentAtMs, answeredAtMs };
    const parsed = this.#parse<{ messages?: PoppedMessage[] }>("pop", answer);
    if (parsed && !parsed.messages) this.#count("pop: the answer has no messages");
    return { messages: this.#writer.read(parsed?.messages ?? []), sentAtMs, answeredAtMs };
  }

  /** The number of messages that the server took as acknowledged. */
  async ackBatch(
    connection: HttpConnection,
    ledger: Ledger,
    messages: readonly PoppedMessage[],
    group?: string,
  ): Promise<number> {
    const answer = await this.#send(connection, "ack", "/api/v1/ack/batch", ackBatchBody(messages, group));
    return this.#countAcked(answer, ledger, messages.length);
  }

  /** Of all messages of one lane that a pop brought: they count whole or not at all. */
  async ackRange(
    connection: HttpConnection,
    ledger: Ledger,
    messages: readonly PoppedMessage[],
  ): Promise<number> {
    const answer = await this.#send(connection, "ack", "/api/v1/ack/batch", rangeAckBody(messages));
    const [result] = (answer && this.#parse<{ success: boolean; messages: number }[]>("ack", answer)) ?? [];
    const acked = result?.success ? result.messages : 0;
    if (acked !== messages.length) this.#count(`ack: ${acked} of ${messages.length} messages`);
    ledger.acksRefused += messages.length - acked;
    return acked;
  }

  async ack(connection: HttpConnection, ledger: Ledger, message: PoppedMessage): Promise<number> {
    const answer = await this.#send(connection, "ack", "/api/v1/ack", ackBody(message));
    return this.#countAcked(answer, ledger, 1);
  }

  /** Acknowledges the message and pushes one to the same partition of the target queue, both or neither. */
  async transact(
    connection: HttpConnection,
    source: { ledger: Ledger; message: PoppedMessage },
    target: { ledger: Ledger; queue: string; partition: number },
  ): Promise<boolean> {
    const number = target.ledger.send(target.partition);
    const item = this.#writer.item(target.queue, target.partition, 0, number, performance.now());
    const body = transactionBody(source.message, item);
    const answer = await this.#send(connection, "transaction", "/api/v1/transaction", body);
    const result = answer && this.#parse<{ success?: boolean; error?: string }>("transaction", answer);
    if (result?.success === true) {
      target.ledger.confirm(number);
      return true;
    }
    if (result) this.#count(`transaction: ${result.error}`);
    source.ledger.acksRefused += 1;
    return false;
  }

  /** Sends, and answers undefined after a broken connection or a status that is not 2xx. */
  async #send(
    connection: HttpConnection,
    operation: string,
    path: string,
    body?: string,
  ): Promise<Answer | undefined> {
    try {
      const answer = await connection.request(body === undefined ? "GET" : "POST", path, body);
      if (answer.status >= 200 && answer.status <= 299) return answer;
      this.#count(`${operation}: status ${answer.status} ${answer.body.toString("utf8", 0, 100)}`);
    } catch (error) {
      if (!this.#connections.includes(connection)) return undefined; // the run is over
      this.#count(`${operation}: ${error instanceof Error ? error.message : String(error)}`);
    }
    await sleep(PAUSE_AFTER_ERROR_MS);
    return undefined;
  }

  #confirmEach(answer: Answer, ledger: Ledger, first: number, count: number): number {
    const results = this.#parse<{ status: string }[]>("push", answer) ?? [];
    if (results.length !== count) this.#count(`push: ${results.length} results for ${count} messages`);
    let queued = 0;
    for (let index = 0; index < Math.min(count, results.length); index += 1) {
      if (results[index]!.status === "queued") {
        ledger.confirm(first + index);
        queued += 1;
      } else {
        this.#count(`push: item status ${results[index]!.status}`);
      }
    }
    return queued;
  }

  #countAcked(answer: Answer | undefined, ledger: Ledger, count: number): number {
    const results = (answer && this.#parse<{ success: boolean; error: string }[]>("ack", answer)) ?? [];
    let acked = 0;
    for (const result of results) {
      if (result.success) acked += 1;
      else this.#count(`ack: ${result.error}`);
    }
    ledger.acksRefused += count - acked;
    return acked;
  }

  #parse<T>(operation: string, answer: Answer): T | undefined {
    try {
      return JSON.parse(answer.body.toString()) as T;
    } catch {
      this.#count(`${operation}: the answer is not JSON`);
      return undefined;
    }
  }

  #count(error: string): void {
    const key = error.slice(0, ERROR_LENGTH_MAX);
    this.errors[key] = (this.errors[key] ?? 0) + 1;
  }
}

export interface Consumption {
  readonly pop: PopRequest;
  /** Acks what a pop brought by the first and the last of it, not message by message. */
  readonly acksRanges?: boolean;
  readonly ledger: Ledger;
  readonly reader: Reader;
  /** Asked after every empty pop, and before every pop. */
  readonly isOver: (wasEmpty: boolean) => boolean;
  readonly onReceived?: (outcome: PopOutcome) => void;
  /** With auto-ack this follows each answer at once; otherwise the answer to its acknowledgement. */
  readonly onDone?: (count: number) => void;
}

/** One consumer: pops, notes what came, acknowledges it, until it is told that all is over. */
export async function consume(
  session: Session,
  connection: HttpConnection,
  work: Consumption,
): Promise<void> {
  const { pop, reader, ledger } = work;
  const path = popPath(pop);
  while (!work.isOver(false)) {
    const outcome = await session.pop(connection, path);
    if (!outcome || outcome.messages.length === 0) {
      if (work.isOver(true)) return;
      if (pop.waitMs === undefined) await sleep(PAUSE_AFTER_EMPTY_POP_MS);
      continue;
    }
    const { messages, answeredAtMs } = outcome;
    reader.receive(messages, pop.autoAck ? outcome.sentAtMs : Infinity, answeredAtMs);
    work.onReceived?.(outcome);
    let done = messages.length;
    if (work.acksRanges) done = await session.ackRange(connection, ledger, messages);
    else if (!pop.autoAck) done = await session.ackBatch(connection, ledger, messages, pop.group);
    work.onDone?.(done);
  }
}

/** Watches a drain: it is over when nothing is missing and nothing more comes, or when it takes too long. */
export class DrainWatch {
  readonly #startedAtMs = performance.now();
  #lastReceivedAtMs = performance.now();

  touch(): void {
    this.#lastReceivedAtMs = performance.now();
  }

  get isTooLong(): boolean {
    const nowMs = performance.now();
    return (
      nowMs - this.#startedAtMs > DRAIN_SECONDS_MAX * 1000 ||
      nowMs - this.#lastReceivedAtMs > IDLE_SECONDS_MAX * 1000
    );
  }
}

/** Reads everything that is left in the queue, with auto-ack, as fast as a few consumers can. */
export async function readBack(
  session: Session,
  queue: string,
  ledger: Ledger,
  reader: Reader,
  group?: string,
): Promise<void> {
  const connections = await session.connect(8);
  const watch = new DrainWatch();
  const pop: PopRequest = {
    queue,
    batch: 1_000,
    claims: 64,
    autoAck: true,
    ...(group === undefined ? {} : { group }),
  };
  const isOver = (wasEmpty: boolean): boolean => (wasEmpty && reader.complete) || watch.isTooLong;
  const onReceived = (): void => watch.touch();
  await Promise.all(
    connections.map((connection) =>
      consume(session, connection, { pop, ledger, reader, isOver, onReceived }),
    ),
  );
}

/**
 * Fills partitions with the same number of messages each. One connection owns a partition, so that its messages
 * have one order, and visits its partitions in turn, so that they fill side by side.
 */
export async function preload(
  session: Session,
  ledger: Ledger,
  messagesPerPartition: number,
  batch = 100,
): Promise<void> {
  const connections = await session.connect(Math.min(16, ledger.partitions));
  const fill = async (connection: HttpConnection, owner: number): Promise<void> => {
    for (let filled = 0; filled < messagesPerPartition; filled += batch) {
      const count = Math.min(batch, messagesPerPartition - filled);
      for (let partition = owner; partition < ledger.partitions; partition += connections.length) {
        await preloadRequest(session, connection, {
          queue: QUEUE,
          ledger,
          count,
          partition: () => partition,
        });
      }
    }
  };
  await Promise.all(connections.map(fill));
}

/** Creates every partition by pushing one message to each, many partitions in one request. */
export async function preloadOneEach(session: Session, ledger: Ledger, queue = QUEUE): Promise<void> {
  const connections = await session.connect(4);
  const partitionsPerRequest = 1_000;
  let next = 0;
  const fill = async (connection: HttpConnection): Promise<void> => {
    while (next < ledger.partitions) {
      const first = next;
      const count = Math.min(partitionsPerRequest, ledger.partitions - first);
      next += count;
      await preloadRequest(session, connection, {
        queue,
        ledger,
        count,
        partition: (index) => first + index,
      });
    }
  };
  await Promise.all(connections.map(fill));
}

async function preloadRequest(
  session: Session,
  connection: HttpConnection,
  push: Omit<Push, "producer">,
): Promise<void> {
  const outcome = await session.push(connection, { ...push, producer: 0 });
  if (outcome.queued < push.count) throw new Error(`preloading failed: ${JSON.stringify(session.errors)}`);
}
