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

export const deleteQueue: Statement<boolean> = {
  name: "queen_delete_queue",
  text: "with gone as (delete from queen.queues where name = $1 returning 1) select exists (select 1 from gone)",
  parameters: ["text"],
  read: (row) => row.bool(0),
};

export const findQueue: Statement<Record<string, unknown>> = {
  name: "queen_find_queue",
  text: "select to_jsonb(q)::text from queen.queues q where q.name = $1",
  parameters: ["text"],
  read: (row) => JSON.parse(row.text(0)) as Record<string, unknown>,
};

export interface ClearedRow {
  /** For the next call; `after` is null when all is done. */
  readonly after: number | null;
  readonly below: number | null;
  readonly lanes: number;
  readonly messages: number;
  /** Lanes in which a lease ended. */
  readonly released: readonly number[];
}

export const clearLanes: Statement<ClearedRow> = {
  name: "queen_clear_lanes",
  text: `select after, below, lanes, messages, to_json(released)::text
           from queen.clear_lanes($1, $2, $3, $4, $5)`,
  parameters: ["int8", "int8", "int8", "int8", "int8"],
  read: (row) => ({
    after: row.int8OrNull(0),
    below: row.int8OrNull(1),
    lanes: row.int4(2),
    messages: row.int8(3),
    released: JSON.parse(row.text(4)) as number[],
  }),
};
