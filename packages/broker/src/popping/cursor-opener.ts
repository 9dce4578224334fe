/** Makes groups' cursors on lanes they meet for the first time, many in one call. */
import { isRolledBack } from "../postgres/errors.ts";
import type { Session } from "../postgres/session.ts";
import { OPEN_CURSOR, openCursors } from "../postgres/statements.ts";
import type { GroupLane } from "./group-lane.ts";

/** What became of a cursor that was to be opened. */
export type CursorFound = "open" | "no partition" | "no group" | "busy";

interface Opening {
  readonly groupLane: GroupLane;
  readonly resolve: (found: CursorFound) => void;
  readonly reject: (error: Error) => void;
}

const FOUND: Readonly<Record<number, CursorFound>> = {
  [OPEN_CURSOR.open]: "open",
  [OPEN_CURSOR.noPartition]: "no partition",
  [OPEN_CURSOR.noGroup]: "no group",
};
const OPENED_AT_ONCE_MAX = 1_000;

export class CursorOpener {
  readonly #use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  readonly #promises = new Map<GroupLane, Promise<CursorFound>>();
  #openings: Opening[] = [];
  #isOpening = false;

  constructor(use: <T>(work: (session: Session) => Promise<T>) => Promise<T>) {
    this.#use = use;
  }

  /** Who asks for a cursor that is being opened gets the same answer. */
  open(groupLane: GroupLane): Promise<CursorFound> {
    let promise = this.#promises.get(groupLane);
    if (!promise) {
      promise = new Promise<CursorFound>((resolve, reject) => {
        this.#openings.push({ groupLane, resolve, reject });
      }).finally(() => this.#promises.delete(groupLane));
      this.#promises.set(groupLane, promise);
    }
    if (!this.#isOpening) {
      this.#isOpening = true;
      setImmediate(() => void this.#openAll());
    }
    return promise;
  }

  async #openAll(): Promise<void> {
    while (this.#openings.length > 0) {
      await this.#openTogether(this.#openings.splice(0, OPENED_AT_ONCE_MAX));
    }
    this.#isOpening = false;
  }

  /** Where somebody's transaction holds one of them, the others are opened in smaller and smaller parts. */
  async #openTogether(batch: readonly Opening[]): Promise<void> {
    try {
      const rows = await this.#use((session) =>
        session.run(openCursors, [
          batch.map(({ groupLane }) => groupLane.lane.id),
          batch.map(({ groupLane }) => groupLane.group.id ?? 0),
        ]),
      );
      for (const row of rows) batch[row.cursor]!.resolve(FOUND[row.status] ?? "no partition");
    } catch (error) {
      if (!isRolledBack(error)) for (const opening of batch) opening.reject(error as Error);
      else if (batch.length === 1) batch[0]!.resolve("busy");
      else {
        const half = batch.length >> 1;
        await this.#openTogether(batch.slice(0, half));
        await this.#openTogether(batch.slice(half));
      }
    }
  }
}
