/** The handlers of the spool: what waits on the disk, and what of it the database refused. */
import { BrokerError } from "@queen/protocol";
import type { Chosen } from "../spooling/conversation.ts";
import { checkFragment } from "../spooling/fragment.ts";
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
    const shown = {
      enabled: true,
      folder: this.#folder,
      databaseAway: spool.isAway,
      healthy: isHealthy,
      draining: isDraining,
      ...figures,
      rejectedCount: rejected,
      pagination: { limit, offset },
    };
    const head = bytesOf(JSON.stringify(shown)).slice(0, -1);
    return { status: 200, body: `${head},"rejected":[${listed.map((each) => this.#shown(each)).join()}]}` };
  }

  async retry(body: ChosenBody): Promise<Answer> {
    const { done, remaining } = await this.#spool.retry(chosen(body));
    return json(200, { success: true, retried: done, remaining });
  }

  async discard(body: ChosenBody): Promise<Answer> {
    const { done, remaining } = await this.#spool.discard(chosen(body));
    return json(200, { success: true, discarded: done, remaining });
  }

  /** One byte per character: the payload is shown as it came. */
  #shown({ id, record, reason, rejectedAtMs }: Rejected): string {
    const facts = {
      id,
      queue: record.queue,
      partition: record.partition,
      reason,
      spooledAt: new Date(record.spooledAtMs).toISOString(),
      rejectedAt: new Date(rejectedAtMs).toISOString(),
    };
    return `${bytesOf(JSON.stringify(facts)).slice(0, -1)},${this.#fragment(record.content)}}`;
  }

  #fragment(content: Buffer): string {
    try {
      const fragment = this.#seal.open(content);
      checkFragment(fragment);
      return fragment;
    } catch {
      return '"transactionId":null,"traceId":null,"producerSub":null,"data":null'; // it cannot be read
    }
  }
}

const bytesOf = (text: string): string => Buffer.from(text, "utf8").toString("latin1");

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
