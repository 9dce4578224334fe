/** The body of a pop's answer, cut out of segments as one latin1 string (one character per byte). */
import { leaseId, offsetSuffix } from "@queen/protocol";
import { countWithin, inRanges, type OffsetRanges } from "./offset-ranges.ts";
import { fragmentEnd, type Segment, traceparentOf } from "./segment.ts";
import { isoMicroseconds } from "./timestamp.ts";

/** What a pop got of one lane: [from, to) without what the group has finished already. */
export interface TakenLane {
  readonly queueJson: string;
  readonly partitionJson: string;
  readonly partition: number;
  readonly partitionId: string;
  readonly messageIdPrefix: string;
  readonly from: number;
  readonly to: number;
  readonly acked: OffsetRanges;
  readonly segments: readonly Segment[];
}

export interface PopAnswer {
  readonly body: string;
  readonly messages: number;
  /** Offsets that were taken, are not finished, and have no message any more. */
  readonly gone: number;
}

/** `token` undefined: acknowledged at delivery, there is no lease. */
export function popAnswer(
  lanes: readonly TakenLane[],
  groupJson: string,
  token: number | undefined,
): PopAnswer {
  const lease =
    token === undefined ? "" : leaseId({ token, partitions: lanes.map((lane) => lane.partition) });
  const first = lanes[0]!;
  let body =
    `{"success":true,"queue":${first.queueJson},"partition":${first.partitionJson},` +
    `"partitionId":"${first.partitionId}","leaseId":"${lease}","consumerGroup":${groupJson},` +
    `"partitionsClaimed":${lanes.length},"messages":[`;
  let messages = 0;
  let wanted = 0;
  for (const lane of lanes) {
    wanted += lane.to - lane.from - countWithin(lane.acked, lane.from, lane.to);
    const head = `{"id":"${lane.messageIdPrefix}`;
    const laneTail = `","partitionId":"${lane.partitionId}","partition":${lane.partitionJson},"leaseId":"${lease}","consumerGroup":${groupJson}}`;
    for (const segment of lane.segments) {
      const tail = `,"createdAt":"${isoMicroseconds(segment.createdAtUs)}${laneTail}`;
      const start = Math.max(lane.from, segment.firstOffset);
      const end = Math.min(lane.to, segment.firstOffset + segment.count);
      let at = fragmentEnd(segment.ends, start - segment.firstOffset - 1);
      for (let offset = start; offset < end; offset++) {
        const next = fragmentEnd(segment.ends, offset - segment.firstOffset);
        if (next > at && (lane.acked.length === 0 || !inRanges(lane.acked, offset))) {
          body += `${messages === 0 ? "" : ","}${head}${offsetSuffix(offset)}",${segment.body.slice(at, next)}${tail}`;
          messages++;
        }
        at = next;
      }
    }
  }
  return { body: `${body}]}`, messages, gone: wanted - messages };
}

/** What the messages of an answer carry. */
export function* traceparentsIn(lanes: readonly TakenLane[]): Generator<string | undefined> {
  for (const { from, to, acked, segments } of lanes) {
    for (const { firstOffset, count, ends, body } of segments) {
      const end = Math.min(to, firstOffset + count);
      for (let offset = Math.max(from, firstOffset); offset < end; offset++) {
        if (inRanges(acked, offset)) continue;
        const index = offset - firstOffset;
        yield traceparentOf(body.slice(fragmentEnd(ends, index - 1), fragmentEnd(ends, index)));
      }
    }
  }
}
