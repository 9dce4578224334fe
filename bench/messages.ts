/**
 * Messages as text: the bodies of requests, built by joining strings, because a generator that builds objects
 * and serialises them would be the limit of what it measures.
 *
 * A payload is about 100 bytes of JSON: `{"t":<time sent>,"c":<producer>,"s":<number>,"p":"<padding>"}`.
 */
import { randomBytes } from "node:crypto";
import type { ReceivedMessage } from "./check.ts";

/** What a pop answers for each message, as far as the generator reads it. */
export interface PoppedMessage extends ReceivedMessage {
  readonly id: string;
  readonly transactionId: string;
  readonly partitionId: string;
  readonly leaseId: string;
}

/** Padding that compresses well, as in the figures of comparison, or not at all. */
export type Padding = "plain" | "random";

export const PAYLOAD_BYTES = 100;
const PADDING_POOL_BYTES = 65_536;
// Below this a payload has no room for time, producer and number. It is the number alone, ten digits long, of a
// producer that is not told: the load must give each producer a partition of its own.
const PAYLOAD_BYTES_TELLING = 64;
const NUMBER_BASE = 1_000_000_000;

/** A payload as an object, for clients that serialise it themselves. */
export interface Data {
  readonly t: number;
  readonly c: number;
  readonly s: number;
  readonly p: string;
}

export class MessageWriter {
  readonly #payloadBytes: number;
  readonly #pool: string;
  readonly #offsetMax: number;

  constructor(padding: Padding, payloadBytes = PAYLOAD_BYTES) {
    const poolBytes = Math.max(PADDING_POOL_BYTES, 2 * payloadBytes);
    this.#payloadBytes = payloadBytes;
    this.#pool =
      padding === "random"
        ? randomBytes(Math.ceil((poolBytes * 3) / 4)).toString("base64url")
        : "x".repeat(payloadBytes);
    this.#offsetMax = this.#pool.length - payloadBytes;
  }

  item(queue: string, partition: number, producer: number, number: number, sentAtMs: number): string {
    const payload = this.#payload(producer, number, sentAtMs);
    return `{"queue":"${queue}","partition":"p${partition}","transactionId":"${uuidV7()}","payload":${payload}}`;
  }

  data(producer: number, number: number, sentAtMs: number): Data {
    const t = Number(sentAtMs.toFixed(3));
    return {
      t,
      c: producer,
      s: number,
      p: this.#padding(`{"t":${t},"c":${producer},"s":${number},"p":"`.length),
    };
  }

  /** Messages as a load reads them, whichever form their payloads have. */
  read(messages: readonly PoppedMessage[]): readonly PoppedMessage[] {
    if (this.#payloadBytes >= PAYLOAD_BYTES_TELLING) return messages;
    return messages.map((message) => ({
      ...message,
      data: { s: Number(message.data) - NUMBER_BASE, c: 0, t: 0 },
    }));
  }

  #payload(producer: number, number: number, sentAtMs: number): string {
    if (this.#payloadBytes < PAYLOAD_BYTES_TELLING) return String(NUMBER_BASE + number);
    const head = `{"t":${sentAtMs.toFixed(3)},"c":${producer},"s":${number},"p":"`;
    return `${head}${this.#padding(head.length)}"}`;
  }

  #padding(headLength: number): string {
    const offset = this.#offsetMax === 0 ? 0 : (Math.random() * this.#offsetMax) | 0;
    return this.#pool.slice(offset, offset + this.#payloadBytes - 2 - headLength);
  }
}

const randomTail = randomBytes(5).toString("hex");
let uuidCounter = 0;
let uuidMs = 0;
let uuidHead = "";

/** A UUIDv7: the time in milliseconds, then a counter over the random bits, then a tail random per process. */
export function uuidV7(): string {
  const ms = Date.now();
  if (ms !== uuidMs) {
    const hex = ms.toString(16).padStart(12, "0");
    uuidMs = ms;
    uuidHead = `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
  }
  const counter = uuidCounter.toString(16).padStart(8, "0");
  uuidCounter = (uuidCounter + 1) % 0x1_0000_0000;
  return `${uuidHead}${counter.slice(0, 3)}-8${counter.slice(3, 6)}-${counter.slice(6)}${randomTail}`;
}

export interface PopRequest {
  readonly queue: string;
  readonly batch: number;
  readonly partition?: number;
  readonly autoAck?: boolean;
  readonly group?: string;
  /** Wait this long for a message; without it an empty pop answers at once. */
  readonly waitMs?: number;
  /** How many partitions one wildcard pop may claim. */
  readonly claims?: number;
  /** A group that is new starts behind what is there. */
  readonly isFromNow?: boolean;
}

export function popPath(pop: PopRequest): string {
  const partition = pop.partition === undefined ? "" : `/partition/p${pop.partition}`;
  const wait = pop.waitMs === undefined ? "&wait=false" : `&wait=true&timeout=${pop.waitMs}`;
  const autoAck = pop.autoAck ? "&autoAck=true" : "";
  const group = pop.group === undefined ? "" : `&consumerGroup=${pop.group}`;
  const claims = pop.claims === undefined ? "" : `&partitions=${pop.claims}`;
  const from = pop.isFromNow ? "&subscriptionMode=new" : "";
  return `/api/v1/pop/queue/${pop.queue}${partition}?batch=${pop.batch}${wait}${autoAck}${group}${claims}${from}`;
}

function acknowledgement(message: PoppedMessage): string {
  return `"transactionId":"${message.transactionId}","partitionId":"${message.partitionId}","leaseId":"${message.leaseId}","status":"completed"`;
}

export const ackBody = (message: PoppedMessage): string => `{${acknowledgement(message)}}`;

export function ackBatchBody(messages: readonly PoppedMessage[], group: string | undefined): string {
  let body = group === undefined ? '{"acknowledgments":[' : `{"consumerGroup":"${group}","acknowledgments":[`;
  for (let index = 0; index < messages.length; index += 1) {
    body += `${index === 0 ? "{" : ",{"}${acknowledgement(messages[index]!)}}`;
  }
  return `${body}]}`;
}

/** Of messages that stand side by side in one lane. */
export function rangeAckBody(messages: readonly PoppedMessage[]): string {
  const { id, leaseId } = messages[0]!;
  return `{"acknowledgments":[{"firstId":"${id}","lastId":"${messages.at(-1)!.id}","leaseId":"${leaseId}"}]}`;
}

export const transactionBody = (message: PoppedMessage, item: string): string =>
  `{"operations":[{"type":"ack",${acknowledgement(message)}},{"type":"push","items":[${item}]}]}`;
