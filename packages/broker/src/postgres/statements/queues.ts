/** The calls about queues. */
import type { Statement } from "../session.ts";

export interface ConfigureRow {
  readonly queue: Record<string, unknown>;
  readonly partitionId: number;
}

export const configureQueue: Statement<ConfigureRow> = {
  name: "queen_configure_queue",
  text: "select queue::text, partition_id from queen.configure_queue($1, $2, $3, $4::jsonb, $5)",
  parameters: ["text", "text", "text", "text", "bool"],
  read: (row) => ({ queue: JSON.parse(row.text(0)) as Record<string, unknown>, partitionId: row.int8(1) }),
};

/** Messages that a queue's slowest group has not finished; without groups, messages that are stored. In order. */
export const queueDepths: Statement<number> = {
  name: "queen_queue_depths",
  text: "select queen.queue_depth(q.id) from unnest($1) with ordinality as q (id, place) order by q.place",
  parameters: ["int8[]"],
  read: (row) => row.int8(0),
};

export const deleteQueue: Statement<boolean> = {
  name: "queen_delete_queue",
  text: "with gone as (delete from queen.queues where name = $1 returning 1) select exists (select 1 from gone)",
  parameters: ["text"],
  read: (row) => row.bool(0),
};
