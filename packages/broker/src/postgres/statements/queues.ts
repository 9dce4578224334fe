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

/** Messages that the slowest group has not finished; without groups, messages that are stored. */
export const queueDepth: Statement<number> = {
  name: "queen_queue_depth",
  text: "select queen.queue_depth($1)",
  parameters: ["int8"],
  read: (row) => row.int8(0),
};

export const deleteQueue: Statement<boolean> = {
  name: "queen_delete_queue",
  text: "with gone as (delete from queen.queues where name = $1 returning 1) select exists (select 1 from gone)",
  parameters: ["text"],
  read: (row) => row.bool(0),
};
