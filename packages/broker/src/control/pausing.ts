/** Pauses as operators set, end and list them: of a queue, of a group, of a lane, or of a group on a lane. */
import { BrokerError } from "@queen/protocol";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";

export type { ListedPauseRow } from "../postgres/statements.ts";

export interface PausePlace {
  readonly queue: string;
  /** Null: all partitions. */
  readonly partition: string | null;
  /** Null: all groups. */
  readonly group: string | null;
}

export interface Paused {
  /** False: it was paused already. */
  readonly changed: boolean;
  readonly reason: string | null;
  readonly by: string;
  readonly atUs: number;
}

export interface Resumed {
  /** False: it was not paused. */
  readonly changed: boolean;
  /** Other pauses of the queue. */
  readonly remaining: number;
}

export interface PausingOptions {
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  /** The queue's pauses changed; resolves when this worker acts on it. */
  readonly changed: (queue: number) => Promise<void>;
}

export class Pausing {
  readonly #options: PausingOptions;

  constructor(options: PausingOptions) {
    this.#options = options;
  }

  async pause(place: PausePlace, by: string, reason: string | null): Promise<Paused> {
    const { queue, partition, group } = place;
    const [row] = await this.#options.use((session) =>
      session.run(statements.pause, [queue, partition, group, by, reason]),
    );
    const queueId = checkExists(place, row!);
    if (row!.changed) await this.#options.changed(queueId);
    return { changed: row!.changed, reason: row!.reason, by: row!.by!, atUs: row!.atUs! };
  }

  async resume(place: PausePlace): Promise<Resumed> {
    const { queue, partition, group } = place;
    const [row] = await this.#options.use((session) =>
      session.run(statements.resume, [queue, partition, group]),
    );
    const queueId = checkExists(place, row!);
    if (row!.changed) await this.#options.changed(queueId);
    return { changed: row!.changed, remaining: row!.remaining };
  }

  async list(queue: string): Promise<statements.ListedPauseRow[]> {
    const rows = await this.#options.use((session) => session.run(statements.listPauses, [queue]));
    if (rows.length === 0) throw new BrokerError("NOT_FOUND", "Queue not found");
    return rows.filter((row) => row.atUs !== null);
  }
}

function checkExists(place: PausePlace, row: statements.PausePlaceRow): number {
  if (row.queueId === null) throw new BrokerError("NOT_FOUND", "Queue not found");
  if (place.partition !== null && row.partitionId === null)
    throw new BrokerError("NOT_FOUND", "Partition not found");
  if (place.group !== null && row.groupId === null)
    throw new BrokerError("NOT_FOUND", "Consumer group not found");
  return row.queueId;
}
