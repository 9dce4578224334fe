/** The five operations of the data plane, as the wire has them: push, pop, ack, lease, transaction. */
import { LeaseLostError } from "./errors.ts";
import type { AckResult, AckStatus, Message, NewMessage, PushResult } from "./message.ts";
import { DEFAULT_PARTITION, QUEUE_MODE_GROUP } from "./message.ts";
import { sentAcks } from "./sent-acks.ts";
import { retryAfterMillis } from "./transport/call.ts";
import type { Transport } from "./transport/transport.ts";
import { uuidV7 } from "./uuid.ts";

/** An item of a push, as it is sent. */
export interface PushItem {
  readonly queue: string;
  readonly partition: string;
  readonly transactionId: string;
  readonly traceId?: string;
  readonly traceparent?: string;
  readonly payload: unknown;
}

export interface PopRequest {
  readonly queue: string | undefined;
  readonly partition: string | undefined;
  readonly namespace: string | undefined;
  readonly task: string | undefined;
  readonly group: string | undefined;
  readonly batch: number;
  readonly partitions: number;
  readonly wait: boolean;
  /** How long the broker waits for a message, with `wait`. */
  readonly timeoutMillis: number;
  readonly autoAck: boolean;
  readonly subscriptionMode: string | undefined;
  readonly subscriptionFrom: string | undefined;
}

export interface Popped {
  readonly messages: readonly Message[];
  /** Why there are none. */
  readonly emptyReason: EmptyReason | undefined;
  /** Do not ask again before. */
  readonly retryAfterMillis: number;
}

export type EmptyReason =
  | "no_available_partition"
  | "partition_not_found"
  | "lease_held"
  | "delayed"
  | "window_buffer"
  | "retry_delay"
  | "paused"
  | "timeout";

export interface Ack {
  readonly message: Pick<Message, "id" | "transactionId" | "partitionId" | "leaseId">;
  readonly status: AckStatus;
  readonly error?: string | undefined;
}

export interface TransactionResult {
  readonly transactionId: string;
  readonly pushed: readonly PushResult[];
  readonly acked: readonly { readonly transactionId: string; readonly dlq: boolean }[];
}

export interface WirePushResult {
  readonly status: PushResult["status"];
  readonly transaction_id: string;
  readonly message_id?: string;
  readonly partition_id?: string;
}

interface WirePopped {
  readonly queue: string;
  readonly messages: readonly Omit<Message, "queue">[];
}

