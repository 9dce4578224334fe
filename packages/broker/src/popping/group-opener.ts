/** Finds groups in the database, many in one call; a group's first pop records it there with its subscription. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Directory } from "../lanes/directory.ts";
import { isDeterministic, isRolledBack } from "../postgres/errors.ts";
import { Gathering } from "../postgres/gathering.ts";
import type { Session } from "../postgres/session.ts";
import { type GroupRow, openGroups } from "../postgres/statements.ts";
import type { Group } from "./group.ts";
import type { PopRequest } from "./pop.ts";

export interface GroupOpenerOptions {
  readonly directory: Directory;
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  /** A group pops here that was not known before. */
  readonly beganToRead: () => void;
}

interface Wanted {
  readonly queue: string;
  readonly group: string;
  readonly mode: string;
  readonly from: string | null;
}

const OPENED_AT_ONCE_MAX = 500;
const RECORD_ATTEMPTS_MAX = 20;
const RECORD_PAUSE_MS = 100;

export class GroupOpener {
  readonly #options: GroupOpenerOptions;
  readonly #forget: (group: Group) => void;
  readonly #openings: Gathering<Wanted, GroupRow | undefined>;

  /** `forget`: the group is of another queue than was known. */
  constructor(options: GroupOpenerOptions, forget: (group: Group) => void) {
    this.#options = options;
    this.#forget = forget;
    this.#openings = new Gathering({
      call: async (asked) => {
        const values = (["queue", "group", "mode", "from"] as const).map((field) =>
          asked.map(({ question }) => question[field]),
        );
        const rows = await options.use((session) => session.run(openGroups, values));
        const found = new Map(rows.map((row) => [row.opening, row]));
        for (const [index, { resolve }] of asked.entries()) resolve(found.get(index));
      },
      atOnce: () => OPENED_AT_ONCE_MAX,
      isOnes: (error) => isRolledBack(error) || isDeterministic(error),
    });
  }

  /** `request`: of the pop that wants it, if it is one. */
  open(group: Group, request: PopRequest | undefined): Promise<void> {
    group.opening ??= (async () => {
      const { mode, from } = request?.subscription ?? { mode: "all", from: null };
      const row = await this.#findOrRecord(group, mode, from);
      if (row?.queueId == null || row.groupId === null) return;
      const queue = await this.#options.directory.queueById(row.queueId);
      if (!queue) return;
      if (group.queue !== queue) this.#forget(group);
      group.id = row.groupId;
      group.queue = queue;
      queue.hasReaders = true;
      this.#options.beganToRead();
    })().finally(() => {
      group.opening = undefined;
    });
    return group.opening;
  }

  /**
   * Undefined: somebody's transaction is making the group, or deleting its queue. Until that ends, there is nothing to
   * deliver. But where this pop says how the group begins, nobody else can record it: it keeps trying.
   */
  async #findOrRecord(group: Group, mode: string, from: string | null): Promise<GroupRow | undefined> {
    for (let attempt = 1; ; attempt++) {
      try {
        const row = await this.#openings.ask({ queue: group.queueName, group: group.name, mode, from });
        // None: the queue was deleted while its lock was waited for. The next attempt makes it anew.
        if (row || mode === "all" || attempt === RECORD_ATTEMPTS_MAX) return row;
      } catch (error) {
        if (!isRolledBack(error)) throw error;
        if (mode === "all") {
          group.openFailed = true;
          return undefined;
        }
        if (attempt === RECORD_ATTEMPTS_MAX) throw error;
        await sleep(RECORD_PAUSE_MS);
      }
    }
  }
}
