/** What the doctor found: about PostgreSQL and the broker, with what to do. */
import { api } from "../api.ts";
import { useLive } from "../live.ts";
import { link } from "../router.ts";
import type { Finding } from "../types.ts";
import { Badge, Problem, Section } from "./pieces.tsx";

const TONES = { ok: "good", warning: "warn", critical: "bad" } as const;
const ORDER = ["critical", "warning", "ok"];

/** `isShort`: only what is wrong. */
export function Doctor({ isShort = false }: { isShort?: boolean }) {
  const { body, error } = useLive<{ status: Finding["severity"]; findings: readonly Finding[] }>(
    api(["system", "doctor"]),
  );
  if (!body) return <Problem error={error} />;
  const found = body.findings
    .filter(({ severity }) => !isShort || severity !== "ok")
    .sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
  const good = body.findings.filter(({ severity }) => severity === "ok").length;
  return (
    <Section
      title={isShort ? "Database and broker" : "What the doctor says"}
      note={`${good} of ${body.findings.length} checks are well`}
      actions={isShort && <a href={link(["system"])}>All checks</a>}
    >
      {found.length > 0 && (
        <ul class="findings card">
          {found.map(({ code, severity, message, fix }) => (
            <li key={code}>
              <span>
                <Badge tone={TONES[severity]}>{severity}</Badge>
              </span>
              <div>
                <p>{message}</p>
                {fix && <p class="soft">{fix}</p>}
              </div>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}