interface WireTransaction {
  readonly transactionId: string;
  readonly results: readonly {
    readonly type: "push" | "ack";
    readonly status?: "queued" | "duplicate";
    readonly transactionId: string;
    readonly messageId?: string;
    readonly partitionId?: string;
    readonly dlq?: boolean;
  }[];
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

// The broker takes 10,000 items; a request of this size is answered well before its timeout.
const PUSH_ITEMS_MAX = 5_000;
// A long poll is answered at its time; this much later it counts as lost.
const LONG_POLL_GRACE_MILLIS = 5_000;
// About half a minute of trying: a broker that restarts is back by then, and the lease is renewed meanwhile.
const ACK_RETRIES = 10;

export function pushItem(queue: string, partition: string | undefined, message: NewMessage): PushItem {
  const item = {
    queue,
    partition: message.partition ?? partition ?? DEFAULT_PARTITION,
    transactionId: message.transactionId || uuidV7(),
    // JSON has no undefined, and a field without a value would be lost.
    payload: message.data === undefined ? null : message.data,
  };
  return message.traceId === undefined ? item : { ...item, traceId: message.traceId };
}

/** Requests of one key are of one lane, or of one queue and group. */
export const affinityKey = (queue = "*", partition = "*", group = QUEUE_MODE_GROUP): string =>
  `${queue}:${partition}:${group}`;

export class DataPlane {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * The items are JSON. Every one has a transactionId, so a push without an answer is sent again without harm. Results come
   * in the order of the items.
   */
  async push(
    items: readonly string[],
    key: string,
    options: CallOptions = {},
  ): Promise<readonly WirePushResult[]> {
    const results: (readonly WirePushResult[])[] = [];
    for (let from = 0; from < items.length; from += PUSH_ITEMS_MAX) {
      const answer = await this.#transport.send<readonly WirePushResult[]>("POST", "/api/v1/push", {
        ...given(options),
        json: `{"items":[${items.slice(from, from + PUSH_ITEMS_MAX).join(",")}]}`,
        repeatable: true,
        affinityKey: key,
      });
      results.push(answer.body);
    }
    return results.length === 1 ? results[0]! : results.flat();
  }

  /** Where requests of a key belong, see `Transport.home`. */
  home(key: string): string {
    return this.#transport.home(key);
  }

  async pop(request: PopRequest, options: CallOptions & { retries?: number } = {}): Promise<Popped> {
    const { queue, partition, group, timeoutMillis } = request;
    // Names are in the query: a path would lose a queue that is called "..".
    const answer = await this.#transport.send<WirePopped | null>("GET", "/api/v1/pop", {
      ...given(options),
      query: {
        queue,
        partition,
        namespace: request.namespace,
        task: request.task,
        consumerGroup: group,
        batch: request.batch,
        partitions: request.partitions > 1 ? request.partitions : undefined,
        wait: request.wait || undefined,
        timeout: request.wait ? timeoutMillis : undefined,
        autoAck: request.autoAck || undefined,
        subscriptionMode: request.subscriptionMode,
        subscriptionFrom: request.subscriptionFrom,
      },
      affinityKey: affinityKey(queue, partition, group),
      ...(request.wait ? { timeoutMillis: timeoutMillis + LONG_POLL_GRACE_MILLIS } : {}),
      ...(options.retries === undefined ? {} : { retries: options.retries }),
    });
    const { body } = answer;
    const messages = body?.messages.map((message) => Object.assign(message, { queue: body.queue })) ?? [];
    // What the headers say is for who got nothing, and reading them costs as much as a message.
    if (messages.length > 0) return { messages, emptyReason: undefined, retryAfterMillis: 0 };
    return {
      messages,
      emptyReason: (answer.headers.get("queen-empty-reason") as EmptyReason | null) ?? undefined,
      retryAfterMillis: retryAfterMillis(answer.headers.get("retry-after")) ?? 0,
    };
  }

  /** One result per ack, in their order. With a lease, an ack that is sent again changes nothing more. */
  async ack(
    group: string,
    acks: readonly Ack[],
    key?: string,
    options: CallOptions = {},
  ): Promise<AckResult[]> {
    const sent = sentAcks(acks);
    const repeatable = acks.every(({ message, status }) => message.leaseId !== "" || status === "completed");
    const answer = await this.#transport.send<Omit<AckResult, "transactionId">[]>(
      "POST",
      "/api/v1/ack/batch",
      {
        ...given(options),
        body: { consumerGroup: group, acknowledgments: sent.map(({ json }) => json) },
        repeatable,
        retries: ACK_RETRIES,
        ...(key === undefined ? {} : { affinityKey: key }),
      },
    );
    const results: AckResult[] = [];
    for (const [index, { success, error, leaseReleased, dlq }] of answer.body.entries())
      for (const end = results.length + sent[index]!.acks; results.length < end; ) {
        const { transactionId } = acks[results.length]!.message;
        results.push({ transactionId, success, error, leaseReleased, dlq });
      }
    return results;
  }

  /** Returns when the lease ends then; rejects with LeaseLostError if nobody holds it. */
  async extend(leaseId: string, seconds: number, key?: string, options: CallOptions = {}): Promise<string> {
    const path = `/api/v1/lease/${encodeURIComponent(leaseId)}/extend`;
    const { body } = await this.#transport.send<
      [{ success: boolean; error: string | null; newExpiresAt: string | null }]
    >("POST", path, {
      ...given(options),
      body: { seconds },
      repeatable: true,
      ...(key === undefined ? {} : { affinityKey: key }),
    });
    const [{ success, error, newExpiresAt }] = body;
    if (!success || newExpiresAt === null) throw new LeaseLostError(leaseId, error ?? "Lease not found");
    return newExpiresAt;
  }

  /**
   * All or nothing. One that committed and is sent again is a success to the broker if it acked nothing but
   * `completed`, because every push has a transactionId; others are not sent again when in doubt.
   */
  async transaction(
    items: readonly PushItem[],
    acks: readonly (Ack & { readonly group: string })[],
    options: CallOptions = {},
  ): Promise<TransactionResult> {
    const operations = [
      ...acks.map(({ message, status, error, group }) => ({
        type: "ack",
        transactionId: message.transactionId,
        partitionId: message.partitionId,
        consumerGroup: group,
        status,
        ...(message.leaseId === "" ? {} : { leaseId: message.leaseId }),
        ...(error === undefined ? {} : { error }),
      })),
      ...(items.length === 0 ? [] : [{ type: "push", items }]),
    ];
    const leases = new Set(acks.map(({ message }) => message.leaseId).filter((lease) => lease !== ""));
    const { body } = await this.#transport.send<WireTransaction>("POST", "/api/v1/transaction", {
      ...given(options),
      body: { operations, requiredLeases: [...leases] },
      repeatable: acks.every(({ message, status }) => message.leaseId !== "" && status === "completed"),
    });
    return {
      transactionId: body.transactionId,
      pushed: body.results
        .filter(({ type }) => type === "push")
        .map(({ status, transactionId, messageId, partitionId }, index) => ({
          index,
          status: status ?? "queued",
          transactionId,
          messageId,
          partitionId,
        })),
      acked: body.results
        .filter(({ type }) => type === "ack")
        .map(({ transactionId, dlq }) => ({ transactionId, dlq: dlq === true })),
    };
  }
}

const given = ({ signal, headers }: CallOptions) => ({
  ...(signal === undefined ? {} : { signal }),
  ...(headers === undefined ? {} : { headers }),
});
