/** The calls about single messages. */
import type { Statement } from "../session.ts";

export interface ListedMessageRow {
  readonly partitionId: number;
  readonly offset: number;
  readonly createdAtUs: number;
  /** The fragment without the payload; null: no message, the page ends here and more may follow. */
  readonly header: string | null;
  readonly queue: string;
  readonly namespace: string;
  readonly task: string;
  readonly priority: number;
  readonly partition: string;
  readonly isDead: boolean;
  /** Null: nobody reads in queue mode. */
  readonly queueFinished: boolean | null;
  readonly queueLeaseExpiresAtUs: number | null;
  readonly consumedBy: number;
  readonly groups: number;
}

export const listMessages: Statement<ListedMessageRow> = {
  name: "queen_list_messages",
  text: `select partition_id, at_offset, created_at, header, queue_name, namespace, task, priority, partition_name,
                is_dead, queue_finished, queue_lease_expires_at, consumed_by, groups
           from queen.list_messages($1, $2, $3, $4, $5,
                  coalesce($6::timestamptz, '-infinity'),
                  coalesce(date_trunc('minute', $7::timestamptz) + interval '1 minute', 'infinity'),
                  timestamptz '2000-01-01Z' + $8 * interval '1 microsecond', $9, $10, $11, $12)`,
  parameters: [
    "int8",
    "int8",
    "text",
    "text",
    "text",
    "text",
    "text",
    "int8",
    "int8",
    "int8",
    "int4",
    "int8",
  ],
  read: (row) => ({
    partitionId: row.int8(0),
    offset: row.int8(1),
    createdAtUs: row.int8(2),
    header: row.latin1OrNull(3),
    queue: row.text(4),
    namespace: row.text(5),
    task: row.text(6),
    priority: row.int4(7),
    partition: row.text(8),
    isDead: row.bool(9),
    queueFinished: row.boolOrNull(10),
    queueLeaseExpiresAtUs: row.int8OrNull(11),
    consumedBy: row.int8(12),
    groups: row.int8(13),
  }),
};

export interface PlaceRow {
  readonly queueId: number;
  readonly partitionId: number | null;
}

/** A queue and one of its partitions, by name; a partition of null: only the queue is meant. */
export const findPlace: Statement<PlaceRow> = {
  name: "queen_find_place",
  text: `select q.id, p.id from queen.queues q
           left join queen.partitions p on p.queue_id = q.id and p.name = $2 where q.name = $1`,
  parameters: ["text", "text"],
  read: (row) => ({ queueId: row.int8(0), partitionId: row.int8OrNull(1) }),
};

export interface ReadersRow {
  readonly hasQueueMode: boolean;
  readonly namedGroups: number;
}

/** Who reads the queues of a filter. */
export const readersOf: Statement<ReadersRow> = {
  name: "queen_readers_of",
  text: `select coalesce(bool_or(g.name = '__QUEUE_MODE__'), false),
                count(distinct g.name) filter (where g.name <> '__QUEUE_MODE__')
           from queen.consumer_groups g join queen.queues q on q.id = g.queue_id
          where ($1::int8 is null or q.id = $1) and ($2::text is null or q.namespace = $2)
            and ($3::text is null or q.task = $3)`,
  parameters: ["int8", "text", "text"],
  read: (row) => ({ hasQueueMode: row.bool(0), namedGroups: row.int8(1) }),
};

export interface FoundInLaneRow {
  readonly offset: number;
  readonly fragment: string;
}

export const findInLane: Statement<FoundInLaneRow> = {
  name: "queen_find_in_lane",
  text: "select at_offset, fragment from queen.find_in_lane($1, $2, $3, $4)",
  parameters: ["int8", "bytea", "int8", "int8"],
  read: (row) => ({ offset: row.int8(0), fragment: row.latin1(1) }),
};

/** Messages that a queue, one of its partitions, or everything holds, from offsets. */
export const countStored: Statement<number> = {
  name: "queen_count_stored",
  text: `select coalesce(sum(p.next_offset - p.start_offset), 0)::int8 from queen.partitions p
          where p.queue_id between coalesce($1, 0) and coalesce($1, 9223372036854775807)
            and ($2::int8 is null or p.id = $2)`,
  parameters: ["int8", "int8"],
  read: (row) => row.int8(0),
};

/** Where the next step of a search begins; see queen.search_messages. */
export interface SearchPlaceRow {
  readonly band: number;
  readonly atQueue: number;
  readonly atPartition: number;
  readonly below: number | null;
}

export interface SearchRow {
  /** Undefined: everything was looked at. */
  readonly next: SearchPlaceRow | undefined;
  readonly searched: number;
  readonly found: readonly { readonly partition: number; readonly offset: number }[];
}

export const searchMessages: Statement<SearchRow> = {
  name: "queen_search_messages",
  text: `select band, at_queue, at_partition, below, searched, places::text
           from queen.search_messages($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
  parameters: ["int8", "int8", "text", "bytea", "int4", "int8", "int8", "int8", "int4", "int4"],
  read: (row) => {
    const band = row.int4OrNull(0);
    const found = JSON.parse(row.text(5)) as [number, number][];
    return {
      next:
        band === null
          ? undefined
          : { band, atQueue: row.int8(1), atPartition: row.int8(2), below: row.int8OrNull(3) },
      searched: row.int8(4),
      found: found.map(([partition, offset]) => ({ partition, offset })),
    };
  },
};

/** A message that may be gone from the log, by its dead letter; the newest. */
export const findLetterOffset: Statement<number> = {
  name: "queen_find_letter_offset",
  text: `select message_offset from queen.dead_letters where partition_id = $1 and transaction_id = $2
          order by message_offset desc limit 1`,
  parameters: ["int8", "text"],
  read: (row) => row.int8(0),
};

export interface MessageRow {
  readonly queue: Readonly<Record<string, unknown>>;
  readonly partition: string;
  readonly createdAtUs: number;
  readonly fragment: string;
  readonly groups: readonly { name: string; consumed: boolean; leaseExpiresAtUs: number | null }[];
  readonly letters: readonly { group: string; error: string; retries: number }[];
}

export const readMessage: Statement<MessageRow> = {
  name: "queen_read_message",
  text: `select queue::text, partition_name, created_at, fragment, groups::text, letters::text
           from queen.read_message($1, $2)`,
  parameters: ["int8", "int8"],
  read: (row) => ({
    queue: JSON.parse(row.text(0)) as MessageRow["queue"],
    partition: row.text(1),
    createdAtUs: row.int8(2),
    fragment: row.latin1(3),
    groups: JSON.parse(row.text(4)) as MessageRow["groups"],
    letters: JSON.parse(row.text(5)) as MessageRow["letters"],
  }),
};

export const deleteMessage: Statement<boolean> = {
  name: "queen_delete_message",
  text: "select queen.delete_message($1, $2)",
  parameters: ["int8", "int8"],
  read: (row) => row.bool(0),
};

export interface RetryRow {
  readonly action: string;
  readonly offset: number | null;
}

export const retryMessage: Statement<RetryRow> = {
  name: "queen_retry_message",
  text: "select action, at_offset from queen.retry_message($1, $2, $3)",
  parameters: ["int8", "int8", "text"],
  read: (row) => ({ action: row.text(0), offset: row.int8OrNull(1) }),
};

export const buryMessage: Statement<string> = {
  name: "queen_bury_message",
  text: "select queen.bury_message($1, $2, $3, $4)",
  parameters: ["int8", "int8", "text", "text"],
  read: (row) => row.text(0),
};
