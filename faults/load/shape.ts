/**
 * The shape of a load: who pushes what how fast, who consumes it, and how badly they behave. Producers and
 * consumers work on one queue; pipes move messages of a second queue to a third, ack and push in one
 * transaction.
 */
export const QUEUE = "load";
export const SOURCE = "pipe-in";
export const SINK = "pipe-out";
export const PIPE_GROUP = "pipe";
export const HOT_PARTITION = "hot";

export interface LoadShape {
  /** Beside the hot one, which every push goes to in part. */
  readonly partitions: number;
  readonly producers: number;
  /** Of each producer; it waits for the answer before the next. */
  readonly pushesPerSecond: number;
  readonly itemsPerPush: number;
  /** Whether messages carry transactionIds. */
  readonly keyed: boolean;
  /** Of the pushes, how many are sent to two brokers at once. */
  readonly hedgedShare: number;
  readonly groups: readonly string[];
  readonly consumersPerGroup: number;
  readonly leaseSeconds: number;
  readonly retryLimit: number;
  /** Of the messages, how many are given back, and how many fail every time in the first group. */
  readonly nackShare: number;
  readonly poisonShare: number;
  /** Of the pops, how many are never acked, and how many are acked after their lease. */
  readonly abandonedShare: number;
  readonly lateShare: number;
  readonly pipes: number;
}

export const LOAD: LoadShape = {
  partitions: 12,
  producers: 4,
  pushesPerSecond: 5,
  itemsPerPush: 10,
  keyed: true,
  hedgedShare: 0.05,
  groups: ["a", "b"],
  consumersPerGroup: 3,
  leaseSeconds: 5,
  retryLimit: 3,
  nackShare: 0.01,
  poisonShare: 0.003,
  abandonedShare: 0.02,
  lateShare: 0.005,
  pipes: 1,
};

/** Whether consumers of the first group fail this message every time. */
export function isPoison(value: string, shape: Pick<LoadShape, "poisonShare">): boolean {
  let hash = 0;
  for (const letter of value) hash = (Math.imul(hash, 31) + letter.charCodeAt(0)) >>> 0;
  return (Math.imul(hash, 0x9e3779b1) >>> 0) / 2 ** 32 < shape.poisonShare;
}

export function describe(shape: LoadShape): string {
  const rate = shape.producers * shape.pushesPerSecond * shape.itemsPerPush;
  const ids = shape.keyed ? "" : ", no transactionIds";
  return `${rate}/s over ${shape.partitions + 1} lanes to ${shape.groups.length} groups${ids}`;
}
