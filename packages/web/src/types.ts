/** The broker's answers, as far as the page shows them. The broker's own document, openapi.json, says all of it. */
export interface Counts {
  readonly total: number;
  readonly pending: number;
  readonly processing: number;
  readonly completed: number;
  readonly deadLetter: number;
}

interface Spread {
  readonly avg: number;
  readonly median: number;
  readonly max: number;
}

export interface OverviewAnswer {
  readonly queues: number;
  readonly partitions: number;
  readonly messages: Counts;
  readonly lag: { readonly time: Spread; readonly offset: Spread };
  readonly throughput: { readonly ingestedPerSecond: number; readonly processedPerSecond: number };
}

export interface ThroughputRow {
  readonly timestamp: string;
  readonly ingestedPerSecond: number;
  readonly processedPerSecond: number;
  readonly popPerSecond: number;
  readonly avgLagMs: number;
  readonly maxLagMs: number;
  readonly maxEventLoopLagMs: number;
  readonly dbErrors: number;
  readonly ackFailed: number;
  readonly dlqCount: number;
  readonly queenCpuUserPct: number | null;
  readonly queenCpuSysPct: number | null;
  readonly queenRssMb: number | null;
}

export interface WorkerRow {
  readonly hostname: string;
  readonly workerId: number;
  readonly avgEventLoopLagMs: number;
  readonly maxEventLoopLagMs: number;
  readonly freeSlots: number;
  readonly dbConnections: number;
  readonly jobQueueSize: number;
  readonly messagesProcessed: number;
}

export interface TimeRange {
  readonly from: string;
  readonly to: string;
}

export interface StatusAnswer {
  readonly timeRange: TimeRange;
  readonly bucketMinutes: number;
  readonly throughput: readonly ThroughputRow[];
  readonly deadLetterQueue: {
    readonly topErrors: readonly { readonly error: string; readonly count: number }[];
  };
  readonly leases: { readonly active: number; readonly totalBatchSize: number };
  readonly workers: readonly WorkerRow[];
  readonly errors: { readonly dbErrors: number; readonly ackFailed: number; readonly dlqMessages: number };
}

export interface QueueRow {
  readonly name: string;
  readonly namespace: string;
  readonly task: string;
  readonly partitions: number;
  readonly messages: { readonly total: number; readonly pending: number; readonly processing: number };
  readonly lagSeconds: number;
  readonly inPerSecond: number;
  readonly outPerSecond: number;
  readonly deadLetters: number;
}

/** Null: nobody has said it. */
export type Options = Readonly<Record<string, number | boolean | null>>;

export interface LaneRow {
  readonly id: string;
  readonly name: string;
  readonly messages: Counts;
  readonly oldestPending: string | null;
  readonly newestMessage: string | null;
  readonly lastActivity: string | null;
  readonly retrying: number;
}

export interface QueueAnswer {
  readonly queue: {
    readonly name: string;
    readonly namespace: string;
    readonly task: string;
    readonly createdAt: string;
    readonly options: Options;
  };
  readonly partitions: readonly LaneRow[];
  readonly totals: Counts;
  readonly pagination: { readonly total: number };
}

export interface Pause {
  readonly partition: string | null;
  readonly consumerGroup: string | null;
  readonly reason: string | null;
  readonly pausedBy: string;
  readonly pausedAt: string;
  readonly message: string;
}

export interface GroupRow {
  readonly name: string;
  readonly queueName: string;
  readonly members: number;
  readonly partitionsWithLag: number;
  readonly totalLag: number;
  readonly maxTimeLag: number;
  readonly state: "Stable" | "Lagging" | "Dead";
  readonly subscriptionMode: string;
  readonly subscriptionTimestamp: string | null;
}

export interface LaneAnswer {
  readonly id: string;
  readonly name: string;
  readonly createdAt: string;
  readonly newestMessage: string | null;
  readonly startOffset: number;
  readonly nextOffset: number;
  readonly deadLetter: number;
  readonly consumerGroups: readonly {
    readonly name: string;
    readonly offset: number;
    readonly pending: number;
    readonly finishedAhead: readonly (readonly [number, number])[];
    readonly leasedUntil: number | null;
    readonly leaseExpiresAt: string | null;
  }[];
}

export interface Explanation {
  readonly code: string;
  readonly message: string;
  readonly advice: string;
  readonly also: readonly { readonly code: string; readonly message: string }[];
  readonly dueAt: string | null;
  readonly head: {
    readonly transactionId: string;
    readonly createdAt: string;
    readonly ageSeconds: number;
  } | null;
  readonly pending: number;
  readonly finishedAhead: number;
  readonly lease: {
    readonly leaseId: string;
    readonly acquiredAt: string | null;
    readonly expiresAt: string;
    readonly isActive: boolean;
    readonly unfinished: number;
  } | null;
  readonly attempts: {
    readonly failed: number;
    readonly retryLimit: number | null;
    readonly lastErrors: readonly { readonly at: string; readonly error: string }[];
  };
}

export interface MessageRow {
  readonly id: string;
  readonly transactionId: string;
  readonly partitionId: string;
  readonly queue: string;
  readonly partition: string;
  readonly status: string;
  readonly createdAt: string;
}

export interface MessageAnswer extends MessageRow {
  readonly traceId: string | null;
  readonly producerSub: string | null;
  readonly traceparent?: string;
  readonly payload: unknown;
  readonly isEncrypted: boolean;
  readonly payloadError: string | null;
  readonly errorMessage: string | null;
  readonly retryCount: number | null;
  readonly leaseExpiresAt: string | null;
  readonly consumerGroups: readonly {
    readonly name: string;
    readonly consumed: boolean;
    readonly leaseExpiresAt: string | null;
  }[];
}

export interface Trace {
  readonly id: string;
  readonly event_type: string;
  readonly data: unknown;
  readonly consumer_group: string;
  readonly created_at: string;
  readonly trace_names: readonly string[];
}

export interface Letter {
  readonly deadLetterId: string;
  readonly transactionId: string;
  readonly partitionId: string;
  readonly queue: string;
  readonly partition: string;
  readonly consumerGroup: string;
  readonly errorMessage: string;
  readonly retryCount: number;
  readonly failedAt: string;
  readonly data: unknown;
}

export interface ErrorRow {
  readonly error: string;
  readonly count: number;
  readonly queues: number;
  readonly partitions: number;
  readonly firstFailedAt: string;
  readonly lastFailedAt: string;
}

export interface SeekPreview {
  readonly partitionsMoved: number;
  readonly deliveredAgain: number;
  readonly skipped: number;
  readonly leasesEnded: number;
}

export interface Finding {
  readonly code: string;
  readonly severity: "ok" | "warning" | "critical";
  readonly message: string;
  readonly fix: string | null;
}
