/**
 * A reader pops messages as a queue's settings say, and checks them against the queue's schema. What does not
 * match is dead-lettered at once, with the reason.
 */
import type { Core } from "./core.ts";
import { affinityKey, type EmptyReason, type PopRequest } from "./data-plane.ts";
import type { Message } from "./message.ts";
import { describeIssues, type StandardSchema, validate } from "./standard-schema.ts";
import { pause } from "./transport/pause.ts";
import { isTransient } from "./transport/retry.ts";

export interface Read<T> {
  readonly messages: readonly Message<T>[];
  /** Those that did not match count, too. */
  readonly count: number;
  readonly emptyReason: EmptyReason | undefined;
  readonly retryAfterMillis: number;
}

export async function read<T>(
  core: Core,
  request: PopRequest,
  schema: StandardSchema<unknown, T> | undefined,
  options: { signal?: AbortSignal | undefined } = {},
): Promise<Read<T>> {
  const { messages, ...rest } = await core.data.pop(request, options);
  if (schema === undefined) return { messages: messages as Message<T>[], count: messages.length, ...rest };
  const valid: Message<T>[] = [];
  const invalid: { message: Message; error: string }[] = [];
  for (const message of messages) {
    const result = await validate(schema, message.data);
    if (result.issues === undefined) valid.push({ ...message, data: result.value });
    else invalid.push({ message, error: describeIssues(result.issues) });
  }
  if (invalid.length > 0) await deadLetter(core, invalid);
  return { messages: valid, count: messages.length, ...rest };
}

// After a read that failed; the transport has tried again by itself before that.
const PAUSE_MILLIS_FIRST = 500;
const PAUSE_MILLIS_MAX = 5_000;

/** Reads, and goes on trying while the brokers are away; only the signal ends that. */
export async function readPatiently<T>(
  core: Core,
  request: PopRequest,
  schema: StandardSchema<unknown, T> | undefined,
  signal: AbortSignal,
): Promise<Read<T>> {
  for (let pauseMillis = PAUSE_MILLIS_FIRST; ; pauseMillis = Math.min(PAUSE_MILLIS_MAX, pauseMillis * 2)) {
    try {
      return await read(core, request, schema, { signal });
    } catch (error) {
      if (signal.aborted || !isTransient(error)) throw error;
      core.warn(`A pop of ${request.queue ?? "queues"} failed; it is tried again.`, error);
      await pause(pauseMillis, signal);
    }
  }
}

async function deadLetter(
  core: Core,
  invalid: readonly { message: Message; error: string }[],
): Promise<void> {
  const { queue, consumerGroup, leaseId } = invalid[0]!.message;
  try {
    if (leaseId !== "") {
      const acks = invalid.map(({ message, error }) => ({ message, status: "dlq" as const, error }));
      const results = await core.acker.ack(consumerGroup, affinityKey(queue, undefined, consumerGroup), acks);
      const refused = results.find((result) => !result.success);
      if (refused) throw new Error(refused.error ?? "refused");
      return;
    }
    // Finished at delivery: there is no lease to ack with.
    for (const { message, error } of invalid) {
      const path = `/api/v1/messages/${message.partitionId}/${encodeURIComponent(message.transactionId)}/dlq`;
      await core.transport.send("POST", path, { query: { id: message.id }, body: { consumerGroup, error } });
    }
  } catch (error) {
    core.warn(
      `Messages of ${queue} that do not match the schema were not dead-lettered; they come again.`,
      error,
    );
  }
}
