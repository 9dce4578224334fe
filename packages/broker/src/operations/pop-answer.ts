/** The body of a pop's answer, cut out of segments as one latin1 string (one character per byte). */
import { BrokerError, leaseId, offsetSuffix } from "@queen/protocol";
import type { Keyring } from "./encryption.ts";
import { flat } from "./flat.ts";
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
  /** Lanes that are left out whole, because a message of them cannot be decrypted here. */
  readonly unreadable: readonly UnreadableLane[];
}

export class UnreadableLane extends Error {
  override readonly name = "UnreadableLane";
  readonly lane: TakenLane;
  readonly offset: number;
  override readonly cause: BrokerError;

  constructor(lane: TakenLane, offset: number, cause: BrokerError) {
    super(cause.message, { cause });
    this.lane = lane;
    this.offset = offset;
    this.cause = cause;
  }
}

/** What a client is told that could get nothing but such lanes. */
export function unreadableError({ lane, offset, cause }: UnreadableLane): BrokerError {
  const [queue, partition] = [lane.queueJson, lane.partitionJson].map((json) =>
    JSON.parse(Buffer.from(json, "latin1").toString("utf8")),
  );
  return new BrokerError(
    cause.code,
    `Message ${lane.messageIdPrefix}${offsetSuffix(offset)} of queue ${queue}, partition ${partition}, cannot be ` +
      `delivered and stays where it is. ${cause.message}`,
  );
}

/** `token` undefined: acknowledged at delivery, there is no lease. */
export function popAnswer(
  lanes: readonly TakenLane[],
  groupJson: string,
  token: number | undefined,
  keyring: Keyring,
): PopAnswer {
  const unreadable: UnreadableLane[] = [];
  let readable = lanes;
  while (readable.length > 0) {
    try {
      const { body, messages, gone } = compose(readable, groupJson, token, keyring);
      return { body, messages, gone, unreadable };
    } catch (error) {
      if (!(error instanceof UnreadableLane)) throw error;
      unreadable.push(error);
      readable = readable.filter((lane) => lane !== error.lane);
    }
  }
  return { body: "", messages: 0, gone: 0, unreadable };
}

function compose(
  lanes: readonly TakenLane[],
  groupJson: string,
  token: number | undefined,
  keyring: Keyring,
): Omit<PopAnswer, "unreadable"> {
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
    const head = flat(`{"id":"${lane.messageIdPrefix}`);
    const laneTail = `","partitionId":"${lane.partitionId}","partition":${lane.partitionJson},"leaseId":"${lease}","consumerGroup":${groupJson}}`;
    for (const segment of lane.segments) {
      const tail = flat(`,"createdAt":"${isoMicroseconds(segment.createdAtUs)}${laneTail}`);
      const start = Math.max(lane.from, segment.firstOffset);
      const end = Math.min(lane.to, segment.firstOffset + segment.count);
      let at = fragmentEnd(segment.ends, start - segment.firstOffset - 1);
      for (let offset = start; offset < end; offset++) {
        const next = fragmentEnd(segment.ends, offset - segment.firstOffset);
        if (next > at && (lane.acked.length === 0 || !inRanges(lane.acked, offset))) {
          const fragment = readable(lane, offset, segment.body.slice(at, next), keyring);
          body += `${messages === 0 ? "" : ","}${head}${offsetSuffix(offset)}",${fragment}${tail}`;
          messages++;
        }
        at = next;
      }
    }
  }
  return { body: `${body}]}`, messages, gone: wanted - messages };
}

function readable(lane: TakenLane, offset: number, fragment: string, keyring: Keyring): string {
  try {
    return keyring.open(fragment);
  } catch (error) {
    throw error instanceof BrokerError ? new UnreadableLane(lane, offset, error) : error;
  }
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
