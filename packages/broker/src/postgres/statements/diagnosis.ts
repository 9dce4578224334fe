/** The calls that find out what is wrong, with a lane or with the server. */
import type { Statement } from "../session.ts";

/** Times are as PostgreSQL writes them in JSON, in UTC. See explain_lane.sql for what each field means. */
export interface LaneFacts {
  readonly now: string;
  readonly queue: {
    readonly id: number;
    readonly delay_s: number;
    readonly window_s: number;
    readonly retry_limit: number;
  };
  readonly partition: {
    readonly id: number;
    readonly next_offset: number;
    readonly start_offset: number;
    readonly last_at: string | null;
  };
  readonly group_exists: boolean;
  readonly place: number;
  readonly pending: number;
  readonly finished_ahead: number;
  readonly head: {
    readonly offset: number;
    readonly transaction_id: string;
    readonly created_at: string;
  } | null;
  readonly place_at: string | null;
  readonly lease: {
    readonly token: number;
    readonly acquired_at: string | null;
    readonly expires_at: string;
    readonly until: number;
    readonly unfinished: number;
  } | null;
  readonly attempts: number;
  readonly errors: readonly { readonly at: string; readonly error: string }[];
  readonly not_before: string | null;
  readonly last_error: string | null;
  readonly locked: {
    readonly pid: number;
    readonly since: string | null;
    readonly state: string | null;
    readonly query: string | null;
  } | null;
  readonly pauses: readonly {
    readonly partition: string | null;
    readonly group: string | null;
    readonly reason: string | null;
    readonly by: string;
    readonly at: string;
  }[];
  readonly pop_maintenance: boolean;
}

/** Null: there is no such queue or partition. */
export const explainLane: Statement<LaneFacts | null> = {
  name: "queen_explain_lane",
  text: "select queen.explain_lane($1, $2, $3)::text",
  parameters: ["text", "text", "text"],
  read: (row) => JSON.parse(row.textOrNull(0) ?? "null") as LaneFacts | null,
};

/** See doctor_facts.sql. */
export interface DoctorFacts {
  readonly now: string;
  readonly role: string;
  readonly database: string;
  readonly sees_all: boolean;
  readonly server_version: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly transactions: readonly {
    readonly pid: number;
    readonly role: string | null;
    readonly application: string | null;
    readonly state: string | null;
    readonly kind: string;
    readonly query: string | null;
    readonly seconds: number | null;
    readonly xids: number | null;
  }[];
  readonly prepared: readonly { readonly gid: string; readonly role: string; readonly seconds: number }[];
  readonly slots: readonly {
    readonly name: string;
    readonly kind: string;
    readonly active: boolean;
    readonly wal_status: string | null;
    readonly xids: number | null;
    readonly wal_bytes: number | null;
  }[];
  readonly tables: readonly {
    readonly name: string;
    readonly live: number;
    readonly dead: number;
    readonly updates: number;
    readonly hot_updates: number;
    readonly last_vacuum: string | null;
    readonly rows: number;
  }[];
  readonly connections: number;
  readonly xid_age: number;
  readonly multixact_age: number;
  readonly oldest_hint_s: number | null;
  readonly maintenance: readonly {
    readonly key: string;
    readonly since: string;
    readonly seconds: number;
  }[];
  readonly pauses: readonly {
    readonly queue: string;
    readonly partition: string | null;
    readonly group: string | null;
    readonly reason: string | null;
    readonly by: string;
    readonly at: string;
    readonly seconds: number;
  }[];
  readonly pause_count: number;
  readonly expired_leases: {
    readonly count: number;
    readonly oldest: readonly {
      readonly queue: string;
      readonly partition: string;
      readonly group: string;
      readonly seconds: number;
    }[];
  };
}

export const doctorFacts: Statement<DoctorFacts> = {
  name: "queen_doctor_facts",
  text: "select queen.doctor_facts($1)::text",
  parameters: ["float8"],
  read: (row) => JSON.parse(row.text(0)) as DoctorFacts,
};
