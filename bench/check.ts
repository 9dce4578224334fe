/**
 * A ledger holds what was sent; a reader compares with it what one consumer group received.
 *
 * Every message carries its number (dense, from 0), its producer and its partition. A producer has one request
 * in flight, so within one partition its numbers rise: that is the order that a reader must see. Anomalies are
 *
 *   missing     confirmed by the server and never received
 *   duplicated  received more than once
 *   reordered   received after a later message of the same producer and partition
 *   misplaced   received from another partition than it was sent to
 *   unknown     never sent
 *
 * A message whose push got no answer may have been stored or not: it may arrive, once and in order.
 */
export interface ReceivedMessage {
  readonly partition: string;
  /** `s` is the message's number, `c` its producer, `t` the time of sending in the generator's clock. */
  readonly data: { readonly s: number; readonly c: number; readonly t: number };
}

export interface Verdict {
  readonly correct: boolean;
  readonly sent: number;
  readonly confirmed: number;
  readonly received: number;
  readonly missing: number;
  readonly duplicated: number;
  readonly reordered: number;
  readonly misplaced: number;
  readonly unknown: number;
  /** Messages whose push got no answer and that arrived all the same: no anomaly. */
  readonly unconfirmedReceived: number;
  /** Acknowledgements that the server refused. */
  readonly acksRefused: number;
  /** The first few anomalies, as sentences. */
  readonly examples: readonly string[];
}

// Bare HTTP made 1.3 million a second, more than 16 million in one run; the arrays of so many as this take 700 MB.
const MESSAGES_MAX = 2 ** 27;
const EXAMPLES_MAX = 5;

export class Ledger {
  readonly partitions: number;
  readonly producers: number;
  /** Whether the order within a partition is promised; where it is not, nothing is reordered. */
  readonly isOrdered: boolean;
  readonly #readers: Reader[] = [];
  /** Partition + 1 by message number; 0 where nothing was sent. */
  #sentTo = new Int32Array(65_536);
  #confirmed = new Uint8Array(65_536);
  #sentCount = 0;
  #confirmedCount = 0;
  acksRefused = 0;

  constructor(size: { partitions: number; producers: number; isOrdered?: boolean }) {
    this.partitions = size.partitions;
    this.producers = size.producers;
    this.isOrdered = size.isOrdered ?? true;
  }

  get sentCount(): number {
    return this.#sentCount;
  }

  get confirmedCount(): number {
    return this.#confirmedCount;
  }

