/**
 * A lane is a partition as this worker knows it: its names, how far it reaches, the messages waiting to be
 * appended, the keys of its recent messages, and recent segments. All of it may be forgotten at any moment;
 * the database knows.
 */
import { messageIdPrefix, partitionId } from "@queen/protocol";
import type { Link } from "../linked-list.ts";
import type { DedupWindow } from "../operations/dedup-window.ts";
import type { Keyring } from "../operations/encryption.ts";
import { compact } from "../operations/flat.ts";
import { encodeString } from "../operations/json-scanner.ts";
import type { Segment, Storable } from "../operations/segment.ts";
import type { OperationSpan } from "../tracing.ts";
import type { Queue } from "./queue.ts";

/** Who is told what became of pushed messages, each known by its index. */
export interface MessageOwner {
  readonly span?: OperationSpan | undefined;
  queued(index: number, lane: Lane, offset: number): void;
  duplicate(index: number, lane: Lane, offset: number): void;
  failed(index: number, error: Error): void;
  /**
   * The database is away, for this reason. The message is not tried any more. If an append with an unknown outcome may
   * have stored it, `doubt` says where.
   */
  stranded(index: number, reason: Error, doubt: Doubt | undefined): void;
}

/** Where a message may be: in this partition, from this offset on. */
export interface Doubt {
  readonly partition: number;
  readonly from: number;
}

/** A message on its way into a lane. */
export class PendingMessage {
  readonly owner: MessageOwner;
  readonly index: number;
  /** As it is stored. */
  fragment: string;
  isSealed = false;
  readonly transactionId: string;
  readonly keyHigh: number;
  readonly keyLow: number;
  /** After this the producer is told to try again. */
  readonly deadlineAtMs: number;
  /** Its key is in the lane's window because this very message put it there. */
  inWindow = false;
  /** The database was asked: no message below this offset has its transactionId. */
  freshTo = -1;
  /** An append with an unknown outcome may have stored it, at this offset or later. */
  doubtFrom = Infinity;
  /** Its owner was told that it is stranded, and hears no more of it. */
  isStranded = false;

  constructor(
    owner: MessageOwner,
    index: number,
    content: Storable & { readonly transactionId: string },
    deadlineAtMs: number,
  ) {
    this.owner = owner;
    this.index = index;
    this.fragment = content.fragment;
    this.transactionId = content.transactionId;
    this.keyHigh = content.keyHigh;
    this.keyLow = content.keyLow;
    this.deadlineAtMs = deadlineAtMs;
  }

  /** Encrypts the payload if its lane's queue wants it. Throws where there is no key. */
  sealFor(lane: Lane, keyring: Keyring): void {
    if (this.isSealed || !lane.queue.options.isEncrypted) return;
    this.fragment = keyring.seal(this.fragment, lane.queue.name);
    this.isSealed = true;
  }

  queued(lane: Lane, offset: number): void {
    if (!this.isStranded) this.owner.queued(this.index, lane, offset);
  }

  duplicate(lane: Lane, offset: number): void {
    if (!this.isStranded) this.owner.duplicate(this.index, lane, offset);
  }

  failed(error: Error): void {
    if (!this.isStranded) this.owner.failed(this.index, error);
  }

  strand(reason: Error, lane?: Lane): void {
    if (this.isStranded) return;
    this.isStranded = true;
    const doubt =
      lane && this.doubtFrom < Infinity ? { partition: lane.id, from: this.doubtFrom } : undefined;
    this.owner.stranded(this.index, reason, doubt);
  }
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
  /** The groups whose cursors were made together with it. */
  madeFor: ReadonlySet<number> | undefined = undefined;
  pending: PendingMessage[] = [];
  pendingBytes = 0;
  /** Those of an append under way. */
  inFlight: readonly PendingMessage[] = [];
  /** So many messages at its head go one by one: they were refused together, and one of them is to blame. */
  alone = 0;
  /** Somebody appends: the lane's turn is taken. */
  turn: Promise<void> | undefined;
  window: DedupWindow | undefined;
  /** As it was counted last. */
  windowBytes = 0;
  /** No window of it was ever dropped: where no message of it is known either, there is none to compare with. */
  isUnsuspected = true;
  /** Neighbouring segments, the newest last. */
  cached: Segment[] = [];
  cachedBytes = 0;
  /** How often segments were found to be written anew. */
  rewrites = 0;
  /** The last append was held up by another writer, or found messages of one. */
  isShared = false;
  /** The partition was deleted, or this object of it forgotten: its name may stand for a new one. */
  gone = false;
  /** Where it stands among the lanes that are known, that have a window, and that have cached segments. */
  link: Link<Lane> | undefined = undefined;
  windowLink: Link<Lane> | undefined = undefined;
  cacheLink: Link<Lane> | undefined = undefined;

  constructor(id: number, queue: Queue, name: string, nextOffset: number) {
    this.id = id;
    this.queue = queue;
    this.name = name;
    this.nameJson = encodeString(name);
    this.messageIdPrefix = compact(messageIdPrefix(id));
    this.partitionId = compact(partitionId(id));
    this.nextOffset = nextOffset;
  }
}
