/**
 * What was delivered under leases, as long as it is not settled: with it, an ack's transactionId becomes an
 * offset without asking the database. A cache, bounded in bytes: what is forgotten is read again.
 */
import type { Lane } from "../lanes/lane.ts";
import { type Link, LinkedList } from "../linked-list.ts";
import type { OffsetSpan } from "../operations/offset-ranges.ts";
import {
  fragmentEnd,
  hasTransactionId,
  type Segment,
  traceparentOf,
  transactionIdJson,
} from "../operations/segment.ts";
import type { OperationSpan } from "../tracing.ts";

export type AckStatus = "completed" | "failed" | "dlq" | "retry";

export interface AckOutcome {
  readonly success: boolean;
  readonly error: string | null;
  readonly released: boolean;
  readonly dlq: boolean;
}

/** The ack of one message, or of several side by side that are completed, on its way to the database. */
export interface PendingAck extends OffsetSpan {
  readonly status: AckStatus;
  readonly error: string;
  readonly span?: OperationSpan | undefined;
  readonly decided: (outcome: AckOutcome) => void;
  readonly failed: (error: Error) => void;
}

export class Delivered {
  readonly token: number;
  readonly lane: Lane;
  readonly groupId: number;
  readonly groupName: string;
  readonly from: number;
  readonly to: number;
  readonly segments: readonly Segment[];
  /** This worker answered the pop. */
  readonly servedHere: boolean;
  pending: PendingAck[] = [];
  /** The lease is to be ended whatever was acked. */
  release = false;
  settling = false;
  /** Where it stands among all that are remembered. */
  link: Link<Delivered> | undefined = undefined;
  #next: number;
  #offsets: Map<string, number> | undefined;

  constructor(fields: {
    token: number;
    lane: Lane;
    groupId: number;
    groupName: string;
    from: number;
    to: number;
    segments: readonly Segment[];
    servedHere: boolean;
  }) {
    this.token = fields.token;
    this.lane = fields.lane;
    this.groupId = fields.groupId;
    this.groupName = fields.groupName;
    this.from = fields.from;
    this.to = fields.to;
    this.segments = fields.segments;
    this.servedHere = fields.servedHere;
    this.#next = fields.from;
  }

  get bytes(): number {
    let bytes = 300;
    for (const segment of this.segments) bytes += segment.body.length;
    return bytes;
  }

  /** Where a transactionId, as JSON, is in the leased range; undefined: it is not. Acks mostly come in order. */
  offsetOf(json: string): number | undefined {
    if (this.#next < this.to && this.#isAt(this.#next, json)) return this.#next++;
    this.#offsets ??= this.#readOffsets();
    const offset = this.#offsets.get(json);
    if (offset !== undefined) this.#next = offset + 1;
    return offset;
  }

  /** What the messages at these offsets carry. */
  traceparentsIn({ from, to }: OffsetSpan): (string | undefined)[] {
    return this.segments.flatMap(({ firstOffset, count, ends, body }) => {
      const start = Math.max(0, from - firstOffset);
      const end = Math.min(count, to - firstOffset);
      return Array.from({ length: Math.max(0, end - start) }, (_, at) =>
        traceparentOf(body.slice(fragmentEnd(ends, start + at - 1), fragmentEnd(ends, start + at))),
      );
    });
  }

  /** The offsets of the leased range that hold no message any more. */
  goneOffsets(): number[] {
    const there = new Set<number>();
    for (const segment of this.segments) {
      for (let index = 0; index < segment.count; index++) {
        if (fragmentEnd(segment.ends, index) > fragmentEnd(segment.ends, index - 1))
          there.add(segment.firstOffset + index);
      }
    }
    const gone: number[] = [];
    for (let offset = this.from; offset < this.to; offset++) if (!there.has(offset)) gone.push(offset);
    return gone;
  }

  #isAt(offset: number, json: string): boolean {
    for (const segment of this.segments) {
      const index = offset - segment.firstOffset;
      if (index < 0 || index >= segment.count) continue;
      const start = fragmentEnd(segment.ends, index - 1);
      return fragmentEnd(segment.ends, index) > start && hasTransactionId(segment.body, start, json);
    }
    return false;
  }

  #readOffsets(): Map<string, number> {
    const offsets = new Map<string, number>();
    for (const segment of this.segments) {
      for (let index = 0; index < segment.count; index++) {
        const offset = segment.firstOffset + index;
        if (offset < this.from || offset >= this.to) continue;
        const start = fragmentEnd(segment.ends, index - 1);
        const json = transactionIdJson(segment.body.slice(start, fragmentEnd(segment.ends, index)));
        if (!offsets.has(json)) offsets.set(json, offset);
      }
    }
    return offsets;
  }
}

export class DeliveredLeases {
  readonly #bytesMax: number;
  readonly #byToken = new Map<number, Delivered[]>();
  readonly #all = new LinkedList<Delivered>(); // the oldest first
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#byToken.size;
  }

  add(delivered: Delivered): void {
    const known = this.#byToken.get(delivered.token);
    if (known) known.push(delivered);
    else this.#byToken.set(delivered.token, [delivered]);
    delivered.link = this.#all.push(delivered);
    this.#bytes += delivered.bytes;
    while (this.#bytes > this.#bytesMax) {
      const oldest = this.#all.first!;
      if (oldest.token === delivered.token) break;
      this.remove(oldest);
    }
  }

  find(token: number, partition: number): Delivered | undefined {
    return this.#byToken.get(token)?.find((delivered) => delivered.lane.id === partition);
  }

  remove(delivered: Delivered): void {
    const known = this.#byToken.get(delivered.token);
    const at = known?.indexOf(delivered) ?? -1;
    if (!known || at < 0) return;
    this.#all.remove(delivered.link!);
    delivered.link = undefined;
    this.#bytes -= delivered.bytes;
    known.splice(at, 1); // in place: the map's former tables still hold the array for a while
    if (known.length === 0) this.#byToken.delete(delivered.token);
  }
}
