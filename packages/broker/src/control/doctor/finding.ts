/** A finding: one thing that the doctor looked at, good or bad. A bad one says what fixes it. */
import type { SpoolFigures } from "../spool-figures.ts";

export type { DoctorFacts } from "../../postgres/statements.ts";

export type Severity = "ok" | "warning" | "critical";

export interface Finding {
  readonly code: string;
  readonly severity: Severity;
  readonly message: string;
  /** A statement for psql, a request or a setting; null: there is nothing to fix. */
  readonly fix: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

export interface BrokerFacts {
  /** By how much the broker's clock is ahead of the database's. */
  readonly clockAheadMs: number;
  readonly bus: "off" | "connecting" | "listening" | "silent";
  readonly busPeers: number;
  readonly spool: SpoolFigures;
  /** Connections that the whole broker opens at most. */
  readonly connectionsNeeded: number;
}

export function worst(findings: readonly Finding[]): Severity {
  const order: readonly Severity[] = ["critical", "warning", "ok"];
  return order.find((severity) => findings.some((finding) => finding.severity === severity)) ?? "ok";
}

export const finding = (
  code: string,
  severity: Severity,
  message: string,
  fix: string,
  details: Finding["details"],
): Finding => ({ code, severity, message, fix: severity === "ok" ? null : fix, details });

export const graded = (value: number, limits: { warning: number; critical: number }): Severity =>
  value >= limits.critical ? "critical" : value >= limits.warning ? "warning" : "ok";

export const numbered = (count: number, one: string, many: string): string =>
  count === 1 ? `One ${one}` : `${count} ${many}`;

export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;
