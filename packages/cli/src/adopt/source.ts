/**
 * The source is the database of a Queen 0.15 or 0.16. It is only read, in one read-only transaction, so that everything
 * that is read of it belongs to the same moment.
 */
import type { DatabaseSettings, Session, Statement } from "@queen/broker";
import { ServerError, UsageError } from "../exit-codes.ts";
import { connectTo } from "./session.ts";

export interface SourceQueue {
  readonly name: string;
  readonly namespace: string;
  readonly task: string;
  /** The row's columns. */
  readonly columns: Readonly<Record<string, unknown>>;
}

export interface SourceLane {
  readonly queue: string;
  readonly name: string;
  readonly id: string;
  readonly messages: number;
  readonly letters: number;
}

/** Where a group starts in lanes that it has not met. */
export interface SourceGroup {
  readonly name: string;
  readonly mode: "all" | "new" | "timestamp";
  readonly from: string | null;
}

/** A place in a lane: behind this message. */
export interface Position {
  readonly atUs: number;
  readonly id: string;
}

export interface SourceMessage extends Position {
  readonly transactionId: string;
  readonly traceId: string | null;
  readonly producerSub: string | null;
  readonly isEncrypted: boolean;
  /** JSON text. */
  readonly payload: string;
}

export interface SourceCursor {
  readonly group: string;
  /** Messages of the lane that it has not finished. */
  readonly after: number;
}

export interface SourceLetter {
  readonly group: string;
  readonly after: number;
  readonly transactionId: string;
  readonly error: string;
  readonly retries: number;
  readonly failedAt: string;
}

const NEEDED: Readonly<Record<string, readonly string[]>> = {
  queues: ["id", "name"],
  partitions: ["id", "queue_id", "name"],
  messages: ["id", "transaction_id", "partition_id", "payload", "created_at"],
  partition_consumers: ["partition_id", "consumer_group", "last_consumed_id", "last_consumed_created_at"],
  consumer_groups_metadata: [
    "consumer_group",
    "queue_name",
    "partition_name",
    "subscription_mode",
    "subscription_timestamp",
  ],
  dead_letter_queue: [
    "message_id",
    "partition_id",
    "consumer_group",
    "error_message",
    "retry_count",
    "failed_at",
  ],
};
const ZERO_ID = "00000000-0000-0000-0000-000000000000";

export class Source {
  readonly #session: Session;
  readonly #messages: Statement<SourceMessage>;

  static async open(settings: DatabaseSettings): Promise<Source> {
    const session = await connectTo(settings, "queen adopt: source");
    try {
      await session.simple("begin transaction isolation level repeatable read read only");
      return new Source(session, await readColumns(session));
    } catch (error) {
      session.destroy(error as Error);
      throw error;
    }
  }

  private constructor(session: Session, columns: ReadonlySet<string>) {
    this.#session = session;
    this.#messages = messagesStatement(columns);
  }

  async close(): Promise<void> {
    await this.#session.simple("rollback");
    await this.#session.close();
  }

  queues(): Promise<SourceQueue[]> {
    return this.#session.run(QUEUES, []);
  }

  /** All lanes, by queue and name. Counts the messages, which takes a while where there are many. */
  lanes(): Promise<SourceLane[]> {
    return this.#session.run(LANES, []);
  }

  groups(queue: string): Promise<SourceGroup[]> {
    return this.#session.run(GROUPS, [queue]);
  }

  /** The next messages of a lane, in their order. */
  messages(lane: string, behind: Position | undefined, limit: number): Promise<SourceMessage[]> {
    return this.#session.run(this.#messages, [lane, behind?.atUs ?? null, behind?.id ?? ZERO_ID, limit]);
  }

