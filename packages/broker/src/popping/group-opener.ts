/** Finds groups in the database, where a group's first pop records it with its subscription. */
import type { Directory } from "../lanes/directory.ts";
import { isRolledBack } from "../postgres/errors.ts";
import type { Session } from "../postgres/session.ts";
import { openGroup } from "../postgres/statements.ts";
import type { Group } from "./group.ts";
import type { PopRequest } from "./pop.ts";

export interface GroupOpenerOptions {
  readonly directory: Directory;
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
}

export class GroupOpener {
  readonly #options: GroupOpenerOptions;
  readonly #forget: (group: Group) => void;

  /** `forget`: the group is of another queue than was known. */
  constructor(options: GroupOpenerOptions, forget: (group: Group) => void) {
    this.#options = options;
    this.#forget = forget;
  }

  /** `request`: of the pop that wants it, if it is one. */
  open(group: Group, request: PopRequest | undefined): Promise<void> {
    group.opening ??= (async () => {
      const { mode, from } = request?.subscription ?? { mode: "all", from: null };
      const [row] = await this.#options
        .use((session) => session.run(openGroup, [group.queueName, group.name, mode, from]))
        .catch((error: unknown) => {
          // Somebody's transaction is making the group: until that ends, there is nothing to deliver. Where this
          // pop says how the group begins, nobody else can record it.
          if (!isRolledBack(error) || mode !== "all") throw error;
          group.openFailed = true;
          return [];
        });
      if (row?.queueId == null || row.groupId === null) return;
      const queue = await this.#options.directory.queueById(row.queueId);
      if (!queue) return;
      if (group.queue !== queue) this.#forget(group);
      group.id = row.groupId;
      group.queue = queue;
      queue.hasReaders = true;
    })().finally(() => {
      group.opening = undefined;
    });
    return group.opening;
  }
}
