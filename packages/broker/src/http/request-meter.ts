/** Tells the meter what the data plane answered, in the meter's terms: by queue, with the ages of messages. */
import { parsePartitionId } from "@queen/protocol";
import type { Lane } from "../lanes/lane.ts";
import type { Queue } from "../lanes/queue.ts";
import type { DeliveredTogether, Meter } from "../metering/meter.ts";
import type { AckOrRange } from "../operations/ack-body.ts";
import { countWithin } from "../operations/offset-ranges.ts";
import { unixMilliseconds } from "../operations/timestamp.ts";
import type { Taken } from "../popping/pop.ts";
import type { PushRequest } from "../pushing/pusher.ts";
import type { AckResult } from "../settling/settler.ts";
import type { TransactionResult } from "../transacting/transactor.ts";

export interface RequestMeterOptions {
  readonly meter: Meter;
  /** What is known of a queue and a lane without asking the database. */
  readonly queue: (name: string) => Queue | undefined;
  readonly lane: (id: number) => Lane | undefined;
  /** The database's clock in milliseconds, as far as it is known. */
  readonly clockMs: () => number;
}

export class RequestMeter {
  readonly #options: RequestMeterOptions;

  constructor(options: RequestMeterOptions) {
    this.#options = options;
  }

  pushed({ lanes }: PushRequest): void {
    this.#options.meter.pushed(lanes);
  }

  popped(taken: readonly Taken[], messages: number, autoAck: boolean): void {
    const { meter, clockMs } = this.#options;
    const { queue } = taken[0]!.groupLane.lane;
    meter.popped(queue, messages, taken.flatMap(deliveredTogether), clockMs(), autoAck);
  }

  poppedNothing(queues: readonly string[]): void {
    this.#options.meter.poppedNothing(queues.length === 1 ? this.#options.queue(queues[0]!) : undefined);
  }

  acked(items: readonly AckOrRange[], results: readonly AckResult[]): void {
    this.#options.meter.acked(items, results);
  }

  /** `results` undefined: it was refused or failed. */
  transacted(results: readonly TransactionResult[] | undefined): void {
    const { meter, queue, lane } = this.#options;
    meter.transactionAnswered();
    const acks = (results ?? []).flatMap((result) => (result.type === "ack" ? [result] : []));
    meter.transacted(
      (results ?? []).map((result) => (result.type === "push" ? queue(result.item.queue) : undefined)),
      acks.map(({ ack }) => ack),
      acks.map(({ ack, dlq }) => ({ lane: lane(parsePartitionId(ack.partitionId)!), success: true, dlq })),
    );
  }
}

/** By segments, whose messages are of one moment. */
function deliveredTogether({ from, to, acked, segments }: Taken): DeliveredTogether[] {
  return segments.flatMap(({ firstOffset, count, createdAtUs }) => {
    const start = Math.max(from, firstOffset);
    const end = Math.min(to, firstOffset + count);
    const delivered = end - start - countWithin(acked, start, end);
    return delivered > 0 ? [{ createdAtMs: unixMilliseconds(createdAtUs), count: delivered }] : [];
  });
}
