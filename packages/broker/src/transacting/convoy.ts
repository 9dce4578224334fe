/** A convoy is plain transactions that stay together until their call. */
import type { PendingMessage } from "../lanes/lane.ts";
import type { LaneBatch } from "../pushing/lane-batch.ts";
import type { Delivered } from "../settling/delivered.ts";
import type { OperationSpan } from "../tracing.ts";

/** Messages of a lease that are finished: from an offset to before another. */
export interface FinishedRange {
  readonly delivered: Delivered;
  readonly from: number;
  readonly to: number;
}

/** What became of a transaction's batches and finished ranges, in their order. Undefined: nothing was done. */
export type PlainResult =
  | {
      readonly appended: readonly { readonly atOffset: number; readonly createdAtUs: number }[];
      readonly settled: readonly { readonly committed: number; readonly released: boolean }[];
    }
  | undefined;

export interface Member {
  readonly batches: readonly LaneBatch[];
  readonly finished: readonly FinishedRange[];
  readonly span: OperationSpan | undefined;
  readonly decided: (result: PlainResult) => void;
  readonly failed: (error: Error) => void;
}

const MEMBERS_MAX = 200;
const WEIGHT_MAX = 1_000;

export class Convoy {
  readonly members: Member[] = [];
  weight = 0;
  readonly #departed: () => void;

  constructor(departed: () => void) {
    this.#departed = departed;
  }

  hasRoomFor(messages: readonly PendingMessage[]): boolean {
    return this.members.length < MEMBERS_MAX && this.weight + weightOf(messages) <= WEIGHT_MAX;
  }

  add(member: Member): void {
    this.members.push(member);
    this.weight += member.finished.length;
    for (const { messages } of member.batches) this.weight += weightOf(messages);
  }

  /** Nobody joins it any more. */
  depart(): void {
    this.#departed();
  }
}

function weightOf(messages: readonly PendingMessage[]): number {
  let weight = 0;
  for (const { fragment } of messages) weight += 1 + fragment.length / 1024;
  return weight;
}
