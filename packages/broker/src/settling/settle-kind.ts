/** Settle as a kind of batched operation: an operation is a lease on one lane with acks waiting. */
import type { BatchKind } from "../batching/batcher.ts";
import { formatRanges, rangesOf } from "../operations/offset-ranges.ts";
import type { Session } from "../postgres/session.ts";
import { settle, settleLease } from "../postgres/statements.ts";
import type { Delivered, PendingAck } from "./delivered.ts";

export interface SettleResult {
  readonly acks: readonly PendingAck[];
  readonly release: boolean;
  readonly status: number;
  readonly committed: number;
  readonly released: boolean;
  readonly buried: readonly number[];
}

interface Work {
  readonly delivered: Delivered;
  readonly acks: readonly PendingAck[];
  readonly release: boolean;
}

const isPlain = (work: Work): boolean => work.acks.every((ack) => ack.status === "completed");

export const settleKind: BatchKind<Delivered, SettleResult> = {
  name: "ack",
  repeatable: true,
  traced: { procedure: "settle", spans: (delivered) => delivered.pending.map((ack) => ack.span) },
  weight: (delivered) => 1 + delivered.pending.length / 100,
  async run(session: Session, operations: readonly Delivered[]) {
    const works = operations.map(
      (delivered): Work => ({
        delivered,
        acks: [...delivered.pending], // more may come while the call is in flight
        release: delivered.release,
      }),
    );
    const results = new Map<Work, SettleResult>();
    const plain = works.filter(isPlain);
    if (plain.length > 0) {
      const ranges = plain.map((work) => rangesOf(work.acks));
      const rows = await session.run(settle, [
        plain.map((work) => work.delivered.lane.id),
        plain.map((work) => work.delivered.groupId),
        plain.map((work) => work.delivered.token),
        ranges.map((range) => range[0] ?? 0),
        ranges.map((range) => range[1] ?? 0),
        ranges.map((range) => (range.length > 2 ? formatRanges(range.slice(2)) : null)),
        plain.map((work) => work.release),
      ]);
      for (const row of rows) {
        const work = plain[row.lease]!;
        const { acks, release } = work;
        const { status, committed, released } = row;
        results.set(work, { acks, release, status, committed, released, buried: [] });
      }
    }
    for (const work of works) {
      if (isPlain(work)) continue;
      const { lane, groupId, token } = work.delivered;
      const failed = work.acks.filter((ack) => ack.status === "failed");
      const dead = work.acks.filter((ack) => ack.status === "dlq");
      const done = work.acks.filter((ack) => ack.status === "completed");
      const [row] = await session.run(settleLease, [
        lane.id,
        groupId,
        token,
        formatRanges(rangesOf(done)),
        failed.map((ack) => ack.from),
        dead.map((ack) => ack.from),
        [...failed, ...dead].map((ack) => ack.error),
        work.release || work.acks.some((ack) => ack.status === "retry"),
        lane.queue.options.retryLimit,
        lane.queue.options.retryDelayMs,
      ]);
      results.set(work, { ...row!, acks: work.acks, release: work.release });
    }
    // Only now: a call that is made again must send the same.
    works.forEach(({ delivered, acks, release }) => {
      delivered.pending = delivered.pending.slice(acks.length);
      if (release) delivered.release = false;
    });
    return works.map((work) => results.get(work)!);
  },
};
