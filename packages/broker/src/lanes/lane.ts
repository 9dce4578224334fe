/**
 * A lane is a partition as this worker knows it: its names, how far it reaches, the messages waiting to be
 * appended, the keys of its recent messages, and recent segments. All of it may be forgotten at any moment;
 * the database knows.
 */
import { messageIdPrefix, partitionId } from "@queen/protocol";
import type { DedupWindow } from "../operations/dedup-window.ts";
import { encodeString } from "../operations/json-scanner.ts";
import type { Segment } from "../operations/segment.ts";
import type { Queue } from "./queue.ts";

/** A message on its way into a lane. */
export interface PendingMessage {
  readonly fragment: string;
  readonly transactionId: string;
  readonly keyHigh: number;
  readonly keyLow: number;
  /** Its key is in the lane's window because this very message put it there. */
  inWindow: boolean;
  /** The database was asked: no message below this offset has its transactionId. */
  freshTo: number;
  /** An append with an unknown outcome may have stored it, at this offset or later. */
  doubtFrom: number;
  /** After this the producer is told to try again. */
  readonly deadlineAtMs: number;
  queued(lane: Lane, offset: number): void;
  duplicate(lane: Lane, offset: number): void;
  failed(error: Error): void;
}

export class Lane {
  readonly id: number;
  readonly queue: Queue;
  readonly name: string;
  readonly nameJson: string;
  readonly messageIdPrefix: string;
  readonly partitionId: string;
  /** At least this many messages were ever appended. */
  nextOffset: number;
  pending: PendingMessage[] = [];
  pendingBytes = 0;
  /** So many messages at its head go one by one: they were refused together, and one of them is to blame. */
  alone = 0;
  /** Somebody appends: the lane's turn is taken. */
  turn: Promise<void> | undefined;
  window: DedupWindow | undefined;
  /** Neighbouring segments, the newest last. */
  cached: Segment[] = [];
  cachedBytes = 0;
  /** The partition was deleted; its name may stand for a new one. */
  gone = false;
  usedAtMs = 0;

  constructor(id: number, queue: Queue, name: string, nextOffset: number) {
    this.id = id;
    this.queue = queue;
    this.name = name;
    this.nameJson = encodeString(name);
    this.messageIdPrefix = messageIdPrefix(id);
    this.partitionId = partitionId(id);
    this.nextOffset = nextOffset;
  }
}
