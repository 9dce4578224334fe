/**
 * Figures are what queues and lanes hold: messages in all, pending, under a lease, dead letters, lag. They come
 * from offsets, never from counting the log. Sums over all lanes are shared readings; pages of lanes are read
 * when asked for.
 */
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import { type Reading, SharedReadings } from "./shared-readings.ts";

export type { LaneFiguresRow, ListedGroupRow, QueueFiguresRow } from "../postgres/statements.ts";

export const LANE_SORTS = ["name", "depth", "age", "trouble"] as const;

export interface LanePage {
  /** Undefined: the lanes of all queues. */
  readonly queue: number | undefined;
  /** A part of the name. */
  readonly search: string | undefined;
  readonly sort: (typeof LANE_SORTS)[number];
  readonly limit: number;
  readonly offset: number;
}

export interface FoundQueue {
  readonly row: Readonly<Record<string, unknown>>;
  readonly figures: statements.QueueFiguresRow;
}

type UseSession = <T>(work: (session: Session) => Promise<T>) => Promise<T>;

export class Figures {
  readonly #use: UseSession;
  readonly #queues: SharedReadings<number | null, statements.QueueFiguresRow[]>;
  readonly #groups: SharedReadings<null, statements.ListedGroupRow[]>;

  constructor(use: UseSession, now: () => number) {
    this.#use = use;
    this.#queues = new SharedReadings(
      (queue) => use((session) => session.run(statements.queueFigures, [queue])),
      now,
    );
    this.#groups = new SharedReadings(
      () => use((session) => session.run(statements.listGroups, [null])),
      now,
    );
  }

  /** Every queue, the newest first. */
  queues(): Promise<Reading<statements.QueueFiguresRow[]>> {
    return this.#queues.get(null);
  }

  /** As `queues`, read now. */
  refresh(): Promise<Reading<statements.QueueFiguresRow[]>> {
    return this.#queues.refresh(null);
  }

  /** Every group of every queue, with its lag. */
  async groups(): Promise<statements.ListedGroupRow[]> {
    return (await this.#groups.get(null)).value;
  }

  /** The queue with this name; undefined: there is none. */
  async queue(name: string): Promise<FoundQueue | undefined> {
    const row = await this.#row(name);
    const figures = row && (await this.#queues.get(row.id as number)).value[0];
    return row && figures && { row, figures };
  }

  async queueId(name: string): Promise<number | undefined> {
    return (await this.#row(name))?.id as number | undefined;
  }

  async lanes(page: LanePage): Promise<{ lanes: statements.LaneFiguresRow[]; total: number }> {
    const { queue, search, sort, limit, offset } = page;
    const rows = await this.#use((session) =>
      session.run(statements.listLanes, [queue ?? null, search ?? null, sort, limit, offset]),
    );
    return { lanes: rows.flatMap(({ lane }) => (lane ? [lane] : [])), total: rows[0]!.lanes };
  }

  /** Undefined: there is no such queue or partition. */
  async lane(queue: string, partition: string): Promise<statements.ShownLane | undefined> {
    const [lane] = await this.#use((session) => session.run(statements.showLane, [queue, partition]));
    return lane ?? undefined;
  }

  async #row(name: string): Promise<Record<string, unknown> | undefined> {
    const [row] = await this.#use((session) => session.run(statements.findQueue, [name]));
    return row;
  }
}
