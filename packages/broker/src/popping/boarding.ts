/**
 * Boarding: parked pops that wait for nothing but an append get their takes into its call (see pop-rider.ts). A lane
 * that is leased, delayed, paused or without a cursor is nothing to board for; its pops are woken after the append.
 */
import type { Lane } from "../lanes/lane.ts";
import type { Group } from "./group.ts";
import type { GroupLane } from "./group-lane.ts";
import type { Groups } from "./groups.ts";
import { newToken } from "./lease-token.ts";
import { isPaused } from "./pausing.ts";
import type { Pop } from "./pop.ts";
import type { TakeOperation } from "./take-kind.ts";

/** The takes that go with an append to these lanes. They are under way from now on. */
export function board(groups: Groups, lanes: readonly Lane[]): TakeOperation[] {
  const operations = new Map<Pop, { pop: Pop; token: number; lanes: GroupLane[] }>();
  const boarding = new Map<Group, Pop>();
  for (const lane of lanes) {
    for (const group of groups.of(lane.queue.name)) {
      const groupLane = group.lanes.get(lane.id);
      if (groupLane?.lane !== lane || !mayBoard(groupLane)) continue;
      let pop = groupLane.named.shift() ?? boarding.get(group);
      if (!pop) {
        pop = group.firstWaiting;
        if (!pop) continue;
        group.leave(pop);
        boarding.set(group, pop);
      }
      const operation = operations.get(pop) ?? { pop, token: newToken(), lanes: [] };
      operations.set(pop, operation);
      operation.lanes.push(groupLane);
      if (operation.lanes.length === pop.request.partitions) boarding.delete(group);
      groupLane.state = "taking";
      groupLane.hinted = false;
    }
  }
  for (const { pop } of operations.values()) pop.lease();
  return [...operations.values()];
}

/** Nothing but a message is missing: the lane's cursor is there, and nothing holds the lane up. */
function mayBoard(groupLane: GroupLane): boolean {
  const { delaySeconds, windowSeconds } = groupLane.lane.queue.options;
  return (
    groupLane.state === "idle" &&
    groupLane.cursorOpen &&
    !groupLane.leasedHere &&
    groupLane.dueAtMs === undefined &&
    delaySeconds === 0 &&
    windowSeconds === 0 &&
    !isPaused(groupLane)
  );
}
