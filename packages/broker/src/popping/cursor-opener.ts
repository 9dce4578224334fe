/** Makes groups' cursors on lanes they meet for the first time, many in one call. */
import { isRolledBack } from "../postgres/errors.ts";
import { Gathering } from "../postgres/gathering.ts";
import type { Session } from "../postgres/session.ts";
import { OPEN_CURSOR, openCursors } from "../postgres/statements.ts";
import type { GroupLane } from "./group-lane.ts";

/** What became of a cursor that was to be opened. */
export type CursorFound = "open" | "no partition" | "no group" | "busy";

const FOUND: Readonly<Record<number, CursorFound>> = {
  [OPEN_CURSOR.open]: "open",
  [OPEN_CURSOR.noPartition]: "no partition",
  [OPEN_CURSOR.noGroup]: "no group",
};
const OPENED_AT_ONCE_MAX = 1_000;

export class CursorOpener {
  readonly #openings: Gathering<GroupLane, CursorFound>;
  readonly #promises = new Map<GroupLane, Promise<CursorFound>>();

  constructor(use: <T>(work: (session: Session) => Promise<T>) => Promise<T>) {
    this.#openings = new Gathering({
      call: async (asked) => {
        const lanes = asked.map(({ question }) => question.lane.id);
        const groups = asked.map(({ question }) => question.group.id ?? 0);
        const rows = await use((session) => session.run(openCursors, [lanes, groups]));
        for (const row of rows) asked[row.cursor]!.resolve(FOUND[row.status] ?? "no partition");
      },
      atOnce: () => OPENED_AT_ONCE_MAX,
      isOnes: isRolledBack, // somebody's transaction holds it
    });
  }

  /** Who asks for a cursor that is being opened gets the same answer. */
  open(groupLane: GroupLane): Promise<CursorFound> {
    let promise = this.#promises.get(groupLane);
    if (!promise) {
      promise = this.#openings
        .ask(groupLane)
        .catch((error): CursorFound => {
          if (isRolledBack(error)) return "busy";
          throw error;
        })
        .finally(() => this.#promises.delete(groupLane));
      this.#promises.set(groupLane, promise);
    }
    return promise;
  }
}
