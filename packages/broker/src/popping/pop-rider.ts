/**
 * Pops that are parked for lanes which are being appended to: their takes go with the append, in its transaction. So
 * a message reaches who waits for it after one commit, not two.
 */
import type { Rider, Waiter } from "../batching/rider.ts";
import type { Lane } from "../lanes/lane.ts";
import type { SegmentCache } from "../lanes/segment-cache.ts";
import { take } from "../postgres/statements.ts";
import type { Popper } from "./popper.ts";
import { TakeCall, type TakeOperation } from "./take-kind.ts";

export function popRider(popper: Popper, cache: SegmentCache, lanes: readonly Lane[]): Rider | undefined {
  const operations = popper.board(lanes);
  if (operations.length === 0) return undefined;
  const call = new TakeCall(cache, operations);
  return {
    only: onlyWaiter(operations),
    // Not refused for its bytes: that would refuse the append, too.
    step: { statement: take, values: call.values(true) },
    arrived: (rows) => {
      const results = call.results(rows);
      for (const [index, operation] of operations.entries()) popper.taken(operation, results[index]!);
    },
    failed: (error) => {
      for (const operation of operations) popper.missed(operation, error);
    },
  };
}

function onlyWaiter(operations: readonly TakeOperation[]): Waiter | undefined {
  const [{ pop, token, lanes }] = operations as [TakeOperation];
  const [groupLane] = lanes;
  const groupId = groupLane?.group.id;
  if (operations.length > 1 || lanes.length > 1 || groupLane === undefined || groupId === undefined)
    return undefined;
  const { autoAck, batch: budget } = pop.request;
  return { groupId, token, leaseSeconds: groupLane.lane.queue.options.leaseSeconds, autoAck, budget };
}
