/**
 * Why a lane is not moving: the rules that keep its next message from a consumer group now, the one that
 * weighs most first, each with a sentence and with what to do about it. If none does, the lane is ready.
 */
import { leaseId, partitionId } from "@queen/protocol";
import { durationText } from "../operations/duration.ts";
import type { LaneFacts } from "../postgres/statements.ts";

export type { LaneFacts } from "../postgres/statements.ts";

export const LANE_RULES = [
  "empty",
  "pop_maintenance",
  "paused",
  "never_popped",
  "leased",
  "locked",
  "retry_delay",
  "window_buffer",
  "delayed",
  "exhausted",
  "ready",
] as const;

export interface LaneRule {
  readonly code: (typeof LANE_RULES)[number];
  readonly message: string;
  readonly advice: string;
  /** When it ends by itself, in milliseconds; null: nobody knows. */
  readonly dueAtMs: number | null;
}

export interface LaneName {
  readonly queue: string;
  readonly partition: string;
  readonly group: string;
}

export function laneRules(facts: LaneFacts, name: LaneName): readonly LaneRule[] {
  const rules = [
    ...empty(facts),
    ...popMaintenance(facts),
    ...paused(facts, name),
    ...neverPopped(facts, name),
    ...(facts.pending > 0 ? [...leased(facts), ...locked(facts), ...waiting(facts, name)] : []),
  ];
  return rules.length > 0 ? rules : [exhausted(facts) ?? ready(facts)];
}

/** When a pop can get the message at the earliest; null: now, or nobody knows. */
export function dueAtMs(rules: readonly LaneRule[]): number | null {
  const times = rules.flatMap((rule) => (rule.dueAtMs === null ? [] : [rule.dueAtMs]));
  return times.length > 0 ? Math.max(...times) : null;
}

function empty({ pending, partition }: LaneFacts): LaneRule[] {
  if (pending > 0) return [];
  const what =
    partition.next_offset === 0
      ? "nothing was ever pushed to this partition"
      : "the group has finished everything that was pushed";
  return [
    {
      code: "empty",
      message: `Empty: ${what}.`,
      advice: "If there should be messages, see which queue and partition the producers name.",
      dueAtMs: null,
    },
  ];
}

function popMaintenance({ pop_maintenance: isOn }: LaneFacts): LaneRule[] {
  if (!isOn) return [];
  return [
    {
      code: "pop_maintenance",
      message: "Pop maintenance is on: no pop gets anything.",
      advice: 'Switch it off: POST /api/v1/system/maintenance/pop {"enabled": false}.',
      dueAtMs: null,
    },
  ];
}

function paused(facts: LaneFacts, name: LaneName): LaneRule[] {
  return facts.pauses.map(({ partition, group, reason, by, at }) => {
    const what = [
      ...(group === null ? [] : [`the group ${JSON.stringify(group)}`]),
      ...(partition === null ? [] : ["the partition"]),
    ];
    const body = JSON.stringify({
      ...(group === null ? {} : { consumerGroup: group }),
      ...(partition === null ? {} : { partition }),
    });
    return {
      code: "paused",
      message:
        `Paused by ${by} since ${iso(at)} (${what.length > 0 ? what.join(" on ") : "the queue"})` +
        `${reason === null ? "." : `: ${reason}`}`,
      advice: `Resume it: POST /api/v1/queues/${encodeURIComponent(name.queue)}/resume ${body}.`,
      dueAtMs: null,
    };
  });
}

function neverPopped({ group_exists: exists, pending }: LaneFacts, { queue, group }: LaneName): LaneRule[] {
  if (exists || pending === 0) return [];
  return [
    {
      code: "never_popped",
      message: `Nobody has popped with the group ${JSON.stringify(group)} yet.`,
      advice:
        "Start a consumer of this group, or see how the groups are called: " +
        `GET /api/v1/consumer-groups?queue=${encodeURIComponent(queue)}.`,
      dueAtMs: null,
    },
  ];
}

function leased({ lease, now, partition }: LaneFacts): LaneRule[] {
  if (lease === null || Date.parse(lease.expires_at) <= Date.parse(now)) return [];
  const id = leaseId({ token: lease.token, partitions: [partition.id] });
  const held = lease.acquired_at === null ? "" : ` for ${seconds(between(lease.acquired_at, now))}`;
  return [
    {
      code: "leased",
      message: `Held by lease ${id}${held}, expires in ${seconds(between(now, lease.expires_at))}.`,
      advice:
        "Wait until its consumer acks or the lease expires. If the consumer is gone, give the lease back, " +
        `in psql: select queen.pop_sm_release('[{"leaseId": "${id}"}]');`,
      dueAtMs: Date.parse(lease.expires_at),
    },
  ];
}

