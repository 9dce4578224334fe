/** The calls about dead letters. */
import type { Statement } from "../session.ts";

export interface DeadLetterRow {
  readonly id: number;
  readonly partitionId: number;
  readonly offset: number;
  readonly queue: string;
  readonly partition: string;
  readonly consumerGroup: string;
  readonly errorMessage: string;
  readonly retryCount: number;
  readonly fragment: string;
  readonly createdAtUs: number;
  readonly failedAtUs: number;
  /** How many letters the page would have without its limit of bytes. */
  readonly matched: number;
}

/** The newest failure first; as many as have so many bytes together, or one. */
export const listDeadLetters: Statement<DeadLetterRow> = {
  name: "queen_list_dead_letters",
  text: `select id, partition_id, message_offset, name, partition_name, consumer_group, error_message, retry_count,
                fragment, created_at, failed_at, matched
           from (select d.*, q.name, count(*) over () as matched, row_number() over place as place,
                        sum(octet_length(d.fragment)) over place as bytes
                   from queen.dead_letters_matching($1, $2, $3, $4, $5::timestamptz, $6::timestamptz,
                          timestamptz '2000-01-01Z' + $7 * interval '1 microsecond', $8, $9, $10) m
                   join queen.dead_letters d on d.id = m.letter_id join queen.queues q on q.id = d.queue_id
                 window place as (order by d.failed_at desc, d.id desc)) letter
          where place = 1 or bytes <= $11
          order by place`,
  parameters: ["text", "text", "text", "text", "text", "text", "int8", "int8", "int8", "int8", "int8"],
  read: (row) => ({
    id: row.int8(0),
    partitionId: row.int8(1),
    offset: row.int8(2),
    queue: row.text(3),
    partition: row.text(4),
    consumerGroup: row.text(5),
    errorMessage: row.text(6),
    retryCount: row.int4(7),
    fragment: row.latin1(8),
    createdAtUs: row.int8(9),
    failedAtUs: row.int8(10),
    matched: row.int8(11),
  }),
};

export const countDeadLetters: Statement<number> = {
  name: "queen_count_dead_letters",
  text: "select queen.count_dead_letters($1, $2, $3, $4, $5::timestamptz, $6::timestamptz)",
  parameters: ["text", "text", "text", "text", "text", "text"],
  read: (row) => row.int8(0),
};

export const matchDeadLetters: Statement<number> = {
  name: "queen_match_dead_letters",
  text: `select letter_id from queen.dead_letters_matching($1, $2, $3, $4, $5::timestamptz, $6::timestamptz,
                                                           null, null, $7, 0)`,
  parameters: ["text", "text", "text", "text", "text", "text", "int8"],
  read: (row) => row.int8(0),
};

export interface DeadLetterErrorRow {
  readonly error: string;
  readonly letters: number;
  readonly queues: number;
  readonly partitions: number;
  readonly firstAtUs: number;
  readonly lastAtUs: number;
}

/** The most frequent first. */
export const listDeadLetterErrors: Statement<DeadLetterErrorRow> = {
  name: "queen_list_dead_letter_errors",
  text: "select error, letters, queues, partitions, first_at, last_at from queen.dead_letter_errors($1, $2, $3)",
  parameters: ["text", "text", "int4"],
  read: (row) => ({
    error: row.text(0),
    letters: row.int8(1),
    queues: row.int8(2),
    partitions: row.int8(3),
    firstAtUs: row.int8(4),
    lastAtUs: row.int8(5),
  }),
};

/** The letters of messages; a group's only, or ("") those of all groups. */
export const lettersOfMessages: Statement<number> = {
  name: "queen_letters_of_messages",
  text: `select d.id
           from unnest($1, $2) as m (partition_id, message_offset)
           join queen.dead_letters d on d.partition_id = m.partition_id and d.message_offset = m.message_offset
          where $3 = '' or d.consumer_group = $3`,
  parameters: ["int8[]", "int8[]", "text"],
  read: (row) => row.int8(0),
};

export interface RequeuedRow {
  readonly letter: number;
  readonly queueId: number;
  readonly partitionId: number;
  readonly offset: number;
}

export const requeue: Statement<RequeuedRow> = {
  name: "queen_requeue",
  text: "select letter_id, queue_id, partition_id, at_offset from queen.requeue($1)",
  parameters: ["int8[]"],
  read: (row) => ({
    letter: row.int8(0),
    queueId: row.int8(1),
    partitionId: row.int8(2),
    offset: row.int8(3),
  }),
};

export const purgeDeadLetters: Statement<number> = {
  name: "queen_purge_dead_letters",
  text: `with gone as (delete from queen.dead_letters where id = any ($1) returning 1)
         select count(*) from gone`,
  parameters: ["int8[]"],
  read: (row) => row.int8(0),
};
