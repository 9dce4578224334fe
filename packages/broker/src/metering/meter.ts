/**
 * The meter counts what a worker does, by queue and in all. A request costs it a few additions, however many
 * messages it brings. Figures only grow; who wants those of a minute takes the difference.
 *
 * A queue is forgotten when it was idle for a while or deleted, once its figures were written.
 */
import { AGE_BOUNDS, Distribution } from "./distribution.ts";
import { QUEUE_COUNTERS, type QueueCounts, WORKER_COUNTERS, type WorkerCounts, zeros } from "./figures.ts";

/** A queue as the meter needs it. */
export interface MeteredQueue {
  readonly id: number;
  readonly name: string;
}

interface InQueue {
  readonly queue: MeteredQueue;
}

/** What an ack came to: finished, to be tried again without blame, or failed: reported so, or refused. */
export interface AckedMessage {
  readonly lane: InQueue | undefined;
  readonly success: boolean;
  readonly dlq: boolean;
}

/** What an ack said, and of how many messages; status undefined: one that does not exist. */
export interface AckedAs {
  readonly messages: number;
  readonly status: "completed" | "failed" | "dlq" | "retry" | undefined;
}

/** Messages of one moment that a pop delivered. */
export interface DeliveredTogether {
  readonly createdAtMs: number;
  readonly count: number;
}

export class QueueMeter {
  readonly id: number;
  readonly name: string;
  readonly counts: QueueCounts = zeros(QUEUE_COUNTERS);
  /** The oldest message that was delivered since somebody set this back. */
  ageMsMax = 0;
  isGone = false;

  constructor({ id, name }: MeteredQueue) {
    this.id = id;
    this.name = name;
  }
}

export class Meter {
  readonly worker: WorkerCounts = zeros(WORKER_COUNTERS);
  readonly ages = new Distribution(AGE_BOUNDS);
  ageMsMax = 0;
  readonly #queues = new Map<number, QueueMeter>();

  get queues(): ReadonlyMap<number, QueueMeter> {
    return this.#queues;
  }

  /** A push was answered; messages are counted where they are stored. */
  pushed(lanes: readonly (InQueue | undefined)[]): void {
    this.worker.push_requests++;
    for (const queue of queuesOf(lanes)) this.#of(queue).counts.push_requests++;
  }

  stored(queue: MeteredQueue, messages: number): void {
    this.worker.push_messages += messages;
    this.#of(queue).counts.push_messages += messages;
  }

  /** `finished`: at delivery, without an ack. */
  popped(
    queue: MeteredQueue,
    messages: number,
    delivered: readonly DeliveredTogether[],
    nowMs: number,
    finished: boolean,
  ): void {
    const meter = this.#of(queue);
    for (const counts of [this.worker, meter.counts]) {
      counts.pop_requests++;
      counts.pop_messages += messages;
      if (finished) counts.ack_success += messages;
    }
    for (const { createdAtMs, count } of delivered) {
      const ageMs = Math.max(0, nowMs - createdAtMs);
      this.ages.add(ageMs / 1000, count);
      if (ageMs > meter.ageMsMax) meter.ageMsMax = ageMs;
      if (ageMs > this.ageMsMax) this.ageMsMax = ageMs;
      for (const counts of [this.worker, meter.counts]) {
        counts.age_ms_sum += ageMs * count;
        counts.age_count += count;
      }
    }
  }

  /** A pop was answered without messages; a queue that does not exist is not counted by itself. */
  poppedNothing(queue: MeteredQueue | undefined): void {
    for (const counts of queue ? [this.worker, this.#of(queue).counts] : [this.worker]) {
      counts.pop_requests++;
      counts.pop_empty++;
    }
  }

  /** A request with these acks was answered, each with its result. */
  acked(acks: readonly AckedAs[], results: readonly AckedMessage[]): void {
    this.worker.ack_requests++;
    for (const { messages } of acks) this.worker.ack_messages += messages;
    for (const queue of this.#settled(acks, results)) this.#of(queue).counts.ack_requests++;
  }

  /** A transaction committed; its pushes are counted where they are stored. */
  transacted(
    pushedTo: readonly (MeteredQueue | undefined)[],
    acks: readonly AckedAs[],
    results: readonly AckedMessage[],
  ): void {
    const touched = new Set<MeteredQueue>(this.#settled(acks, results));
    for (const queue of pushedTo) if (queue) touched.add(queue);
    for (const queue of touched) this.#of(queue).counts.transactions++;
  }

  /** A transaction was answered, whatever it came to. */
  transactionAnswered(): void {
    this.worker.transactions++;
  }

  /** A message went to the dead letters without an ack: the leases on it ran out. */
  buried(queue: MeteredQueue): void {
    this.worker.dead_lettered++;
    this.#of(queue).counts.dead_lettered++;
  }

  databaseFailed(): void {
    this.worker.database_errors++;
  }

  /** The queue was deleted. */
  queueGone(id: number): void {
    const meter = this.#queues.get(id);
    if (meter) meter.isGone = true;
  }

  forget(id: number): void {
    this.#queues.delete(id);
  }

  /** Counts each run of acks of one queue at once; returns the queues. */
  #settled(acks: readonly AckedAs[], results: readonly AckedMessage[]): MeteredQueue[] {
    const queues: MeteredQueue[] = [];
    let queue: MeteredQueue | undefined;
    let [success, failed, dead] = [0, 0, 0];
    const count = (): void => {
      for (const counts of queue ? [this.worker, this.#of(queue).counts] : [this.worker]) {
        counts.ack_success += success;
        counts.ack_failed += failed;
        counts.dead_lettered += dead;
      }
      [success, failed, dead] = [0, 0, 0];
    };
    for (let index = 0; index < results.length; index++) {
      const { lane, success: isDone, dlq } = results[index]!;
      if (lane?.queue !== queue) {
        count();
        queue = lane?.queue;
        if (queue && !queues.includes(queue)) queues.push(queue);
      }
      const { status, messages } = acks[index]!;
      if (!isDone || status === "failed" || status === "dlq") failed += messages;
      else if (status === "completed") success += messages;
      if (dlq) dead++;
    }
    count();
    return queues;
  }

  #of(queue: MeteredQueue): QueueMeter {
    let meter = this.#queues.get(queue.id);
    if (!meter) {
      meter = new QueueMeter(queue);
      this.#queues.set(queue.id, meter);
    }
    return meter;
  }
}

/** Each queue once. Messages of one request are mostly of one queue. */
function queuesOf(lanes: readonly (InQueue | undefined)[]): MeteredQueue[] {
  let last: MeteredQueue | undefined;
  const queues: MeteredQueue[] = [];
  for (const lane of lanes) {
    const queue = lane?.queue;
    if (!queue || queue === last) continue;
    last = queue;
    if (!queues.includes(queue)) queues.push(queue);
  }
  return queues;
}