function locked({ locked: holder, now }: LaneFacts): LaneRule[] {
  if (holder === null) return [];
  const { pid, since, state, query } = holder;
  const open = since === null ? "" : `, open for ${seconds(between(since, now))}`;
  return [
    {
      code: "locked",
      message:
        `Locked by the transaction of process ${pid}${open}${state === null ? "" : `, ${state}`}` +
        `${query ? `: ${query}` : "."}`,
      advice: `Have that transaction end; as a last resort: select pg_terminate_backend(${pid});`,
      dueAtMs: null,
    },
  ];
}

/** Rules of time. While the lane is leased they do not matter yet. */
function waiting(facts: LaneFacts, name: LaneName): LaneRule[] {
  if (leased(facts).length > 0) return [];
  return [...retryDelay(facts, name), ...windowBuffer(facts), ...delayed(facts)];
}

function retryDelay({ not_before: at, now, last_error: error, head, partition }: LaneFacts, name: LaneName) {
  const leftMs = at === null ? 0 : between(now, at);
  if (leftMs <= 0) return [];
  const message = head && `${partitionId(partition.id)}/${encodeURIComponent(head.transaction_id)}`;
  const body = JSON.stringify({ consumerGroup: name.group });
  return [
    {
      code: "retry_delay" as const,
      message: `Retry in ${seconds(leftMs)}${error === null ? "." : ` after: ${error}`}`,
      advice: `Wait, or have it tried at once: POST /api/v1/messages/${message}/retry ${body}.`,
      dueAtMs: Date.parse(at!),
    },
  ];
}

function windowBuffer({ queue, partition, now }: LaneFacts): LaneRule[] {
  if (queue.window_s === 0 || partition.last_at === null) return [];
  const quietAtMs = Date.parse(partition.last_at) + queue.window_s * 1000;
  const leftMs = quietAtMs - Date.parse(now);
  if (leftMs <= 0) return [];
  return [
    {
      code: "window_buffer",
      message: `Window buffer: quiet in ${seconds(leftMs)} if nothing more is pushed until then.`,
      advice: `Wait; a partition is delivered after ${queue.window_s} s of silence (windowBuffer).`,
      dueAtMs: quietAtMs,
    },
  ];
}

function delayed({ queue, place_at: at, now }: LaneFacts): LaneRule[] {
  if (queue.delay_s === 0 || at === null) return [];
  const readyAtMs = Date.parse(at) + queue.delay_s * 1000;
  if (readyAtMs <= Date.parse(now)) return [];
  return [
    {
      code: "delayed",
      message: `Delayed until ${new Date(readyAtMs).toISOString()}.`,
      advice: `Wait; a message is delivered ${queue.delay_s} s after its push (delayedProcessing).`,
      dueAtMs: readyAtMs,
    },
  ];
}

/** As take decides: a lease that ran out is an attempt, and one delivery more than the retries is allowed. */
function exhausted({ lease, place, attempts, queue }: LaneFacts): LaneRule | undefined {
  if (lease === null || place >= lease.until || queue.retry_limit < 0) return undefined;
  if (attempts + 1 <= queue.retry_limit + 1) return undefined;
  return {
    code: "exhausted",
    message: "Exhausted: leases ran out on it until its attempts were used up; the next pop buries it.",
    advice: "Pop: the message goes to the dead letters (GET /api/v1/dlq) and the lane moves on.",
    dueAtMs: null,
  };
}

function ready({ lease, now }: LaneFacts): LaneRule {
  const old = lease === null ? "" : ` The last lease ran out ${seconds(between(lease.expires_at, now))} ago.`;
  return {
    code: "ready",
    message: `Ready: a pop would get it now.${old}`,
    advice: "If it stays, no consumer of this group pops this queue: see that one runs.",
    dueAtMs: null,
  };
}

const iso = (time: string): string => new Date(time).toISOString();
const between = (from: string, to: string): number => Date.parse(to) - Date.parse(from);

const seconds = (ms: number): string => durationText(ms / 1000);