  /** Whether one of the lanes has messages behind its position. */
  async hasMore(
    lanes: readonly SourceLane[],
    positions: readonly (Position | undefined)[],
  ): Promise<boolean> {
    const ids = lanes.map(({ id }) => id);
    const atUs = positions.map((position) => position?.atUs ?? null);
    const behind = positions.map((position) => position?.id ?? ZERO_ID);
    return (await this.#session.run(HAS_MORE, [ids, atUs, behind]))[0]!;
  }

  cursors(lane: string): Promise<SourceCursor[]> {
    return this.#session.run(CURSORS, [lane]);
  }

  letters(lane: string): Promise<SourceLetter[]> {
    return this.#session.run(LETTERS, [lane]);
  }
}

/** The columns that are there, as `table.column`; throws where they are not those of such a Queen. */
async function readColumns(session: Session): Promise<ReadonlySet<string>> {
  const columns = new Set(await session.run(COLUMNS, []));
  if (columns.has("applied.sha256")) {
    throw new UsageError(
      "The source has the tables of this Queen already: a broker can be started on it as it is",
    );
  }
  if (columns.size === 0)
    throw new UsageError("The source has no schema queen: is it the database of a Queen?");
  const missing = Object.entries(NEEDED)
    .flatMap(([table, names]) => names.map((name) => `${table}.${name}`))
    .filter((name) => !columns.has(name));
  if (missing.length === 0) return columns;
  throw new ServerError(
    `The source is not of Queen 0.15 or 0.16: it has no ${missing.map((name) => `queen.${name}`).join(", ")}`,
  );
}

const COLUMNS: Statement<string> = {
  name: "adopt_columns",
  text: `select table_name::text || '.' || column_name::text from information_schema.columns where table_schema = 'queen'`,
  parameters: [],
  read: (row) => row.text(0),
};

const QUEUES: Statement<SourceQueue> = {
  name: "adopt_queues",
  text: `select q.name::text, to_jsonb(q)::text from queen.queues q order by q.name`,
  parameters: [],
  read: (row) => {
    const columns = JSON.parse(row.text(1)) as Record<string, unknown>;
    return {
      name: row.text(0),
      namespace: typeof columns.namespace === "string" ? columns.namespace : "",
      task: typeof columns.task === "string" ? columns.task : "",
      columns,
    };
  },
};

const LANES: Statement<SourceLane> = {
  name: "adopt_lanes",
  text: `select q.name::text, p.name::text, p.id::text, coalesce(m.count, 0), coalesce(d.count, 0)
           from queen.partitions p
           join queen.queues q on q.id = p.queue_id
           left join (select partition_id, count(*) from queen.messages group by 1) m on m.partition_id = p.id
           left join (select partition_id, count(distinct (message_id, consumer_group))
                        from queen.dead_letter_queue group by 1) d on d.partition_id = p.id
          order by q.name, p.name, p.id`,
  parameters: [],
  read: (row) => ({
    queue: row.text(0),
    name: row.text(1),
    id: row.text(2),
    messages: row.int8(3),
    letters: row.int8(4),
  }),
};

const GROUPS: Statement<SourceGroup> = {
  name: "adopt_groups",
  text: `with named as (
           select c.consumer_group::text as name
             from queen.partition_consumers c
             join queen.partitions p on p.id = c.partition_id
             join queen.queues q on q.id = p.queue_id
            where q.name = $1
           union
           select coalesce(d.consumer_group::text, '__QUEUE_MODE__')
             from queen.dead_letter_queue d
             join queen.partitions p on p.id = d.partition_id
             join queen.queues q on q.id = p.queue_id
            where q.name = $1
           union
           select s.consumer_group::text from queen.consumer_groups_metadata s where s.queue_name = $1)
         select n.name, s.subscription_mode::text,
                to_char(s.subscription_timestamp at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
           from named n
           left join lateral (select * from queen.consumer_groups_metadata s
                               where s.consumer_group = n.name and s.queue_name = $1 and s.partition_name = ''
                                 and n.name <> '__QUEUE_MODE__'
                               limit 1) s on true
          where n.name <> ''
          order by n.name`,
  parameters: ["text"],
  read: (row) => {
    const from = row.textOrNull(2);
    const isNew = row.textOrNull(1)?.startsWith("new") === true;
    return { name: row.text(0), mode: from === null ? "all" : isNew ? "new" : "timestamp", from };
  },
};

// Later versions have added columns: what is not there was never said.
const messagesStatement = (columns: ReadonlySet<string>): Statement<SourceMessage> => {
  const optional = (name: string, type: string): string =>
    columns.has(`messages.${name}`) ? `m.${name}::${type}` : `null::${type}`;
  return {
    name: "adopt_messages",
    text: `select (extract(epoch from m.created_at) * 1000000)::int8, m.id::text, m.transaction_id::text,
                  ${optional("trace_id", "text")}, ${optional("producer_sub", "text")},
                  coalesce(${optional("is_encrypted", "bool")}, false), m.payload::text
             from queen.messages m
            where m.partition_id = $1::uuid
              and (m.created_at, m.id)
                  > (coalesce(timestamptz 'epoch' + $2 * interval '1 microsecond', '-infinity'), $3::uuid)
            order by m.created_at, m.id
            limit $4`,
    parameters: ["text", "int8", "text", "int4"],
    read: (row) => ({
      atUs: row.int8(0),
      id: row.text(1),
      transactionId: row.text(2),
      traceId: row.textOrNull(3),
      producerSub: row.textOrNull(4),
      isEncrypted: row.bool(5),
      payload: row.text(6),
    }),
  };
};

const HAS_MORE: Statement<boolean> = {
  name: "adopt_has_more",
  text: `select exists (
           select 1
             from unnest($1, $2, $3) as l (partition_id, at_us, id)
            where exists (select 1 from queen.messages m
                           where m.partition_id = l.partition_id::uuid
                             and (m.created_at, m.id)
                                 > (coalesce(timestamptz 'epoch' + l.at_us * interval '1 microsecond', '-infinity'),
                                    l.id::uuid)))`,
  parameters: ["text[]", "int8[]", "text[]"],
  read: (row) => row.bool(0),
};

// A cursor at the start of history stands where the group's subscription says: on this lane, or in the queue.
const CURSORS: Statement<SourceCursor> = {
  name: "adopt_cursors",
  text: `select c.consumer_group::text,
                (select count(*) from queen.messages m
                  where m.partition_id = c.partition_id
                    and (m.created_at, m.id)
                        > (coalesce(c.last_consumed_created_at, s.subscription_timestamp, '-infinity'),
                           case when c.last_consumed_created_at is null then '${ZERO_ID}'::uuid
                                else c.last_consumed_id end))
           from queen.partition_consumers c
           join queen.partitions p on p.id = c.partition_id
           join queen.queues q on q.id = p.queue_id
           left join lateral (select s.subscription_timestamp from queen.consumer_groups_metadata s
                               where s.consumer_group = c.consumer_group and s.queue_name = q.name
                                 and s.partition_name in (p.name, '') and c.consumer_group <> '__QUEUE_MODE__'
                               order by s.partition_name desc limit 1) s on true
          where c.partition_id = $1::uuid
          order by c.consumer_group`,
  parameters: ["text"],
  read: (row) => ({ group: row.text(0), after: row.int8(1) }),
};

const LETTERS: Statement<SourceLetter> = {
  name: "adopt_letters",
  text: `with ranked as (
           select m.id, m.transaction_id, row_number() over (order by m.created_at desc, m.id desc) - 1 as after
             from queen.messages m where m.partition_id = $1::uuid)
         select distinct on (d.message_id, d.consumer_group)
                coalesce(d.consumer_group::text, '__QUEUE_MODE__'), r.after, r.transaction_id::text,
                coalesce(d.error_message::text, ''), coalesce(d.retry_count, 0)::int4,
                to_char(d.failed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
           from queen.dead_letter_queue d
           join ranked r on r.id = d.message_id
          where d.partition_id = $1::uuid
          order by d.message_id, d.consumer_group, d.failed_at desc`,
  parameters: ["text"],
  read: (row) => ({
    group: row.text(0),
    after: row.int8(1),
    transactionId: row.text(2),
    error: row.text(3),
    retries: row.int4(4),
    failedAt: row.text(5),
  }),
};