  /** Takes the next number for a message that is about to be sent to the partition. */
  send(partition: number): number {
    const number = this.#sentCount;
    if (number >= this.#sentTo.length) this.#grow();
    this.#sentTo[number] = partition + 1;
    this.#sentCount += 1;
    return number;
  }

  confirm(number: number): void {
    if (this.#confirmed[number] === 1) return;
    this.#confirmed[number] = 1;
    this.#confirmedCount += 1;
  }

  isConfirmed(number: number): boolean {
    return this.#confirmed[number] === 1;
  }

  /** The partition that the message was sent to, or undefined for a number that was never given out. */
  partitionOf(number: number): number | undefined {
    return number >= 0 && number < this.#sentCount ? this.#sentTo[number]! - 1 : undefined;
  }

  /** A reader for one more consumer group, which must receive every confirmed message. */
  reader(): Reader {
    const reader = new Reader(this);
    this.#readers.push(reader);
    return reader;
  }

  verdict(): Verdict {
    const sum = (count: (reader: Reader) => number): number =>
      this.#readers.reduce((total, reader) => total + count(reader), 0);
    let missing = 0;
    let unconfirmedReceived = 0;
    const examples = this.#readers.flatMap((reader) => reader.examples);
    for (const reader of this.#readers) {
      for (let number = 0; number < this.#sentCount; number += 1) {
        const received = reader.timesReceived(number) > 0;
        const confirmed = this.#confirmed[number] === 1;
        if (received && !confirmed) unconfirmedReceived += 1;
        if (received || !confirmed) continue;
        missing += 1;
        if (missing <= EXAMPLES_MAX) {
          examples.push(`message ${number} of partition p${this.partitionOf(number)} is missing`);
        }
      }
    }
    const duplicated = sum((reader) => reader.duplicated);
    const reordered = sum((reader) => reader.reordered);
    const misplaced = sum((reader) => reader.misplaced);
    const unknown = sum((reader) => reader.unknown);
    return {
      correct: missing + duplicated + reordered + misplaced + unknown + this.acksRefused === 0,
      sent: this.#sentCount,
      confirmed: this.#confirmedCount,
      received: sum((reader) => reader.received),
      missing,
      duplicated,
      reordered,
      misplaced,
      unknown,
      unconfirmedReceived,
      acksRefused: this.acksRefused,
      examples: examples.slice(0, EXAMPLES_MAX),
    };
  }

  #grow(): void {
    const length = this.#sentTo.length * 2;
    if (length > MESSAGES_MAX)
      throw new Error(`more than ${MESSAGES_MAX} messages in one run: give it fewer --seconds`);
    const sentTo = new Int32Array(length);
    const confirmed = new Uint8Array(length);
    sentTo.set(this.#sentTo);
    confirmed.set(this.#confirmed);
    this.#sentTo = sentTo;
    this.#confirmed = confirmed;
  }
}

export class Reader {
  readonly examples: string[] = [];
  received = 0;
  distinct = 0;
  duplicated = 0;
  reordered = 0;
  misplaced = 0;
  unknown = 0;
  readonly #ledger: Ledger;
  #times = new Uint8Array(65_536);
  /** By lane (producer and partition): the highest number so far, when and in which answer it came. */
  readonly #highest: Int32Array;
  readonly #highestAtMs: Float64Array;
  readonly #highestInAnswer: Int32Array;
  #answers = 0;

  constructor(ledger: Ledger) {
    const lanes = ledger.partitions * ledger.producers;
    this.#ledger = ledger;
    this.#highest = new Int32Array(lanes).fill(-1);
    this.#highestAtMs = new Float64Array(lanes);
    this.#highestInAnswer = new Int32Array(lanes);
  }

  /** Whether every confirmed message is there, as far as counting tells. */
  get complete(): boolean {
    return this.distinct >= this.#ledger.confirmedCount;
  }

  timesReceived(number: number): number {
    return this.#times[number] ?? 0;
  }

  /**
   * Notes the messages of one answer.
   *
   * Auto-acked answers to two pops that overlapped may reach the generator in either order. So an earlier
   * message is reordered only if the later one had arrived before this pop was sent, or came in the same answer.
   * A lease excludes the overlap: then every earlier arrival counts, and `popSentAtMs` is Infinity.
   */
  receive(messages: readonly ReceivedMessage[], popSentAtMs: number, answeredAtMs: number): void {
    this.#answers += 1;
    for (const message of messages) {
      const number = message.data.s;
      const partition = this.#ledger.partitionOf(number);
      this.received += 1;
      if (partition === undefined) {
        this.unknown += 1;
        this.#note(`message ${number} was never sent`);
        continue;
      }
      if (message.partition !== `p${partition}`) {
        this.misplaced += 1;
        this.#note(`message ${number} was sent to p${partition} and came from ${message.partition}`);
      }
      if (this.#countReceived(number) > 1) {
        this.duplicated += 1;
        this.#note(`message ${number} of partition p${partition} came again`);
        continue;
      }
      this.distinct += 1;
      if (!this.#ledger.isOrdered) continue;
      const lane = message.data.c * this.#ledger.partitions + partition;
      const highest = this.#highest[lane]!;
      if (number > highest) {
        this.#highest[lane] = number;
        this.#highestAtMs[lane] = answeredAtMs;
        this.#highestInAnswer[lane] = this.#answers;
      } else if (this.#highestInAnswer[lane] === this.#answers || this.#highestAtMs[lane]! < popSentAtMs) {
        this.reordered += 1;
        this.#note(`message ${number} of partition p${partition} came after message ${highest}`);
      }
    }
  }

  #countReceived(number: number): number {
    if (number >= this.#times.length) {
      const times = new Uint8Array(Math.max(this.#times.length * 2, number + 1));
      times.set(this.#times);
      this.#times = times;
    }
    const count = Math.min(this.#times[number]! + 1, 255);
    this.#times[number] = count;
    return count;
  }

  #note(example: string): void {
    if (this.examples.length < EXAMPLES_MAX) this.examples.push(example);
  }
}

/** One verdict over several ledgers, as for a source and a target queue. */
export function mergeVerdicts(verdicts: readonly Verdict[]): Verdict {
  const sum = (count: (verdict: Verdict) => number): number =>
    verdicts.reduce((total, verdict) => total + count(verdict), 0);
  return {
    correct: verdicts.every((verdict) => verdict.correct),
    sent: sum((verdict) => verdict.sent),
    confirmed: sum((verdict) => verdict.confirmed),
    received: sum((verdict) => verdict.received),
    missing: sum((verdict) => verdict.missing),
    duplicated: sum((verdict) => verdict.duplicated),
    reordered: sum((verdict) => verdict.reordered),
    misplaced: sum((verdict) => verdict.misplaced),
    unknown: sum((verdict) => verdict.unknown),
    unconfirmedReceived: sum((verdict) => verdict.unconfirmedReceived),
    acksRefused: sum((verdict) => verdict.acksRefused),
    examples: verdicts.flatMap((verdict) => verdict.examples),
  };
}
