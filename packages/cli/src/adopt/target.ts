/** The target is our own database. What is brought over goes through the procedures adopt_*, one commit for each call. */
import type { DatabaseSettings, Session, Statement } from "@queen/broker";
import type { Fragments } from "./fragments.ts";
import { connectTo } from "./session.ts";
import type { Position, SourceCursor, SourceGroup, SourceLane, SourceLetter, SourceQueue } from "./source.ts";

/** How far a lane is. */
export interface AdoptedLane {
  /** Undefined: the lane here is not of this source. */
  readonly messages: number | undefined;
  readonly position: Position | undefined;
  readonly letters: number;
  readonly nextOffset: number;
}

export type QueueOptions = Readonly<Record<string, unknown>>;

const REASON = "it is being brought over by queen adopt; run that again to finish";

export class Target {
  readonly #session: Session;

  static async open(settings: DatabaseSettings): Promise<Target> {
    return new Target(await connectTo(settings, "queen adopt"));
  }

  private constructor(session: Session) {
    this.#session = session;
  }

  close(): Promise<void> {
    return this.#session.close();
  }

  /** Whether the schema is there, in a version that knows adoptions. */
  async isPrepared(): Promise<boolean> {
    return (await this.#session.run(PREPARED, []))[0]!;
  }

  /** Whether an adoption of the queue was begun and is not done. Undefined: there is no such queue. */
  async isUnderWay(queue: string): Promise<boolean | undefined> {
    return (await this.#session.run(UNDER_WAY, [queue, REASON]))[0];
  }

  async beginQueue(queue: SourceQueue, options: QueueOptions, groups: readonly SourceGroup[]): Promise<void> {
    const { name, namespace, task } = queue;
    const all = [name, namespace, task, JSON.stringify(options), JSON.stringify(groups), REASON];
    await this.#session.run(BEGIN_QUEUE, all);
  }

  async endQueue({ name, namespace, task }: SourceQueue, options: QueueOptions): Promise<void> {
    await this.#session.run(END_QUEUE, [name, namespace, task, JSON.stringify(options), REASON]);
  }

  /** By the lanes' index; a lane that is not there is missing. */
  async lanes(
    queue: string,
    lanes: readonly SourceLane[],
    { isMade }: { isMade: boolean },
  ): Promise<Map<number, AdoptedLane>> {
    const names = lanes.map(({ name }) => name);
    const ids = lanes.map(({ id }) => id);
    return new Map(await this.#session.run(LANES, [queue, names, ids, isMade]));
  }

  /** Resolves with how many messages of the lane are here now. */
  async addMessages(lane: SourceLane, from: number, fragments: Fragments): Promise<number> {
    const { segments, atUs, transactionIds, bytes, lastId } = fragments;
    const rows = await this.#session.run(MESSAGES, [
      lane.id,
      from,
      segments,
      atUs,
      transactionIds,
      bytes,
      lastId,
    ]);
    return rows[0]!;
  }

  /** Resolves with how many messages each group has not finished here. */
  async setPlaces(
    lane: SourceLane,
    cursors: readonly SourceCursor[],
    letters: readonly SourceLetter[],
  ): Promise<Map<string, number>> {
    const groups = cursors.map(({ group }) => group);
    const after = cursors.map((cursor) => cursor.after);
    return new Map(await this.#session.run(PLACES, [lane.id, groups, after, JSON.stringify(letters)]));
  }
}

const PREPARED: Statement<boolean> = {
  name: "adopt_prepared",
  text: "select to_regclass('queen.adoptions') is not null",
  parameters: [],
  read: (row) => row.bool(0),
};

const UNDER_WAY: Statement<boolean> = {
  name: "adopt_under_way",
  text: `select exists (select 1 from queen.pauses x where x.queue_id = q.id and x.reason = $2)
           from queen.queues q where q.name = $1`,
  parameters: ["text", "text"],
  read: (row) => row.bool(0),
};

const BEGIN_QUEUE: Statement<null> = {
  name: "adopt_begin_queue",
  text: "select 1 from queen.adopt_queue($1, $2, $3, $4::jsonb, $5::jsonb, $6)",
  parameters: ["text", "text", "text", "text", "text", "text"],
  read: () => null,
};

const END_QUEUE: Statement<null> = {
  name: "adopt_end_queue",
  text: "select 1 from queen.adopt_done($1, $2, $3, $4::jsonb, $5)",
  parameters: ["text", "text", "text", "text", "text"],
  read: () => null,
};

const LANES: Statement<[number, AdoptedLane]> = {
  name: "adopt_target_lanes",
  text: `select lane, messages, last_us, last_id::text, letters, next_offset
           from queen.adopt_lanes($1, $2, $3::uuid[], $4)`,
  parameters: ["text", "text[]", "text[]", "bool"],
  read: (row) => {
    const atUs = row.int8OrNull(2);
    const lane: AdoptedLane = {
      messages: row.int8OrNull(1) ?? undefined,
      position: atUs === null ? undefined : { atUs, id: row.text(3) },
      letters: row.int8OrNull(4) ?? 0,
      nextOffset: row.int8(5),
    };
    return [row.int4(0), lane];
  },
};

const MESSAGES: Statement<number> = {
  name: "adopt_add_messages",
  text: "select queen.adopt_messages($1::uuid, $2, $3, $4, $5, $6, $7::uuid)",
  parameters: ["text", "int8", "int4[]", "int8[]", "text[]", "bytea[]", "text"],
  read: (row) => row.int8(0),
};

const PLACES: Statement<[string, number]> = {
  name: "adopt_set_places",
  text: "select consumer_group, unfinished from queen.adopt_places($1::uuid, $2, $3, $4::jsonb)",
  parameters: ["text", "text[]", "int8[]", "text"],
  read: (row) => [row.text(0), row.int8(1)],
};
