/** The calls about pauses. */
import type { Statement } from "../session.ts";

/** Null ids: what was named does not exist. */
export interface PausePlaceRow {
  readonly queueId: number | null;
  readonly partitionId: number | null;
  readonly groupId: number | null;
  readonly changed: boolean;
}

export interface PauseRow extends PausePlaceRow {
  readonly reason: string | null;
  readonly by: string | null;
  readonly atUs: number | null;
}

export const pause: Statement<PauseRow> = {
  name: "queen_pause",
  text: `select queue_id, partition_id, group_id, changed, reason, paused_by, paused_at
           from queen.pause($1, $2, $3, $4, $5)`,
  parameters: ["text", "text", "text", "text", "text"],
  read: (row) => ({
    queueId: row.int8OrNull(0),
    partitionId: row.int8OrNull(1),
    groupId: row.int4OrNull(2),
    changed: row.bool(3),
    reason: row.textOrNull(4),
    by: row.textOrNull(5),
    atUs: row.int8OrNull(6),
  }),
};

export interface ResumeRow extends PausePlaceRow {
  readonly remaining: number;
}

export const resume: Statement<ResumeRow> = {
  name: "queen_resume",
  text: "select queue_id, partition_id, group_id, changed, remaining from queen.resume($1, $2, $3)",
  parameters: ["text", "text", "text"],
  read: (row) => ({
    queueId: row.int8OrNull(0),
    partitionId: row.int8OrNull(1),
    groupId: row.int4OrNull(2),
    changed: row.bool(3),
    remaining: row.int4(4),
  }),
};

/** Without `atUs`: the queue exists and has no pauses. */
export interface ListedPauseRow {
  readonly partition: string | null;
  readonly group: string | null;
  readonly reason: string | null;
  readonly by: string | null;
  readonly atUs: number | null;
  readonly seconds: number | null;
}

export const listPauses: Statement<ListedPauseRow> = {
  name: "queen_list_pauses",
  text: `select p.name, g.name, x.reason, x.paused_by, x.paused_at,
                extract(epoch from clock_timestamp() - x.paused_at)::float8
           from queen.queues q
           left join queen.pauses x on x.queue_id = q.id
           left join queen.partitions p on p.id = x.partition_id
           left join queen.consumer_groups g on g.id = x.group_id
          where q.name = $1 order by x.paused_at, x.id`,
  parameters: ["text"],
  read: (row) => ({
    partition: row.textOrNull(0),
    group: row.textOrNull(1),
    reason: row.textOrNull(2),
    by: row.textOrNull(3),
    atUs: row.int8OrNull(4),
    seconds: row.float8OrNull(5),
  }),
};
