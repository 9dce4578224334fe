/**
 * A lane batch is what goes into one lane with one append: the first of the messages that wait there, those
 * with a transactionId that the lane has already taken out.
 */
import type { Lane, PendingMessage } from "../lanes/lane.ts";
import { makeSegments, type NewSegment } from "../operations/segment.ts";

export interface LaneBatch {
  readonly lane: Lane;
  readonly messages: readonly PendingMessage[];
  /** Messages that repeat one of `messages`: the index of that one. */
  readonly twins: ReadonlyMap<PendingMessage, number>;
  readonly segments: readonly NewSegment[];
  /** All of its messages are encrypted. */
  readonly isSealed: boolean;
}

const MESSAGES_MAX = 2_000;
const BYTES_MAX = 8 * 1024 * 1024;

/** Whether the lane may hold this transactionId already, so that the database must be asked. */
export function isSuspect(lane: Lane, message: PendingMessage): boolean {
  const window = lane.window!;
  return !message.inWindow && message.freshTo < window.completeTo && window.maybeHas(message.keyLow);
}

/**
 * Makes a batch of the first of these messages, up to the first one that must be asked about. Their keys go
 * into the lane's window at once; if the append fails, the window is dropped.
 */
export function makeLaneBatch(lane: Lane, waiting: readonly PendingMessage[]): LaneBatch {
  const window = lane.window!;
  const messages: PendingMessage[] = [];
  const twins = new Map<PendingMessage, number>();
  const messagesMax = lane.alone > 0 ? 1 : MESSAGES_MAX;
  let bytes = 0;
  for (const message of waiting) {
    if (messages.length >= messagesMax || (bytes > 0 && bytes + message.fragment.length > BYTES_MAX)) break;
    if (!message.inWindow && window.maybeHas(message.keyLow)) {
      const twin = messages.findIndex(
        (other) => other.keyLow === message.keyLow && other.transactionId === message.transactionId,
      );
      if (twin >= 0) {
        twins.set(message, twin);
        continue;
      }
      const collides = messages.some((other) => other.keyLow === message.keyLow);
      if (!collides && isSuspect(lane, message)) break;
    }
    if (!message.inWindow) {
      window.add(message.keyLow);
      message.inWindow = true;
    }
    bytes += message.fragment.length;
    messages.push(message);
  }
  const isSealed = messages.every((message) => message.isSealed);
  return { lane, messages, twins, segments: makeSegments(messages), isSealed };
}

/** Takes the next batch out of what waits in a lane. */
export function takeLaneBatch(lane: Lane): LaneBatch {
  const batch = makeLaneBatch(lane, lane.pending);
  const taken = batch.messages.length + batch.twins.size;
  for (let index = 0; index < taken; index++) lane.pendingBytes -= lane.pending[index]!.fragment.length;
  lane.inFlight = lane.pending;
  lane.pending = taken === lane.pending.length ? [] : lane.pending.slice(taken);
  if (lane.pending.length > 0) lane.inFlight = lane.inFlight.slice(0, taken);
  return batch;
}

/** Puts a batch that was not stored back to the head of its lane, in the order it came. */
export function giveBackLaneBatch(batch: LaneBatch): void {
  const { lane } = batch;
  const twinsAfter = new Map<number, PendingMessage[]>();
  for (const [message, index] of batch.twins)
    twinsAfter.set(index, [...(twinsAfter.get(index) ?? []), message]);
  const messages = batch.messages
    .flatMap((message, index) => [message, ...(twinsAfter.get(index) ?? [])])
    .filter((message) => !message.isStranded);
  lane.pending = [...messages, ...lane.pending];
  for (const message of messages) lane.pendingBytes += message.fragment.length;
}
