/**
 * The keys in the log that count for messages on the disk: from where the dedup window began when they began to wait.
 * A drain comes back to a lane many times, so its keys are read once, and then only those that were added since.
 */
import type { Lane } from "../lanes/lane.ts";
import { DedupWindow } from "../operations/dedup-window.ts";
import type { Session } from "../postgres/session.ts";
import { spooledKeys } from "../postgres/statements.ts";

/** Messages of a lane that wait on the disk. */
export interface WaitingLane {
  readonly lane: Lane;
  /** When the oldest of them was spooled, milliseconds since 1970. */
  readonly sinceMs: number;
  /** An append with an unknown outcome may have stored some of them, from this offset on; -1: none. */
  readonly doubtFrom: number;
}

interface Held {
  readonly sinceMs: number;
  readonly keys: DedupWindow;
  fromOffset: number;
}

// Nothing is dropped: what counts is decided by the database.
const UNLIMITED = { windowUs: Infinity, messagesMin: Infinity, messagesMax: Infinity };

export class LogKeys {
  readonly #clock: () => number;
  readonly #held = new Map<number, Held>();

  /** `clock`: milliseconds since 1970. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** Reads what is not known yet. */
  async read(session: Session, waiting: readonly WaitingLane[]): Promise<void> {
    const held = waiting.map((each) => this.#heldFor(each));
    const nowMs = this.#clock();
    const rows = await session.run(spooledKeys, [
      waiting.map(({ lane }) => lane.id),
      waiting.map(({ sinceMs }) => Math.max(0, Math.ceil(nowMs - sinceMs))),
      waiting.map(({ doubtFrom }) => doubtFrom),
      held.map(({ keys }) => keys.completeTo),
    ]);
    for (const { lane, fromOffset, nextOffset, keys } of rows) {
      const into = held[lane]!;
      into.fromOffset = Math.min(into.fromOffset, fromOffset);
      into.keys.addSegment(keys, 0);
      into.keys.completeTo = nextOffset;
    }
    for (const [index, { lane }] of waiting.entries()) this.#held.set(lane.id, held[index]!);
  }

  /** Whether the log may have a message with this key; "no" is certain. */
  maybeHas(lane: Lane, keyLow: number): boolean {
    return this.#held.get(lane.id)!.keys.maybeHas(keyLow);
  }

  /** The lowest offset that counts. */
  fromOffset(lane: Lane): number {
    return this.#held.get(lane.id)!.fromOffset;
  }

  /** Nothing is left on the disk. */
  forget(): void {
    this.#held.clear();
  }

  /** What is held, unless older messages count for these. */
  #heldFor({ lane, sinceMs, doubtFrom }: WaitingLane): Held {
    const held = this.#held.get(lane.id);
    const isEnough = held && held.sinceMs <= sinceMs && (doubtFrom < 0 || doubtFrom >= held.fromOffset);
    return isEnough ? held : { sinceMs, keys: new DedupWindow(UNLIMITED, 0), fromOffset: Infinity };
  }
}
