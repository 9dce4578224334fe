/** What somebody may do, with which queues and until when: said of keys and of users alike. */
import type { Call, Option } from "../command.ts";

const ROLES = ["admin", "read-write", "read-only", "produce", "consume"];

export const grantOptions = (fallback: string): Option[] => [
  { flags: "--role <role>", summary: "What it allows", choices: ROLES, fallback },
  {
    flags: "--queue <pattern>",
    summary: "Only for queues like this; may be said again",
    isRepeatable: true,
  },
  { flags: "--expires <time>", summary: "Until then; for ever without it" },
];

/** As the interface takes it. */
export function grantOf(call: Call): object {
  const queues = call.texts("queue");
  return {
    role: call.text("role"),
    queues: queues.length === 0 ? null : queues,
    expiresAt: call.text("expires") ?? null,
  };
}
