/** What becomes of what a pop took: its client got it, or it goes back, so that it is delivered again. */
import type { Bus } from "../cluster/bus.ts";
import { formatRanges } from "../operations/offset-ranges.ts";
import type { Taken } from "../popping/pop.ts";
import type { Popper } from "../popping/popper.ts";
import * as statements from "../postgres/statements.ts";
import { Delivered, type DeliveredLeases } from "../settling/delivered.ts";
import type { Settler } from "../settling/settler.ts";
import type { Log } from "../telemetry.ts";
import type { Use } from "./connections.ts";

export interface DeliveriesOptions {
  readonly use: Use;
  readonly leases: DeliveredLeases;
  readonly bus: Bus;
  readonly popper: () => Popper;
  readonly settler: () => Settler;
  readonly log: Log;
}

export interface Deliveries {
  delivered(taken: readonly Taken[], token: number): void;
  /** Ends leases whose messages nobody got. */
  giveBack(taken: readonly Taken[], token: number): Promise<unknown>;
  /** What a pop with auto-ack finished and could not deliver is to be delivered again. */
  unfinish(taken: readonly Taken[]): Promise<void>;
  /** No answer can be made of it; without a token it was finished when it was taken. */
  undeliverable(taken: readonly Taken[], token: number | undefined, reason: string): Promise<void>;
  /** Everything that was taken is gone from the log. */
  finishGone(taken: readonly Taken[], token: number): Promise<void>;
  /** Resolves when nothing is being given back. */
  allGivenBack(): Promise<void>;
}

export function deliveriesOf({ use, leases, bus, popper, settler, log }: DeliveriesOptions): Deliveries {
  const deliveredOf = (taken: Taken, token: number): Delivered =>
    leases.find(token, taken.groupLane.lane.id) ??
    new Delivered({
      token,
      lane: taken.groupLane.lane,
      groupId: taken.groupId,
      groupName: taken.groupLane.group.name,
      from: taken.from,
      to: taken.to,
      segments: taken.segments,
      servedHere: true,
    });
  const givingBack = new Set<Promise<void>>();
  const giveBack = (taken: readonly Taken[], token: number): Promise<unknown> =>
    Promise.all(
      taken.map((each) => {
        const given = settler()
          .giveBack(deliveredOf(each, token))
          .catch((error) => log.warn({ error }, "lease.not_given_back"))
          .finally(() => givingBack.delete(given));
        givingBack.add(given);
        return given;
      }),
    );
  const unfinish = async ({ groupLane: { lane }, groupId, from, to, acked }: Taken): Promise<void> => {
    try {
      const values = [lane.id, groupId, from, to, formatRanges(acked)];
      await use((session) => session.run(statements.unfinish, values));
      popper().hint(lane, true);
      bus.released(lane.id);
    } catch (error) {
      const { queue, name: partition } = lane;
      log.error({ error, queue: queue.name, partition, from, to }, "pop.not_put_back");
    }
  };
  return {
    delivered: (taken, token) => {
      for (const each of taken) leases.add(deliveredOf(each, token));
    },
    giveBack,
    unfinish: async (taken) => {
      await Promise.all(taken.map(unfinish));
    },
    undeliverable: async (taken, token, reason) => {
      log.warn({ message: reason }, "pop.undeliverable");
      await (token === undefined ? Promise.all(taken.map(unfinish)) : giveBack(taken, token));
    },
    finishGone: async (taken, token) => {
      await Promise.all(taken.map((each) => settler().finishGone(deliveredOf(each, token)))).catch((error) =>
        log.warn({ error }, "lease.gone_not_finished"),
      );
    },
    allGivenBack: async () => {
      while (givingBack.size > 0) await Promise.all(givingBack);
    },
  };
}
