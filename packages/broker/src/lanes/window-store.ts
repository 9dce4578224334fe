/**
 * The window store loads the dedup windows of lanes and bounds their memory: the lane used longest ago loses
 * its window first and has it read again when it is next appended to. Loading and verifying go to the
 * database for many lanes in one call.
 */
import { BrokerError } from "@queen/protocol";
import { LinkedList } from "../linked-list.ts";
import { DedupWindow } from "../operations/dedup-window.ts";
import { encodeString } from "../operations/json-scanner.ts";
import { transactionIdJson } from "../operations/segment.ts";
import { type Asked, Gathering } from "../postgres/gathering.ts";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import type { Lane, PendingMessage } from "./lane.ts";

type UseSession = <T>(work: (session: Session) => Promise<T>) => Promise<T>;

type Loading = Asked<Lane, void>;

const LOADED_AT_ONCE_MAX = 200;
// So many keys are read in less than half a second, also where each has a segment of its own: who waits for the first
// lanes does not wait for all, and the database is not taken for away.
const KEYS_AT_ONCE_MAX = 100_000;
// A window's size is counted when it is loaded and then again after this many more keys.
const COUNT_EVERY = 256;

export class WindowStore {
  readonly #use: UseSession;
  readonly #bytesMax: number;
  readonly #lanes = new LinkedList<Lane>(); // in the order of their last use
  readonly #loadings = new Gathering<Lane, void>({
    call: (loadings) => this.#loadAll(loadings),
    atOnce: loadedAtOnce,
  });
  #bytes = 0;

  constructor(use: UseSession, bytesMax: number) {
    this.#use = use;
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Gives the lane a complete window. A lane that was empty when it was met needs no look the first time: what others
   * append to it meanwhile is compared by the append itself.
   */
  load(lane: Lane): Promise<void> {
    if (lane.nextOffset === 0 && lane.isUnsuspected) {
      lane.window = new DedupWindow(lane.queue.options.dedup, 0);
      this.#count(lane);
      return Promise.resolve();
    }
    return this.#loadings.ask(lane);
  }

  async #loadAll(loadings: readonly Loading[]): Promise<void> {
    const rows = await this.#use((session) =>
      session.run(statements.readKeys, [loadings.map(({ question }) => question.id)]),
    );
    const windows = loadings.map(() => undefined as DedupWindow | undefined);
    for (const row of rows) {
      if (row.nextOffset === null) continue;
      const lane = loadings[row.lane]!.question;
      windows[row.lane] ??= new DedupWindow(lane.queue.options.dedup, row.nextOffset);
      if (row.keys !== null) windows[row.lane]!.addSegment(row.keys, row.createdAtUs!);
    }
    loadings.forEach(({ question: lane, resolve }, index) => {
      const window = windows[index];
      if (window) {
        lane.window = window;
        lane.nextOffset = Math.max(lane.nextOffset, window.completeTo);
        this.#count(lane);
      } else lane.gone = true;
      resolve();
    });
  }

  /** The lane's window grew. */
  grew(lane: Lane, before: number, after: number): void {
    const isCounted = Math.floor(before / COUNT_EVERY) === Math.floor(after / COUNT_EVERY);
    if (isCounted && lane.windowLink) this.#lanes.moveToEnd(lane.windowLink);
    else this.#count(lane);
  }

  #count(lane: Lane): void {
    if (!lane.window || lane.gone) return;
    this.#uncount(lane);
    lane.windowBytes = lane.window.bytes;
    lane.windowLink = this.#lanes.push(lane);
    this.#bytes += lane.windowBytes;
    while (this.#bytes > this.#bytesMax) {
      const oldest = this.#lanes.first!;
      if (oldest === lane) break;
      this.forget(oldest);
    }
  }

  /** The window is not true any more, or may not be: the next one is read from the database. */
  drop(lane: Lane): void {
    lane.window = undefined;
    lane.isUnsuspected = false;
    this.#uncount(lane);
  }

  /** The window takes no more memory, unless somebody is about to use it. */
  forget(lane: Lane): void {
    if (lane.turn === undefined) lane.window = undefined;
    this.#uncount(lane);
  }

  #uncount(lane: Lane): void {
    if (!lane.windowLink) return;
    this.#lanes.remove(lane.windowLink);
    lane.windowLink = undefined;
    this.#bytes -= lane.windowBytes;
  }

  /**
   * Looks in the log for messages whose key may be in the lane's window already. Where the transactionId is
   * really there, the offset is returned; the others are marked as fresh.
   */
  async verify(lane: Lane, suspects: readonly PendingMessage[]): Promise<Map<PendingMessage, number>> {
    const window = lane.window;
    if (!window) throw new BrokerError("INTERNAL", "a message was verified without a window");
    const from = Math.max(0, window.completeTo - lane.queue.options.dedup.messagesMax - 4096);
    const rows = await this.#use((session) =>
      session.run(statements.findMessages, [
        suspects.map(() => lane.id),
        suspects.map((message) => {
          const key = Buffer.allocUnsafe(8);
          key.writeUInt32BE(message.keyHigh, 0);
          key.writeUInt32BE(message.keyLow, 4);
          return key;
        }),
        suspects.map(() => from),
      ]),
    );
    const found = new Map<PendingMessage, number>();
    for (const row of rows) {
      const message = suspects[row.search]!;
      if (transactionIdJson(row.fragment) !== encodeString(message.transactionId)) continue;
      found.set(message, Math.min(row.atOffset, found.get(message) ?? Infinity));
    }
    for (const message of suspects) if (!found.has(message)) message.freshTo = window.completeTo;
    return found;
  }
}

/** How many of those that wait are read in the next call. */
function loadedAtOnce(waiting: readonly Loading[]): number {
  let keys = 0;
  const enough = waiting.findIndex(({ question: lane }, index) => {
    keys += Math.min(lane.nextOffset, lane.queue.options.dedup.messagesMax);
    return index === LOADED_AT_ONCE_MAX || (index > 0 && keys > KEYS_AT_ONCE_MAX);
  });
  return enough === -1 ? waiting.length : enough;
}
