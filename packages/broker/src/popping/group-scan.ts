/**
 * The scan looks at the lanes of groups in the database, page by page: at a whole queue where nothing is known yet,
 * and slowly, all the time, for work that no hint told of.
 */
import type { Directory } from "../lanes/directory.ts";
import { Gathering } from "../postgres/gathering.ts";
import type { Session } from "../postgres/session.ts";
import { scanReady } from "../postgres/statements.ts";
import type { Group } from "./group.ts";
import type { GroupOpener } from "./group-opener.ts";
import type { Groups } from "./groups.ts";
import type { ReadyLanes } from "./ready-lanes.ts";

export interface GroupScanOptions {
  readonly directory: Directory;
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  /** Looks in the database for what happened elsewhere, and hints at it here, before it resolves. */
  readonly look: () => Promise<void>;
  readonly now: () => number;
  readonly log: (message: string, error: unknown) => void;
}

const SCAN_PAGE = 2_000;
const LANES_AT_ONCE = 5_000;
const WARMED_UP_AT_ONCE_MAX = 50;
const GROUP_IDLE_MS = 5 * 60_000;
// A consumer that asks again and again without waiting is looked after between two of its pops.
const GROUP_ACTIVE_MS = 5_000;

export class GroupScan {
  readonly #options: GroupScanOptions;
  readonly #groups: Groups;
  readonly #opener: GroupOpener;
  readonly #lanes: ReadyLanes;
  readonly #pages = new Gathering<Group, void>({
    call: async (asked) => {
      await this.#scan(
        asked.map(({ question }) => question),
        Math.min(SCAN_PAGE, LANES_AT_ONCE / asked.length),
      );
      for (const { resolve } of asked) resolve();
    },
    atOnce: () => WARMED_UP_AT_ONCE_MAX,
  });

  constructor(options: GroupScanOptions, groups: Groups, opener: GroupOpener, lanes: ReadyLanes) {
    this.#options = options;
    this.#groups = groups;
    this.#opener = opener;
    this.#lanes = lanes;
  }

  /** Looks at a page of lanes of every group that pops or has just popped, for work that no hint told of. */
  async round(): Promise<void> {
    const nowMs = this.#options.now();
    const active: Group[] = [];
    for (const group of [...this.#groups.all()]) {
      const idleMs = group.pops > 0 ? 0 : nowMs - group.usedAtMs;
      if (idleMs < GROUP_ACTIVE_MS) {
        if (group.id !== undefined && group.warm) active.push(group);
        else if (group.id !== undefined || group.openFailed) this.start(group);
      } else if (idleMs > GROUP_IDLE_MS && !group.opening && !group.scanning) this.#groups.drop(group);
    }
    if (active.length === 0) return;
    const page = Math.max(50, LANES_AT_ONCE / active.length);
    await this.#scan(active, page);
  }

  /** Any lane may have work, and the queue may have come to exist: looks at all of it, while others go on. */
  start(group: Group): void {
    group.openFailed = false;
    this.#openAndWarmUp(group).catch((error) => {
      group.openFailed = true;
      this.#options.log("pop.group_failed", error);
    });
  }

  async #openAndWarmUp(group: Group): Promise<void> {
    if (group.id === undefined && group.opening) await group.opening; // it may have looked too early
    if (group.id === undefined) await this.#opener.open(group, undefined);
    if (group.id !== undefined) await this.#warmUp(group);
  }

  /** Resolves when everything that was committed before the call was offered to the group's pops. */
  async lookFor(group: Group): Promise<void> {
    if (group.warm) await this.#options.look();
    // Nothing was known yet, or the look found that hints were lost.
    if (!group.warm) await this.#warmUp(group);
  }

  /** A group's first look at the whole queue, page by page; from the first page on, pops are served while it goes on. */
  #warmUp(group: Group): Promise<void> {
    group.scanning ??= (async () => {
      group.isBlind = true;
      await this.#options.look();
      let id: number | undefined;
      do {
        if (group.id === undefined) await this.#opener.open(group, undefined); // the look forgot it
        if (group.id === undefined) return;
        if (group.id !== id) group.scanAfter = 0; // also where the queue was deleted and made anew meanwhile
        id = group.id;
        await this.#pages.ask(group);
      } while (group.id !== id || group.scanAfter > 0);
      group.warm = true;
    })().finally(() => {
      group.scanning = undefined;
      if (group.isBlind) this.#see(group);
    });
    return group.scanning;
  }

  #see(group: Group): void {
    group.isBlind = false;
    this.#lanes.serve(group);
  }

  /** A group that is gone by now has nothing to look at. */
  async #scan(wanted: readonly Group[], page: number): Promise<void> {
    const groups = wanted.filter((group) => group.id !== undefined);
    if (groups.length === 0) return;
    // Read now: while the call waits for a slot, a queue may go.
    const ids = groups.map((group) => group.id!);
    const queueIds = groups.map((group) => group.queue!.id);
    const after = groups.map((group) => group.scanAfter);
    const rows = await this.#options.use((session) =>
      session.run(scanReady, [queueIds, ids, after, Math.floor(page)]),
    );
    const blind = groups.filter((group) => group.isBlind);
    this.#lanes.together(() => {
      for (const row of rows) {
        const group = groups[row.scan]!;
        if (group.id !== ids[row.scan]) continue;
        if (row.partitionId === null) {
          group.scanAfter = row.last ?? 0;
          continue;
        }
        const lane = this.#options.directory.meet(
          row.partitionId,
          group.queue!.id,
          row.name!,
          row.nextOffset!,
        );
        if (lane) this.#lanes.found(group.meet(lane));
      }
    });
    for (const group of blind) this.#see(group);
  }
}
