/** The calls about consumer groups. */
import type { Statement } from "../session.ts";

export interface ListedGroupRow {
  readonly name: string;
  readonly queue: string;
  readonly subscriptionMode: string;
  readonly subscriptionFromUs: number | null;
  readonly createdAtUs: number;
  readonly members: number;
  readonly lagging: number;
  readonly pending: number;
  readonly oldestSeconds: number;
  readonly lastConsumedAtUs: number | null;
}

export const listGroups: Statement<ListedGroupRow> = {
  name: "queen_list_groups",
  text: `select name, queue_name, subscription_mode, subscription_from, created_at, members, lagging, pending,
                coalesce(extract(epoch from clock_timestamp() - oldest_at), 0)::float8, last_consumed_at
           from queen.list_groups($1)`,
  parameters: ["text"],
  read: (row) => ({
    name: row.text(0),
    queue: row.text(1),
    subscriptionMode: row.text(2),
    subscriptionFromUs: row.int8OrNull(3),
    createdAtUs: row.int8(4),
    members: row.int8(5),
    lagging: row.int8(6),
    pending: row.int8(7),
    oldestSeconds: row.float8(8),
    lastConsumedAtUs: row.int8OrNull(9),
  }),
};

export interface LagBucketRow {
  readonly bucketUs: number;
  readonly pending: number;
  readonly ageMs: number;
}

export const lagSeries: Statement<LagBucketRow> = {
  name: "queen_lag_series",
  text: `select bucket, pending, age_ms from queen.lag_series($1::timestamptz, $2::timestamptz, $3, $4, $5)`,
  parameters: ["text", "text", "int4", "text", "text"],
  read: (row) => ({ bucketUs: row.int8(0), pending: row.int8(1), ageMs: row.int8(2) }),
};

export interface LaggingLaneRow {
  readonly group: string;
  readonly queue: string;
  readonly partition: string;
  readonly partitionId: number;
  readonly leaseToken: number | null;
  readonly pending: number;
  readonly oldestAtUs: number;
  readonly lagSeconds: number;
  readonly lastConsumedAtUs: number | null;
}

export const listLaggingLanes: Statement<LaggingLaneRow> = {
  name: "queen_list_lagging_lanes",
  text: `select consumer_group, queue_name, partition_name, partition_id, lease_token, pending, oldest_at,
                lag_seconds, last_consumed_at from queen.list_lagging_lanes($1, $2)`,
  parameters: ["float8", "int4"],
  read: (row) => ({
    group: row.text(0),
    queue: row.text(1),
    partition: row.text(2),
    partitionId: row.int8(3),
    leaseToken: row.int8OrNull(4),
    pending: row.int8(5),
    oldestAtUs: row.int8(6),
    lagSeconds: row.float8(7),
    lastConsumedAtUs: row.int8OrNull(8),
  }),
};

export interface GroupLaneRow {
  readonly queue: string;
  readonly partition: string;
  readonly partitionId: number;
  readonly leaseToken: number | null;
  readonly leaseActive: boolean;
  readonly pending: number;
  readonly finished: number;
  readonly lagSeconds: number | null;
  readonly lastConsumedAtUs: number | null;
  readonly total: number;
}

export const listGroupLanes: Statement<GroupLaneRow> = {
  name: "queen_list_group_lanes",
  text: `select queue_name, partition_name, partition_id, lease_token, lease_active, pending, finished,
                lag_seconds, last_consumed_at, total from queen.list_group_lanes($1, $2, $3, $4)`,
  parameters: ["text", "text", "int4", "int8"],
  read: (row) => ({
    queue: row.text(0),
    partition: row.text(1),
    partitionId: row.int8(2),
    leaseToken: row.int8OrNull(3),
    leaseActive: row.bool(4),
    pending: row.int8(5),
    finished: row.int8(6),
    lagSeconds: row.float8OrNull(7),
    lastConsumedAtUs: row.int8OrNull(8),
    total: row.int8(9),
  }),
};

export interface SeekRow {
  readonly queueId: number | null;
  readonly groupId: number | null;
  readonly partitionId: number | null;
  readonly lanes: number;
  readonly movedTo: number | null;
  readonly ready: readonly number[];
}

export const seek: Statement<SeekRow> = {
  name: "queen_seek",
  text: `select queue_id, group_id, partition_id, lanes, moved_to, array_to_string(ready, ',')
           from queen.seek($1, $2, $3, $4::timestamptz)`,
  parameters: ["text", "text", "text", "text"],
  read: (row) => ({
    queueId: row.int8OrNull(0),
    groupId: row.int4OrNull(1),
    partitionId: row.int8OrNull(2),
    lanes: row.int4(3),
    movedTo: row.int8OrNull(4),
    ready: numbers(row.text(5)),
  }),
};

export const setSubscription: Statement<number> = {
  name: "queen_set_subscription",
  text: "select queen.set_subscription($1, $2::timestamptz)",
  parameters: ["text", "text"],
  read: (row) => row.int4(0),
};

export interface DeletedGroupRow {
  readonly lanes: number;
  readonly queues: readonly string[];
}

export const deleteGroup: Statement<DeletedGroupRow> = {
  name: "queen_delete_group",
  text: "select lanes, to_json(queue_names)::text from queen.delete_group($1, $2, $3)",
  parameters: ["text", "text", "bool"],
  read: (row) => ({ lanes: row.int4(0), queues: JSON.parse(row.text(1)) as string[] }),
};

const numbers = (list: string): number[] => (list === "" ? [] : list.split(",").map(Number));

export interface SeekPreviewRow {
  readonly queueId: number | null;
  readonly groupId: number | null;
  readonly partitionId: number | null;
  readonly lanes: number;
  readonly again: number;
  readonly skipped: number;
  readonly leased: number;
}

/** Null: there is no such queue, group or partition. */
export const previewSeek: Statement<SeekPreviewRow> = {
  name: "queen_preview_seek",
  text: `select queue_id, group_id, partition_id, lanes, again, skipped, leased
           from queen.preview_seek($1, $2, $3, $4::timestamptz)`,
  parameters: ["text", "text", "text", "text"],
  read: (row) => ({
    queueId: row.int8OrNull(0),
    groupId: row.isNull(1) ? null : row.int4(1),
    partitionId: row.int8OrNull(2),
    lanes: row.int8(3),
    again: row.int8(4),
    skipped: row.int8(5),
    leased: row.int8(6),
  }),
};
