/** The routes of the data plane. */
import { POP_BATCH_MAX, POP_PARTITIONS_MAX } from "@queen/protocol";
import { z } from "zod";
import type { DataPlane } from "../data-plane.ts";
import { flag, integer, named, queueName, text } from "../parameters.ts";
import { type AnswerShape, type Route, route } from "../route.ts";
import { count, id, payload, time, traceparent } from "./shapes.ts";

export interface PopDefaults {
  readonly timeoutMs: number;
  readonly batch: number;
}

const WAIT_MS_MAX = 3_600_000;
const LEASE_SECONDS_DEFAULT = 60;

const pushItem = z.looseObject({
  queue: z.string().max(255),
  partition: z.string().min(1).max(255).optional().describe("`Default` if absent"),
  transactionId: z.string().max(255).nullable().optional().describe("A new UUID if absent, null or empty"),
  traceId: z.string().nullable().optional(),
  traceparent: z.unknown().optional().describe("W3C trace context; what is none is ignored"),
  payload: payload.optional(),
});

const pushResults = z.array(
  z.object({
    index: count,
    status: z
      .enum(["queued", "duplicate", "buffered"])
      .describe("buffered: on the broker's disk, not stored yet"),
    transaction_id: z.string(),
    message_id: id.optional().describe("Not known of a buffered message"),
    partition_id: id.optional(),
    trace_id: z.string().nullable().optional(),
    queueName: z.string(),
    queue: z.string().optional().describe("With partition and transactionId: of a buffered message"),
    partition: z.string().optional(),
    transactionId: z.string().optional(),
  }),
);

const popped = z.object({
  success: z.literal(true),
  queue: z.string(),
  partition: z.string().describe("Of the first message"),
  partitionId: id,
  leaseId: z.string().describe("Empty with autoAck"),
  consumerGroup: z.string(),
  partitionsClaimed: count,
  messages: z.array(
    z.object({
      id,
      transactionId: z.string(),
      traceId: z.string().nullable(),
      producerSub: z.string().nullable(),
      traceparent,
      data: payload,
      createdAt: time,
      partitionId: id,
      partition: z.string(),
      leaseId: z.string(),
      consumerGroup: z.string(),
    }),
  ),
});

const ack = z.looseObject({
  transactionId: z.string(),
  partitionId: z.string(),
  leaseId: z.string().nullable().optional(),
  status: z.string().nullable().optional().describe("completed, success, failed, retry or dlq"),
  error: z.string().nullable().optional(),
});

const range = z.looseObject({
  firstId: z.string().describe("The `id` of a message that was popped"),
  lastId: z.string().describe("The `id` of that message, or of a later one of the same partition"),
  leaseId: z.string().describe("Of the pop that delivered them"),
  status: z.string().nullable().optional().describe("completed, or success"),
});

const ackResult = z.object({
  index: count,
  transactionId: z.string(),
  success: z.boolean(),
  error: z.string().nullable(),
  queueName: z.string().nullable(),
  partitionName: z.string().nullable(),
  leaseReleased: z.boolean(),
  dlq: z.boolean(),
});

const rangeResult = ackResult
  .omit({ transactionId: true })
  .extend({ firstId: id, lastId: id, messages: count });

const transactionBody = z.looseObject({
  operations: z
    .array(
      z.union([
        z.looseObject({ type: z.literal("push"), items: z.array(pushItem) }),
        ack.extend({ type: z.literal("ack"), consumerGroup: z.string().nullable().optional() }),
      ]),
    )
    .min(1),
  requiredLeases: z.array(z.string()).nullable().optional(),
});

const transactionResults = z.object({
  transactionId: id,
  success: z.boolean(),
  error: z.string().optional(),
  code: z.string().optional(),
  results: z.array(
    z.object({
      index: count,
      type: z.enum(["push", "ack"]),
      success: z.boolean(),
      status: z.enum(["queued", "duplicate"]).optional(),
      transactionId: z.string(),
      messageId: id.optional(),
      partitionId: id.optional(),
      queueName: z.string().optional(),
      error: z.string().nullable().optional(),
      dlq: z.boolean().optional(),
    }),
  ),
});

const popAnswers: Record<number, AnswerShape> = {
  200: { summary: "Messages, leased to the caller unless autoAck", shape: popped },
  204: { summary: "Nothing to deliver", headers: { "Queen-Empty-Reason": "Why nothing was delivered" } },
};

