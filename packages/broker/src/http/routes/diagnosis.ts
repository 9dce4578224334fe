/** The routes that say what is wrong. */
import { z } from "zod";
import { LANE_RULES } from "../../control/lane-rules.ts";
import type { DiagnosisRoutes } from "../diagnosis.ts";
import { integer, named } from "../parameters.ts";
import { type Route, route } from "../route.ts";
import { count, id, time, timeOrNull } from "./shapes.ts";

const OLD_TRANSACTION_S = 60;

const rule = {
  code: z.enum(LANE_RULES),
  message: z.string(),
  advice: z.string(),
};
const severity = z.enum(["ok", "warning", "critical"]);

export function diagnosisRoutes(diagnosis: DiagnosisRoutes): Route[] {
  return [
    route({
      tag: "Queues",
      method: "GET",
      path: "/api/v1/queues/:queue/partitions/:partition/explain",
      access: "read",
      summary: "Why a partition does not move for a group",
      query: { consumerGroup: named("The group; queue mode if absent") },
      answers: {
        200: {
          summary: "The rule that keeps the next message back, and everything that decides about it",
          shape: z.object({
            queue: z.string(),
            partition: z.string(),
            partitionId: id,
            consumerGroup: z.string(),
            ...rule,
            also: z.array(z.object(rule)).describe("Rules that would keep it back if the first did not"),
            dueAt: timeOrNull.describe("When the rules of time are over; null: nobody knows, or now"),
            head: z
              .object({ id, transactionId: z.string(), createdAt: time, ageSeconds: z.number() })
              .nullable()
              .describe("The first message that the group has not finished"),
            pending: count.describe("Messages that the group has not finished"),
            finishedAhead: count.describe("Messages behind the head that it has finished already"),
            lease: z
              .object({
                leaseId: z.string(),
                acquiredAt: timeOrNull,
                expiresAt: time,
                isActive: z.boolean(),
                firstMessageId: id.nullable(),
                lastMessageId: id,
                unfinished: count,
              })
              .nullable()
              .describe("The last lease, which may have run out; null: it was ended"),
            attempts: z
              .object({
                failed: count,
                retryLimit: count.nullable().describe("Null: it is retried until it succeeds"),
                lastErrors: z.array(z.object({ at: time, error: z.string() })),
              })
              .describe("Of the head"),
            checkedAt: time,
          }),
        },
      },
      handle: (request, { query }) => diagnosis.explain(request, query.consumerGroup),
    }),
    route({
      tag: "System",
      method: "GET",
      path: "/api/v1/system/doctor",
      followedEveryMs: 10_000,
      access: "admin",
      summary: "What is wrong with PostgreSQL and the broker, and what fixes it",
      query: {
        oldTransactionSeconds: integer("Transactions that are open for longer are findings", {
          fallback: OLD_TRANSACTION_S,
          min: 0,
          max: 86_400,
        }),
      },
      answers: {
        200: {
          summary: "One finding per thing that was looked at, good or bad",
          shape: z.object({
            status: severity.describe("The worst of them"),
            checkedAt: time,
            findings: z.array(
              z.object({
                code: z.string(),
                severity,
                message: z.string(),
                fix: z.string().nullable(),
                details: z.record(z.string(), z.unknown()),
              }),
            ),
          }),
        },
      },
      handle: (_request, { query }) => diagnosis.doctor(query.oldTransactionSeconds),
    }),
  ];
}
