/** The shape of a soak's load: numbered messages over many lanes, to groups that behave badly now and then. */
export const QUEUE = "soak";
export const HOT_PARTITION = "hot";
export const GROUPS = ["a", "b"] as const;

export interface SoakShape {
  /** Beside the hot one. */
  readonly partitions: number;
  /** Each has its broker, and pushes one after the other. */
  readonly producers: number;
  readonly itemsPerPush: number;
  /** Items of a push that go to one lane together. */
  readonly itemsPerLane: number;
  readonly hotShare: number;
  readonly payloadBytes: number;
  readonly consumersPerGroup: number;
  readonly batch: number;
  readonly claims: number;
  readonly leaseSeconds: number;
  readonly retryLimit: number;
  /** Of the pops, how many are never acked, and how many are given back in part. */
  readonly abandonedShare: number;
  readonly nackShare: number;
  /** Of the messages, how many the first group fails every time. */
  readonly poisonShare: number;
}

export const SHAPE: SoakShape = {
  partitions: 100,
  producers: 16,
  itemsPerPush: 40,
  itemsPerLane: 10,
  hotShare: 0.1,
  payloadBytes: 100,
  consumersPerGroup: 6,
  batch: 100,
  claims: 10,
  leaseSeconds: 10,
  retryLimit: 2,
  abandonedShare: 0.0005,
  nackShare: 0.005,
  poisonShare: 0.00002,
};
