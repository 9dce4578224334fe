/** The final state is what the database holds when a load is over and everything was consumed. */
import type { Delivery, Place } from "./history.ts";

export interface LogEntry extends Delivery {
  /** Equal to the value where the push was keyed. */
  readonly transactionId?: string;
}

export interface DeadLetter extends Delivery {
  readonly group: string;
  readonly error: string;
  /** The errors of its failures, the last ones. */
  readonly failures: readonly string[];
}

export interface Cursor extends Omit<Place, "value"> {
  readonly group: string;
  /** Of the partition. */
  readonly nextOffset: number;
  readonly committed: number;
  /** Finished above it: [from, to). */
  readonly acked: readonly (readonly [number, number])[];
  readonly leased: boolean;
}

/** A group is to get everything in its queue, or everything from its first delivery in a partition on. */
export interface Reader {
  readonly queue: string;
  readonly group: string;
  readonly from?: "beginning" | "first delivery";
}

/** Every value of the source is to be in the sink exactly once. */
export interface Pipe {
  readonly source: string;
  readonly sink: string;
}

export interface FinalState {
  readonly readers: readonly Reader[];
  readonly pipes?: readonly Pipe[];
  readonly log: readonly LogEntry[];
  /** Offsets below are gone from the log, by lane. */
  readonly starts?: Readonly<Record<string, number>>;
  readonly deadLetters: readonly DeadLetter[];
  readonly cursors?: readonly Cursor[];
  /** Messages on the disks of brokers. */
  readonly spooled?: number;
  readonly preparedTransactions?: number;
}

type Query = (text: string, values?: unknown[]) => Promise<Record<string, unknown>[]>;

/** Reads it of the queues that the readers and pipes name. */
export async function readFinalState(
  query: Query,
  readers: readonly Reader[],
  pipes: readonly Pipe[] = [],
): Promise<FinalState> {
  const queues = [...new Set([...readers.map((reader) => reader.queue), ...pipes.map((pipe) => pipe.sink)])];
  const log = await query(
    `select q.name as queue, p.name as partition, m.message_offset::float8 as "offset",
            m.payload #>> '{}' as value, m.transaction_id as "transactionId"
       from queen.messages m join queen.partitions p on p.id = m.partition_id
       join queen.queues q on q.id = p.queue_id
      where q.name = any ($1) order by p.id, m.message_offset`,
    [queues],
  );
  const letters = await query(
    `select q.name as queue, d.partition_name as partition, d.message_offset::float8 as "offset",
            d.consumer_group as "group", d.error_message as error,
            convert_from(d.fragment, 'UTF8') as fragment,
            array(select h ->> 'error' from jsonb_array_elements(d.history) as h) as failures
       from queen.dead_letters d join queen.queues q on q.id = d.queue_id where q.name = any ($1)`,
    [queues],
  );
  const cursors = await query(
    `select q.name as queue, p.name as partition, g.name as "group", p.next_offset::float8 as "nextOffset",
            c.committed::float8 as committed,
            coalesce((select json_agg(json_build_array(lower(r), upper(r))) from unnest(c.acked) as r), '[]') as acked,
            c.lease_token is not null and c.lease_expires_at > clock_timestamp() as leased
       from queen.partition_consumers c join queen.partitions p on p.id = c.partition_id
       join queen.queues q on q.id = p.queue_id join queen.consumer_groups g on g.id = c.group_id
      where q.name = any ($1)`,
    [queues],
  );
  const starts = await query(
    `select q.name as queue, p.name as partition, p.start_offset::float8 as start
       from queen.partitions p join queen.queues q on q.id = p.queue_id
      where q.name = any ($1) and p.start_offset > 0`,
    [queues],
  );
  const [prepared] = await query("select count(*)::int4 as count from pg_prepared_xacts");
  return {
    readers,
    pipes,
    log: log as unknown as LogEntry[],
    starts: Object.fromEntries(starts.map((row) => [`${row.queue}/${row.partition}`, row.start as number])),
    deadLetters: letters.map(({ fragment, ...letter }) => ({
      ...(letter as unknown as DeadLetter),
      value: String(JSON.parse(`{${fragment as string}}`).data),
    })),
    cursors: cursors as unknown as Cursor[],
    preparedTransactions: prepared!.count as number,
  };
}
