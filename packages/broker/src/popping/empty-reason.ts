/** Why a pop gets nothing, as its client is told. */
import { TAKE } from "../postgres/statements.ts";
import type { Group } from "./group.ts";
import { hasPaused, isPaused, isStopped } from "./pausing.ts";
import type { Pop } from "./pop.ts";

export type EmptyReason =
  | "no_available_partition"
  | "partition_not_found"
  | "lease_held"
  | "window_buffer"
  | "delayed"
  | "retry_delay"
  | "timeout"
  | "paused";

/** By the status of a take that found its lane blocked. */
export const BLOCKED_BY: Readonly<Record<number, EmptyReason>> = {
  [TAKE.leased]: "lease_held",
  [TAKE.delayed]: "delayed",
  [TAKE.window]: "window_buffer",
  [TAKE.retryDelay]: "retry_delay",
};

const LANES_LOOKED_AT_MAX = 100;

/** Why lanes that have something are not delivered, where it is worth knowing. */
export function blockedBy(group: Group): EmptyReason | undefined {
  if (hasPaused(group)) return "paused";
  let looked = 0;
  for (const lane of group.lanes.values()) {
    if (lane.dueAtMs !== undefined && lane.blockedBy && lane.blockedBy !== "lease_held")
      return lane.blockedBy;
    if (++looked > LANES_LOOKED_AT_MAX) return undefined;
  }
  return undefined;
}

/** Why a pop that has waited long enough got nothing. */
export function reasonNow({ group, request, reason }: Pop): EmptyReason {
  const groupLane = request.partition === undefined ? undefined : group.laneNamed(request.partition);
  const paused = groupLane
    ? isPaused(groupLane)
    : request.partition === undefined
      ? hasPaused(group)
      : isStopped(group);
  if (paused) return "paused";
  return reason === "no_available_partition" || reason === "paused" ? "timeout" : reason;
}
