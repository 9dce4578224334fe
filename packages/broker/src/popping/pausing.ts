/**
 * What pauses do to pops. A lane that may have work and is paused for a group is held: it stands in no ring,
 * nobody takes it, and it is ready again at the moment when the pause ends. Pops go on with other lanes; one
 * that finds nothing else waits, or is told that something is paused.
 */
import type { Group } from "./group.ts";
import type { GroupLane } from "./group-lane.ts";

export function isPaused({ lane, group }: GroupLane): boolean {
  return group.id !== undefined && lane.queue.pauses.stopLane(lane.id, group.id);
}

/** Whether the group gets nothing of its whole queue. */
export function isStopped({ id, queue }: Group): boolean {
  return id !== undefined && (queue?.pauses.stopGroup(id) ?? false);
}

/** Whether something that may have work is kept from the group by a pause. */
export const hasPaused = (group: Group): boolean => group.held.size > 0 || isStopped(group);

/** After pauses changed: the lanes that are to be held from now on, and those that no longer are. */
export function pausesChanged(group: Group): { paused: GroupLane[]; resumed: GroupLane[] } {
  return {
    paused: [...group.lanes.values()].filter((each) => each.state === "ready" && isPaused(each)),
    resumed: [...group.held].filter((each) => !isPaused(each)),
  };
}
