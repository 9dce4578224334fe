/** What consumers noted about messages, the oldest first. */
import { groupName } from "../format.ts";
import { link } from "../router.ts";
import type { Trace } from "../types.ts";
import { messageLink } from "./message-table.tsx";
import { Badge, Empty, Time } from "./pieces.tsx";

export interface NamedTrace extends Trace {
  readonly transaction_id: string;
  readonly partition_id: string;
  readonly queue_name: string;
  readonly partition_name: string;
}

export function Timeline({ traces }: { traces: readonly (Trace | NamedTrace)[] }) {
  if (traces.length === 0) {
    return (
      <div class="card">
        <Empty title="Nothing was noted" />
      </div>
    );
  }
  return (
    <ol class="timeline card">
      {traces.map((trace) => (
        <li key={trace.id}>
          <div class="row">
            <Time at={trace.created_at} />
            <Badge tone={trace.event_type === "error" ? "bad" : "accent"}>{trace.event_type}</Badge>
            <span class="soft">{groupName(trace.consumer_group)}</span>
            {"transaction_id" in trace && (
              <a
                class="mono"
                href={messageLink({ partitionId: trace.partition_id, transactionId: trace.transaction_id })}
              >
                {trace.transaction_id}
              </a>
            )}
            {trace.trace_names.map((name) => (
              <a key={name} href={link(["traces", name])}>
                {name}
              </a>
            ))}
          </div>
          <code>{JSON.stringify(trace.data)}</code>
        </li>
      ))}
    </ol>
  );
}
