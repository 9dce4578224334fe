/** The handlers that say what is wrong: with one lane, or with the server and the broker. */
import { leaseId, messageId, partitionId, QUEUE_MODE_GROUP } from "@queen/protocol";
import type { Diagnosis } from "../control/diagnosis.ts";
import { worst } from "../control/doctor/finding.ts";
import { dueAtMs, type LaneFacts } from "../control/lane-rules.ts";
import { checkName } from "../operations/names.ts";
import { json } from "./answers.ts";
import type { Answer, Request } from "./route.ts";

export class DiagnosisRoutes {
  readonly #diagnosis: Diagnosis;

  constructor(diagnosis: Diagnosis) {
    this.#diagnosis = diagnosis;
  }

  async explain(request: Request, consumerGroup: string | undefined): Promise<Answer> {
    const queue = checkName(request.params.queue, "queue", { allowEmpty: true });
    const partition = checkName(request.params.partition, "partition");
    const group = consumerGroup ?? QUEUE_MODE_GROUP;
    const { facts, rules } = await this.#diagnosis.lane({ queue, partition, group });
    const [{ code, message, advice }, ...also] = rules.map((rule) => ({
      code: rule.code,
      message: rule.message,
      advice: rule.advice,
    })) as [Explained, ...Explained[]];
    const due = dueAtMs(rules);
    return json(200, {
      queue,
      partition,
      partitionId: partitionId(facts.partition.id),
      consumerGroup: group,
      code,
      message,
      advice,
      also,
      dueAt: due === null ? null : new Date(due).toISOString(),
      head: head(facts),
      pending: facts.pending,
      finishedAhead: facts.finished_ahead,
      lease: lease(facts),
      attempts: {
        failed: facts.attempts,
        retryLimit: facts.queue.retry_limit < 0 ? null : facts.queue.retry_limit,
        lastErrors: facts.errors.map(({ at, error }) => ({ at: iso(at), error })),
      },
      checkedAt: iso(facts.now),
    });
  }

  async doctor(oldTransactionSeconds: number): Promise<Answer> {
    const { now, findings } = await this.#diagnosis.doctor(oldTransactionSeconds);
    return json(200, { status: worst(findings), checkedAt: iso(now), findings });
  }
}

interface Explained {
  readonly code: string;
  readonly message: string;
  readonly advice: string;
}

const iso = (time: string): string => new Date(time).toISOString();

function head({ head: message, partition, now }: LaneFacts): Record<string, unknown> | null {
  if (message === null) return null;
  return {
    id: messageId(partition.id, message.offset),
    transactionId: message.transaction_id,
    createdAt: iso(message.created_at),
    ageSeconds: Math.max(0, (Date.parse(now) - Date.parse(message.created_at)) / 1000),
  };
}

function lease({ lease: held, partition, place, now }: LaneFacts): Record<string, unknown> | null {
  if (held === null) return null;
  return {
    leaseId: leaseId({ token: held.token, partitions: [partition.id] }),
    acquiredAt: held.acquired_at === null ? null : iso(held.acquired_at),
    expiresAt: iso(held.expires_at),
    isActive: Date.parse(held.expires_at) > Date.parse(now),
    firstMessageId: place < held.until ? messageId(partition.id, place) : null,
    lastMessageId: messageId(partition.id, held.until - 1),
    unfinished: Math.max(0, held.unfinished),
  };
}
