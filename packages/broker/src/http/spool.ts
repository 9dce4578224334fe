/** The handlers of the spool: what waits on the disk, and what of it the database refused. */
import { BrokerError } from "@queen/protocol";
import { traceIdJson, transactionIdJson } from "../operations/segment.ts";
import type { Chosen } from "../spooling/conversation.ts";
import type { RecordSeal } from "../spooling/record-seal.ts";
import type { Rejected } from "../spooling/rejected-records.ts";
import type { Spool } from "../spooling/spool.ts";
import { json } from "./answers.ts";
import type { Answer } from "./route.ts";

export interface ChosenBody {
  readonly ids?: readonly string[] | undefined;
  readonly all?: boolean | undefined;
}

export class SpoolRoutes {
  readonly #spool: Spool;
  readonly #seal: RecordSeal;
  readonly #folder: string | null;

  constructor(spool: Spool, seal: RecordSeal, folder: string | null) {
    this.#spool = spool;
    this.#seal = seal;
    this.#folder = folder;
  }

  async show({ limit, offset }: { readonly limit: number; readonly offset: number }): Promise<Answer> {
    const spool = this.#spool;
    if (!spool.isEnabled) return json(200, { enabled: false, folder: null, databaseAway: false, ...EMPTY });
    const [{ isHealthy, isDraining, rejected, ...figures }, listed] = await Promise.all([
      spool.figures(),
      spool.rejected(limit, offset),
    ]);
    return json(200, {
      enabled: true,
      folder: this.#folder,
      databaseAway: spool.isAway,
      healthy: isHealthy,
      draining: isDraining,
      ...figures,
      rejectedCount: rejected,
      rejected: listed.map((each) => this.#shown(each)),
      pagination: { limit, offset },
    });
  }

  async retry(body: ChosenBody): Promise<Answer> {
    const { done, remaining } = await this.#spool.retry(chosen(body));
    return json(200, { success: true, retried: done, remaining });
  }

  async discard(body: ChosenBody): Promise<Answer> {
    const { done, remaining } = await this.#spool.discard(chosen(body));
    return json(200, { success: true, discarded: done, remaining });
  }

  #shown({ id, record, reason, rejectedAtMs }: Rejected): Record<string, unknown> {
    return {
      id,
      queue: record.queue,
      partition: record.partition,
      ...this.#content(record.content),
      reason,
      spooledAt: new Date(record.spooledAtMs).toISOString(),
      rejectedAt: new Date(rejectedAtMs).toISOString(),
    };
  }

  /** What can be read of a message that may be anything. */
  #content(content: Buffer): { transactionId: string | null; traceId: string | null; data: unknown } {
    try {
      const fragment = this.#seal.open(content);
      const text = (part: string): string => Buffer.from(part, "latin1").toString("utf8");
      const { data } = JSON.parse(`{${text(fragment)}}`) as { data: unknown };
      return {
        transactionId: JSON.parse(text(transactionIdJson(fragment))) as string,
        traceId: JSON.parse(traceIdJson(fragment)) as string | null,
        data,
      };
    } catch {
      return { transactionId: null, traceId: null, data: null };
    }
  }
}

const EMPTY = {
  healthy: false,
  draining: false,
  pending: 0,
  bytes: 0,
  files: 0,
  bytesMax: 0,
  rejectedBytes: 0,
  damaged: 0,
  rejectedCount: 0,
  rejected: [],
  pagination: { limit: 0, offset: 0 },
};

function chosen({ ids, all }: ChosenBody): Chosen {
  if (ids) return { ids };
  if (all) return { all: true };
  throw new BrokerError("VALIDATION_FAILED", 'Say which: {"ids": ["…"]}, or {"all": true}.');
}