export function dataPlaneRoutes(data: DataPlane, defaults: PopDefaults): Route[] {
  const pop = {
    batch: integer("Messages at most, over all partitions", {
      fallback: defaults.batch,
      min: 1,
      max: POP_BATCH_MAX,
    }),
    partitions: integer("Partitions at most, under one lease", {
      fallback: 1,
      min: 1,
      max: POP_PARTITIONS_MAX,
    }),
    wait: flag("Long poll"),
    timeout: integer("Milliseconds to wait", { fallback: defaults.timeoutMs, min: 0, max: WAIT_MS_MAX }),
    consumerGroup: named("The group that reads; without one, queue mode"),
    autoAck: flag("Finished at delivery, without a lease: at most once"),
    subscriptionMode: text("At a group's first pop: `new` starts with what is pushed from now on"),
    subscriptionFrom: text("At a group's first pop: `now`, or a time to start from"),
  };
  const facts = { tag: "Data plane", scope: "handler" } as const;
  return [
    route({
      ...facts,
      method: "POST",
      path: "/api/v1/push",
      access: "produce",
      summary: "Stores messages; queues and partitions are made as needed",
      bytes: z.looseObject({ items: z.array(pushItem) }),
      answers: { 201: { summary: "What became of each item, in their order", shape: pushResults } },
      handle: (request) => data.push(request),
    }),
    route({
      ...facts,
      method: "GET",
      path: "/api/v1/pop",
      access: "consume",
      summary: "Takes messages by queue and partition, or by namespace and task",
      query: {
        ...pop,
        queue: queueName("The queue"),
        partition: named("One partition of the queue"),
        namespace: text("Any queue of the namespace, those of higher priority first"),
        task: text("Any queue of the task"),
      },
      answers: popAnswers,
      handle: (request, { query }) => data.popAny(request, query),
    }),
    route({
      ...facts,
      method: "GET",
      path: "/api/v1/pop/queue/:queue",
      access: "consume",
      summary: "Takes messages of any partition of the queue",
      query: pop,
      answers: popAnswers,
      handle: (request, { query }) => data.popQueue(request, query),
    }),
    route({
      ...facts,
      method: "GET",
      path: "/api/v1/pop/queue/:queue/partition/:partition",
      access: "consume",
      summary: "Takes messages of one partition",
      query: pop,
      answers: popAnswers,
      handle: (request, { query }) => data.popQueue(request, query),
    }),
    route({
      ...facts,
      method: "POST",
      path: "/api/v1/ack",
      access: "consume",
      summary: "Finishes or fails one message",
      bytes: ack.extend({ consumerGroup: z.string().nullable().optional() }),
      answers: { 200: { summary: "An array of one result", shape: z.array(ackResult) } },
      handle: (request) => data.ack(request),
    }),
    route({
      ...facts,
      method: "POST",
      path: "/api/v1/ack/batch",
      access: "consume",
      summary: "Finishes or fails many messages",
      bytes: z.looseObject({
        acknowledgments: z
          .array(z.union([ack, range]))
          .describe(
            "Each of one message, or of a range: all that stand between two in a lease are completed",
          ),
        consumerGroup: z.string().nullable().optional(),
      }),
      answers: {
        200: { summary: "One result per acknowledgment", shape: z.array(z.union([ackResult, rangeResult])) },
      },
      handle: (request) => data.ackBatch(request),
    }),
    route({
      ...facts,
      method: "POST",
      path: "/api/v1/transaction",
      access: "write",
      summary: "Pushes and acks in one commit, all or nothing",
      bytes: transactionBody,
      answers: {
        200: { summary: "Committed", shape: transactionResults },
        409: { summary: "Refused; nothing was kept", shape: transactionResults },
      },
      handle: (request) => data.transaction(request),
    }),
    route({
      ...facts,
      method: "POST",
      path: "/api/v1/lease/:leaseId/extend",
      access: "consume",
      summary: "Extends every partition of the lease that is still held",
      body: z.looseObject({
        seconds: z
          .int("seconds must be a whole number from 1 on.")
          .min(1, "seconds must be a whole number from 1 on.")
          .nullable()
          .default(LEASE_SECONDS_DEFAULT),
      }),
      answers: {
        200: {
          summary: "An array of one",
          headers: { "Queen-Lease-Expires-At": "The same time as `newExpiresAt`" },
          shape: z.array(
            z.object({
              index: count,
              leaseId: z.string(),
              success: z.boolean(),
              error: z.string().nullable(),
              expiresAt: time.nullable(),
              newExpiresAt: time.nullable(),
            }),
          ),
        },
      },
      handle: (request, { body }) => data.extendLease(request, body.seconds ?? LEASE_SECONDS_DEFAULT),
    }),
  ];
}
