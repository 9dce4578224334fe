/**
 * Acks as they are sent. Messages of one lease that are completed side by side go as one range: by the ids of the first and
 * the last, which say where in the lane they are. The acks of a whole batch are then as long as one.
 */
import type { Ack } from "./data-plane.ts";

/** An acknowledgment as the broker reads it, which stands for so many acks. */
export interface SentAck {
  readonly acks: number;
  readonly json: object;
}

// A message's id: its lane, and its offset in it. Brokers whose ids are others get acks one by one.
const PLACED = /^[0-9a-f]{8}-[0-9a-f]{4}-8001-8000-[0-9a-f]{12}$/;
const OFFSET_AT = "00000000-0000-8001-8000-".length;

/** In the order of the acks. */
export function sentAcks(acks: readonly Ack[]): SentAck[] {
  const sent: SentAck[] = [];
  for (let at = 0; at < acks.length; ) {
    const end = rangeEnd(acks, at);
    sent.push({ acks: end - at, json: end - at > 1 ? range(acks[at]!, acks[end - 1]!) : one(acks[at]!) });
    at = end;
  }
  return sent;
}

const one = ({ message, status, error }: Ack): object => ({
  transactionId: message.transactionId,
  partitionId: message.partitionId,
  status,
  ...(message.leaseId === "" ? {} : { leaseId: message.leaseId }),
  ...(error === undefined ? {} : { error }),
});

const range = (first: Ack, last: Ack): object => ({
  firstId: first.message.id,
  lastId: last.message.id,
  leaseId: first.message.leaseId,
  status: first.status,
});

/** The place behind the last ack that is of one range with the one at `at`. */
function rangeEnd(acks: readonly Ack[], at: number): number {
  const { message, status } = acks[at]!;
  let end = at + 1;
  if (status !== "completed" || message.leaseId === "" || !PLACED.test(message.id)) return end;
  const lane = message.id.slice(0, OFFSET_AT);
  for (let offset = offsetOf(message.id) + 1; end < acks.length; end++, offset++) {
    const { message: next, status } = acks[end]!;
    if (status !== "completed" || next.leaseId !== message.leaseId) break;
    if (!next.id.startsWith(lane) || offsetOf(next.id) !== offset) break;
  }
  return end;
}

const offsetOf = (id: string): number => Number.parseInt(id.slice(OFFSET_AT), 16);
