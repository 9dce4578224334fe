/** The calls about modes of maintenance, which are rows of queen.system_state. */
import type { Statement } from "../session.ts";

export const MAINTENANCE_KEYS = { push: "maintenance_mode", pop: "pop_maintenance_mode" } as const;

export interface MaintenanceRow {
  readonly push: boolean;
  readonly pop: boolean;
}

export const readMaintenance: Statement<MaintenanceRow> = {
  name: "queen_read_maintenance",
  text: `select coalesce(bool_or(key = $1), false), coalesce(bool_or(key = $2), false)
           from queen.system_state where key in ($1, $2) and value -> 'enabled' = 'true'::jsonb`,
  parameters: ["text", "text"],
  read: (row) => ({ push: row.bool(0), pop: row.bool(1) }),
};

/** A mode that is set to what it is stays as it is, with the time since when. */
export const setMaintenance: Statement<null> = {
  name: "queen_set_maintenance",
  text: `insert into queen.system_state as s (key, value) values ($1, jsonb_build_object('enabled', $2))
         on conflict (key) do update set value = excluded.value, updated_at = clock_timestamp()
          where s.value is distinct from excluded.value`,
  parameters: ["text", "bool"],
  read: () => null,
};
