/**
 * The hint reader looks in the database for what happened elsewhere: lanes with new messages, queues that
 * changed, modes of maintenance that were switched. A look is exact, whatever order transactions committed in,
 * because it asks for what the snapshot of the look before did not see. Many who want a look share one.
 *
 * While somebody waits or works here, it looks every interval by itself, and has the popper scan for what no
 * hint told of. An idle broker asks nothing.
 */
import type { Directory } from "../lanes/directory.ts";
import type { Lane } from "../lanes/lane.ts";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import type { Popper } from "./popper.ts";

export interface HintReaderOptions {
  readonly directory: Directory;
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  /** A segment of the lane was written anew: what is held of it is void. */
  readonly rewritten: (partition: number) => void;
  /** A mode of maintenance may have been switched; resolves when it is known here. */
  readonly stateChanged: () => Promise<void>;
  readonly intervalMs: number;
  readonly now: () => number;
  readonly log: (message: string, error: unknown) => void;
}

// Hints are kept for a minute; who has not looked for half of that may have missed some.
const GAP_MS_MAX = 30_000;
const ACTIVE_MS = 5_000;
// A look may take so long before what is known counts as old.
const CURRENT_MS = 1_000;
const TRIM_EVERY_MS = 10_000;

export class HintReader {
  readonly #options: HintReaderOptions;
  readonly #popper: () => Popper;
  #snapshot: string | undefined;
  #lookedAtMs = 0;
  #trimmedAtMs = 0;
  #activeAtMs = -Infinity;
  #looking: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: HintReaderOptions, popper: () => Popper) {
    this.#options = options;
    this.#popper = popper;
  }

  start(): void {
    this.look().catch((error) => this.#options.log("hints.failed", error)); // what happens from now on is seen
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** Whether what happened elsewhere is known here, up to a moment ago. */
  get isCurrent(): boolean {
    const { now, intervalMs } = this.#options;
    return this.#snapshot !== undefined && now() - this.#lookedAtMs < intervalMs + CURRENT_MS;
  }

  /** Whether everything up to the last look is known here; what came later may be told by the bus. */
  get hasLooked(): boolean {
    return this.#snapshot !== undefined;
  }

  /** Somebody works here: what is cached must stay fresh. */
  active(): void {
    this.#activeAtMs = this.#options.now();
  }

  /** What was seen says nothing about this database: the next look begins anew. */
  forget(): void {
    this.#snapshot = undefined;
  }

  /** Resolves when everything that was committed before the call is known here. */
  look(): Promise<void> {
    if (!this.#looking) {
      this.#looking = this.#look().finally(() => {
        this.#looking = undefined;
      });
      return this.#looking;
    }
    // The look under way may have taken its snapshot already.
    this.#next ??= this.#looking
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        return this.look();
      });
    return this.#next;
  }

  async #look(): Promise<void> {
    const { use, now } = this.#options;
    const popper = this.#popper();
    const isGap = this.#snapshot === undefined || now() - this.#lookedAtMs > GAP_MS_MAX;
    const startedAtMs = now();
    const rows = await use((session) =>
      session.run(statements.readHints, [isGap ? null : this.#snapshot, popper.queueIds]),
    );
    if (isGap) {
      this.#options.directory.forgetAll();
      popper.forgetAll();
      await this.#options.stateChanged();
    } else await this.#learn(rows);
    // Only now is it known here; where that failed, the next look asks for the same again.
    this.#lookedAtMs = startedAtMs;
    this.#snapshot = rows[0]!.snapshot!;
  }

  async #learn(rows: readonly statements.HintRow[]): Promise<void> {
    const { directory } = this.#options;
    const isState = (row: statements.HintRow): boolean =>
      row.snapshot === null && row.queueId === null && row.partitionId === null;
    if (rows.some(isState)) await this.#options.stateChanged();
    const changed = rows.flatMap((row) =>
      row.partitionId === null && row.queueId !== null ? [row.queueId] : [],
    );
    await this.queuesChanged(changed);
    const appended: Lane[] = [];
    const changedLanes: Lane[] = [];
    for (const row of rows) {
      if (row.partitionId === null) continue;
      if (row.queueId === null) {
        this.#options.rewritten(row.partitionId);
        continue;
      }
      const lane = directory.meet(row.partitionId, row.queueId, row.name!, row.nextOffset!);
      if (lane) (row.appended ? appended : changedLanes).push(lane);
    }
    this.#popper().hintAll(appended, changedLanes);
  }

  async queuesChanged(ids: readonly number[]): Promise<void> {
    if (ids.length === 0) return;
    const { directory } = this.#options;
    try {
      await directory.refresh(ids);
    } catch (error) {
      this.#snapshot = undefined;
      throw error;
    }
    const popper = this.#popper();
    popper.queuesChanged();
    if (!popper.waitsForQueue) return;
    for (const id of ids) {
      const queue = await directory.queueById(id);
      if (queue) popper.queueChanged(queue.name);
    }
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(
      () => void this.#round().finally(() => this.#schedule()),
      this.#options.intervalMs,
    );
  }

  async #round(): Promise<void> {
    const { now, use, log } = this.#options;
    const popper = this.#popper();
    if (!popper.hasWaiters && now() - this.#activeAtMs > ACTIVE_MS) return;
    try {
      await this.look();
      await popper.scanRound();
      if (now() - this.#trimmedAtMs > TRIM_EVERY_MS) {
        this.#trimmedAtMs = now();
        await use((session) => session.run(statements.trimHints, []));
      }
    } catch (error) {
      log("hints.failed", error);
    }
  }
}
