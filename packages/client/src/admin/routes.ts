/** Written by scripts/generate-docs.mjs from the broker's table of routes; edit that table. */

/** What routes take as query parameters. */
export interface Queries {
  /** Removes all messages of a queue or of one partition; every group ends up behind them. */
  "DELETE /api/v1/queues/:queue/clear": {
    /** Of this partition only. */
    readonly partition?: string | undefined;
    /** Remove the dead letters, too. */
    readonly deadLetters?: boolean | undefined;
  };
  /** Queues with their figures, the newest first. */
  "GET /api/v1/resources/queues": {
    /** A part of the name, in any case. */
    readonly search?: string | undefined;
    /** `newest` unless said; by name, or the largest figure first. */
    readonly sort?:
      | "newest"
      | "name"
      | "depth"
      | "lag"
      | "in"
      | "out"
      | "deadLetters"
      | "partitions"
      | undefined;
    /** Of this namespace. */
    readonly namespace?: string | undefined;
    /** Of this task. */
    readonly task?: string | undefined;
    /** Queues at most. */
    readonly limit?: number | undefined;
    /** Queues to skip. */
    readonly offset?: number | undefined;
  };
  /** A queue with a page of its partitions and the totals over all of them. */
  "GET /api/v1/resources/queues/:queue": {
    /** A part of the name, in any case. */
    readonly search?: string | undefined;
    /** By name, by unfinished messages (most first), by the oldest unfinished message, or by dead letters and retries. */
    readonly sort?: "name" | "depth" | "age" | "trouble" | undefined;
    /** Partitions at most. */
    readonly limit?: number | undefined;
    /** Partitions to skip. */
    readonly offset?: number | undefined;
  };
  /** Partitions of a queue or of all, with their figures. */
  "GET /api/v1/resources/partitions": {
    /** Of this queue. */
    readonly queue?: string | undefined;
    /** A part of the name, in any case. */
    readonly search?: string | undefined;
    /** By name, by unfinished messages (most first), by the oldest unfinished message, or by dead letters and retries. */
    readonly sort?: "name" | "depth" | "age" | "trouble" | undefined;
    /** Partitions at most. */
    readonly limit?: number | undefined;
    /** Partitions to skip. */
    readonly offset?: number | undefined;
  };
  /** Queues with their figures, the newest first; `pending` is with what is processing. */
  "GET /api/v1/status/queues": {
    /** A part of the name, in any case. */
    readonly search?: string | undefined;
    /** Of this namespace. */
    readonly namespace?: string | undefined;
    /** Of this task. */
    readonly task?: string | undefined;
    /** Queues at most. */
    readonly limit?: number | undefined;
    /** Queues to skip. */
    readonly offset?: number | undefined;
  };
  /** A queue with its options, a page of its partitions and the totals over all of them. */
  "GET /api/v1/status/queues/:queue": {
    /** A part of the name, in any case. */
    readonly search?: string | undefined;
    /** By name, by unfinished messages (most first), by the oldest unfinished message, or by dead letters and retries. */
    readonly sort?: "name" | "depth" | "age" | "trouble" | undefined;
    /** Partitions at most. */
    readonly limit?: number | undefined;
    /** Partitions to skip. */
    readonly offset?: number | undefined;
  };
  /** Messages without payloads, the newest first, of the last hour unless `from` says otherwise. */
  "GET /api/v1/messages": {
    /** Of this queue. */
    readonly queue?: string | undefined;
    /** With this transactionId, of any age; searched for in steps, `nextPage` goes on. */
    readonly transactionId?: string | undefined;
    /** Of queues of this namespace. */
    readonly ns?: string | undefined;
    /** Of queues of this task. */
    readonly task?: string | undefined;
    /** Stored then or later. */
    readonly from?: string | undefined;
    /** Stored then or earlier, to the end of its minute. */
    readonly to?: string | undefined;
    /** Of this partition. */
    readonly partition?: string | undefined;
    /** In this state. */
    readonly status?: "pending" | "processing" | "completed" | "dead_letter" | undefined;
    /** Messages at most. */
    readonly limit?: number | undefined;
    /** Messages to skip. */
    readonly offset?: number | undefined;
    /** The `nextPage` of the answer before. */
    readonly page?: string | undefined;
  };
  /** A queue's messages of any age, the newest first. */
  "GET /api/v1/status/queues/:queue/messages": {
    /** Of this partition. */
    readonly partition?: string | undefined;
    /** In this state. */
    readonly status?: "pending" | "processing" | "completed" | "dead_letter" | undefined;
    /** Messages at most. */
    readonly limit?: number | undefined;
    /** Messages to skip. */
    readonly offset?: number | undefined;
    /** The `nextPage` of the answer before. */
    readonly page?: string | undefined;
  };
  /** One message with its payload and its state per group. */
  "GET /api/v1/messages/:partitionId/:transactionId": {
    /** The message's id, where several have the transactionId. */
    readonly id?: string | undefined;
  };
  /** Takes a message out of the log for everybody. */
  "DELETE /api/v1/messages/:partitionId/:transactionId": {
    /** The message's id, where several have the transactionId. */
    readonly id?: string | undefined;
  };
  /** Has a group get the message again. */
  "POST /api/v1/messages/:partitionId/:transactionId/retry": {
    /** The message's id, where several have the transactionId. */
    readonly id?: string | undefined;
    /** The group; queue mode if absent. */
    readonly consumerGroup?: string | undefined;
  };
  /** Moves the message to a group's dead letters. */
  "POST /api/v1/messages/:partitionId/:transactionId/dlq": {
    /** The message's id, where several have the transactionId. */
    readonly id?: string | undefined;
    /** The group; queue mode if absent. */
    readonly consumerGroup?: string | undefined;
  };
  /** Dead letters, the newest failure first. */
  "GET /api/v1/dlq": {
    /** Of this queue. */
    readonly queue?: string | undefined;
    /** Of this group. */
    readonly consumerGroup?: string | undefined;
    /** Of this partition. */
    readonly partition?: string | undefined;
    /** With exactly this error. */
    readonly error?: string | undefined;
    /** Failed then or later. */
    readonly from?: string | undefined;
    /** Failed then or earlier. */
    readonly to?: string | undefined;
    /** Letters at most. */
    readonly limit?: number | undefined;
    /** Letters to skip. */
    readonly offset?: number | undefined;
    /** The `nextPage` of the answer before. */
    readonly page?: string | undefined;
  };
  /** Dead letters by their error, the most frequent first. */
  "GET /api/v1/dlq/errors": {
    /** Of this queue. */
    readonly queue?: string | undefined;
    /** Of this group. */
    readonly consumerGroup?: string | undefined;
    /** Errors at most. */
    readonly limit?: number | undefined;
  };
  /** Every group of every queue, with its lag. */
  "GET /api/v1/consumer-groups": {
    /** Groups of this queue only. */
    readonly queue?: string | undefined;
  };
  /** Partitions whose oldest unfinished message waits longest. */
  "GET /api/v1/consumer-groups/lagging": {
    /** Only those that wait at least so long. */
    readonly minLagSeconds?: number | undefined;
    /** Partitions at most. */
    readonly limit?: number | undefined;
  };
  /** The group's places, by queue. */
  "GET /api/v1/consumer-groups/:group": {
    /** In this queue only. */
    readonly queue?: string | undefined;
    /** Partitions at most. */
    readonly limit?: number | undefined;
    /** Partitions to skip. */
    readonly offset?: number | undefined;
  };
  /** Forgets the group in all queues. */
  "DELETE /api/v1/consumer-groups/:group": {
    /** Forget where the group starts, too. */
    readonly deleteMetadata?: boolean | undefined;
  };
  /** Forgets the group in one queue. */
  "DELETE /api/v1/consumer-groups/:group/queues/:queue": {
    /** Forget where the group starts, too. */
    readonly deleteMetadata?: boolean | undefined;
  };
  /** How far the group was behind, over time. */
  "GET /api/v1/consumer-groups/:group/queues/:queue/lag": {
    /** Start; an hour before the end unless said. */
    readonly from?: string | undefined;
    /** End; now unless said. */
    readonly to?: string | undefined;
    /** Instead of `from`: so long before the end. */
    readonly minutes?: number | undefined;
  };
  /** What a seek would do; nothing is moved. */
  "GET /api/v1/consumer-groups/:group/queues/:queue/seek": {
    /** Behind everything. */
    readonly toEnd?: boolean | undefined;
    /** The first message stored then or later is the next. */
    readonly timestamp?: string | undefined;
  };
  /** What a seek in one partition would do. */
  "GET /api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek": {
    /** Behind everything. */
    readonly toEnd?: boolean | undefined;
    /** The first message stored then or later is the next. */
    readonly timestamp?: string | undefined;
  };
  /** The names of traces, the one used last first. */
  "GET /api/v1/traces/names": {
    /** Entries at most. */
    readonly limit?: number | undefined;
    /** Entries to skip. */
    readonly offset?: number | undefined;
  };
  /** The traces with a name, of all messages, the oldest first. */
  "GET /api/v1/traces/by-name/:traceName": {
    /** Entries at most. */
    readonly limit?: number | undefined;
    /** Entries to skip. */
    readonly offset?: number | undefined;
  };
  /** The traces of a message, the oldest first. */
  "GET /api/v1/traces/:partitionId/:transactionId": {
    /** Entries at most. */
    readonly limit?: number | undefined;
    /** Entries to skip. */
    readonly offset?: number | undefined;
  };
  /** Why a partition does not move for a group. */
  "GET /api/v1/queues/:queue/partitions/:partition/explain": {
    /** The group; queue mode if absent. */
    readonly consumerGroup?: string | undefined;
  };
  /** What is wrong with PostgreSQL and the broker, and what fixes it. */
  "GET /api/v1/system/doctor": {
    /** Transactions that are open for longer are findings. */
    readonly oldTransactionSeconds?: number | undefined;
  };
  /** Throughput, messages, leases, dead letters, workers and errors. */
  "GET /api/v1/status": {
    /** Start; an hour before the end unless said. */
    readonly from?: string | undefined;
    /** End; now unless said. */
    readonly to?: string | undefined;
    /** Instead of `from`: so long before the end. */
    readonly minutes?: number | undefined;
    /** Only this queue. */
    readonly queue?: string | undefined;
    /** Only queues of this namespace. */
    readonly namespace?: string | undefined;
    /** Only queues of this task. */
    readonly task?: string | undefined;
  };
  /** Messages stored by minute, hour or day. */
  "GET /api/v1/status/analytics": {
    /** By minute, hour (the default) or day. */
    readonly interval?: "minute" | "hour" | "day" | undefined;
    /** Start; a day before the end unless said. */
    readonly from?: string | undefined;
    /** End; now unless said. */
    readonly to?: string | undefined;
    /** Only this queue. */
    readonly queue?: string | undefined;
    /** Only queues of this namespace. */
    readonly namespace?: string | undefined;
    /** Only queues of this task. */
    readonly task?: string | undefined;
  };
  /** Memory, processor time and connections of every worker. */
  "GET /api/v1/analytics/system-metrics": {
    /** Start; an hour before the end unless said. */
    readonly from?: string | undefined;
    /** End; now unless said. */
    readonly to?: string | undefined;
    /** Instead of `from`: so long before the end. */
    readonly minutes?: number | undefined;
    /** Only workers of this host. */
    readonly hostname?: string | undefined;
    /** Only workers with this number. */
    readonly workerId?: string | undefined;
  };
  /** What workers did. */
  "GET /api/v1/analytics/worker-metrics": {
    /** Start; an hour before the end unless said. */
    readonly from?: string | undefined;
    /** End; now unless said. */
    readonly to?: string | undefined;
    /** Instead of `from`: so long before the end. */
    readonly minutes?: number | undefined;
    /** Only workers of this host. */
    readonly hostname?: string | undefined;
    /** Only workers with this number. */
    readonly workerId?: string | undefined;
  };
  /** How old messages were when they were delivered. */
  "GET /api/v1/analytics/queue-lag": {
    /** Start; an hour before the end unless said. */
    readonly from?: string | undefined;
    /** End; now unless said. */
    readonly to?: string | undefined;
    /** Instead of `from`: so long before the end. */
    readonly minutes?: number | undefined;
    /** Only this queue. */
    readonly queue?: string | undefined;
  };
  /** What was done with queues. */
  "GET /api/v1/analytics/queue-ops": {
    /** Start; an hour before the end unless said. */
    readonly from?: string | undefined;
    /** End; now unless said. */
    readonly to?: string | undefined;
    /** Instead of `from`: so long before the end. */
    readonly minutes?: number | undefined;
    /** Only this queue. */
    readonly queue?: string | undefined;
  };
  /** How many consumers waited at which worker. */
  "GET /api/v1/analytics/queue-parked-replicas": {
    /** Start; an hour before the end unless said. */
    readonly from?: string | undefined;
    /** End; now unless said. */
    readonly to?: string | undefined;
    /** Instead of `from`: so long before the end. */
    readonly minutes?: number | undefined;
    /** Only this queue. */
    readonly queue?: string | undefined;
  };
  /** Messages that retention and eviction took from readers, over time. */
  "GET /api/v1/analytics/retention": {
    /** Default: an hour before `to`. */
    readonly from?: string | undefined;
    /** Default: now. */
    readonly to?: string | undefined;
    /** Of this queue only. */
    readonly queue?: string | undefined;
  };
  /** Who changed what, and what was refused, the newest first. */
  "GET /api/v1/system/audit": {
    /** Entries older than the one with this id. */
    readonly before?: number | undefined;
    /** Entries at most. */
    readonly limit?: number | undefined;
  };
  /** Messages on the broker's disk: how many wait, and which the database refused. */
  "GET /api/v1/system/spool": {
    /** Rejected messages at most. */
    readonly limit?: number | undefined;
    /** Rejected messages to skip. */
    readonly offset?: number | undefined;
  };
}

/** What routes take as JSON. */
export interface Bodies {
  /** Makes or configures a queue; an option that is not named returns to its default. */
  "POST /api/v1/configure": {
    readonly queue: string;
    /** A string; anything else counts as not said. */
    readonly namespace?: unknown | undefined;
    /** A string; anything else counts as not said. */
    readonly task?: unknown | undefined;
    readonly options?: Readonly<Record<string, unknown>> | null | undefined;
    readonly mode?: "replace" | "merge" | null | undefined;
  };
  /** Has a group get the message again. */
  "POST /api/v1/messages/:partitionId/:transactionId/retry": {
    readonly consumerGroup?: string | null | undefined;
    readonly error?: string | null | undefined;
  };
  /** Moves the message to a group's dead letters. */
  "POST /api/v1/messages/:partitionId/:transactionId/dlq": {
    readonly consumerGroup?: string | null | undefined;
    readonly error?: string | null | undefined;
  };
  /** Makes dead letters messages again, at the end of their partitions. */
  "POST /api/v1/dlq/requeue": {
    /** deadLetterIds, or ids of messages. */
    readonly ids?: readonly string[] | undefined;
    readonly queue?: string | null | undefined;
    readonly consumerGroup?: string | null | undefined;
    readonly partition?: string | null | undefined;
    /** The whole error message. */
    readonly error?: string | null | undefined;
    readonly from?: string | null | undefined;
    readonly to?: string | null | undefined;
    /** Without a filter, all of them are meant only if this says so. */
    readonly all?: boolean | undefined;
    readonly limit?: number | undefined;
  };
  /** Deletes dead letters. */
  "POST /api/v1/dlq/purge": {
    /** deadLetterIds, or ids of messages. */
    readonly ids?: readonly string[] | undefined;
    readonly queue?: string | null | undefined;
    readonly consumerGroup?: string | null | undefined;
    readonly partition?: string | null | undefined;
    /** The whole error message. */
    readonly error?: string | null | undefined;
    readonly from?: string | null | undefined;
    readonly to?: string | null | undefined;
    /** Without a filter, all of them are meant only if this says so. */
    readonly all?: boolean | undefined;
    readonly limit?: number | undefined;
  };
  /** Says where the group starts in partitions it has not met. */
  "POST /api/v1/consumer-groups/:group/subscription": {
    readonly subscriptionTimestamp: string;
  };
  /** Moves the group in all partitions of a queue, to the end or to a time. */
  "POST /api/v1/consumer-groups/:group/queues/:queue/seek": {
    /** `true`: behind everything. */
    readonly toEnd?: unknown | undefined;
    /** The first message stored then or later is the next. */
    readonly timestamp?: string | null | undefined;
  };
  /** Moves the group in one partition; without a body to the end. */
  "POST /api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek": {
    /** `true`: behind everything. */
    readonly toEnd?: unknown | undefined;
    /** The first message stored then or later is the next. */
    readonly timestamp?: string | null | undefined;
  };
  /** Notes something about a message. */
  "POST /api/v1/traces": {
    readonly transactionId: string;
    /** A UUID. */
    readonly partitionId: string;
    readonly data: unknown;
    /** Queue mode if absent. */
    readonly consumerGroup?: string | null | undefined;
    /** `info` if absent. */
    readonly eventType?: string | null | undefined;
    /** Names under which it is found again. */
    readonly traceNames?: string | readonly string[] | null | undefined;
  };
  /** Stops the delivery of a queue, of a partition, to a group, or of a partition to a group. */
  "POST /api/v1/queues/:queue/pause": {
    /** Only for this group; absent: for all. */
    readonly consumerGroup?: string | null | undefined;
    /** Only this partition; absent: all. */
    readonly partition?: string | null | undefined;
    readonly reason?: string | null | undefined;
  };
  /** Ends the pause of exactly what is named. */
  "POST /api/v1/queues/:queue/resume": {
    /** Only for this group; absent: for all. */
    readonly consumerGroup?: string | null | undefined;
    /** Only this partition; absent: all. */
    readonly partition?: string | null | undefined;
  };
  /** Switches push maintenance: while it is on, pushes wait on the brokers' disks. */
  "POST /api/v1/system/maintenance": {
    readonly enabled: boolean;
  };
  /** Switches pop maintenance: while it is on, every pop is answered at once, with nothing. */
  "POST /api/v1/system/maintenance/pop": {
    readonly enabled: boolean;
  };
  /** Has parked pops of a queue, or of one of its partitions, look for work on every broker. */
  "POST /internal/api/notify": {
    readonly queue: string;
    readonly partition?: string | null | undefined;
  };
  /** Makes an API key; the key is shown this once. */
  "POST /api/v1/system/keys": {
    readonly name: string;
    readonly role: "admin" | "read-write" | "read-only" | "produce" | "consume";
    readonly queues?: readonly string[] | null | undefined;
    /** A time; without one it never expires. */
    readonly expiresAt?: string | null | undefined;
  };
  /** Makes a user, who signs in to the page by name and password. */
  "POST /api/v1/system/users": {
    readonly name: string;
    readonly password: string;
    readonly role: "admin" | "read-write" | "read-only" | "produce" | "consume";
    readonly queues?: readonly string[] | null | undefined;
    /** A time; without one he never expires. */
    readonly expiresAt?: string | null | undefined;
  };
  /** Gives a user another password; his sessions end on every broker within a second. */
  "POST /api/v1/system/users/:user/password": {
    readonly password: string;
  };
  /** Tries rejected messages again, at the end of their partitions. */
  "POST /api/v1/system/spool/retry": {
    /** Of rejected messages. */
    readonly ids?: readonly string[] | undefined;
    readonly all?: boolean | undefined;
  };
  /** Deletes rejected messages. */
  "POST /api/v1/system/spool/discard": {
    /** Of rejected messages. */
    readonly ids?: readonly string[] | undefined;
    readonly all?: boolean | undefined;
  };
  /** Signs a browser in with a token or an API key, or by user and password; needs the header Queen-Page. */
  "POST /api/v1/session": {
    /** A token or an API key. */
    readonly credential?: string | undefined;
    /** In its place, with `password`. */
    readonly user?: string | undefined;
    readonly password?: string | undefined;
  };
}

/** What routes answer. */
export interface Answers {
  /** Makes or configures a queue; an option that is not named returns to its default. */
  "POST /api/v1/configure": {
    readonly configured: true;
    /** A UUID. */
    readonly queueId: string;
    /** Of partition `Default`. */
    readonly partitionId: string;
    readonly queue: string;
    readonly namespace: string;
    readonly task: string;
    readonly options: Readonly<Record<string, number | boolean>>;
    readonly unknownOptions?: readonly string[] | undefined;
  };
  /** Deletes a queue with everything in it. */
  "DELETE /api/v1/resources/queues/:queue": {
    readonly deleted: true;
    readonly queue: string;
    readonly existed: boolean;
  };
  /** Removes all messages of a queue or of one partition; every group ends up behind them. */
  "DELETE /api/v1/queues/:queue/clear": {
    readonly cleared: true;
    readonly queue: string;
    readonly partition?: string | undefined;
    /** Messages that were removed; the places of deleted ones count. */
    readonly messages: number;
    /** Partitions that were cleared. */
    readonly partitions: number;
    /** Dead letters that were removed. */
    readonly deadLetters: number;
  };
  /** Queues with their figures, the newest first. */
  "GET /api/v1/resources/queues": {
    readonly queues: readonly {
      /** A UUID. */
      readonly id: string;
      readonly name: string;
      readonly namespace: string;
      readonly task: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly createdAt: string;
      readonly partitions: number;
      readonly messages: {
        readonly total: number;
        /** Without what is processing. */
        readonly pending: number;
        readonly processing: number;
      };
      /** Age of the oldest message that one of its groups has not finished. */
      readonly lagSeconds: number;
      /** Messages stored, in its last finished minute. */
      readonly inPerSecond: number;
      /** Messages finished, in its last finished minute. */
      readonly outPerSecond: number;
      readonly deadLetters: number;
    }[];
  };
  /** A queue with a page of its partitions and the totals over all of them. */
  "GET /api/v1/resources/queues/:queue": {
    /** A UUID. */
    readonly id: string;
    readonly name: string;
    readonly namespace: string;
    readonly task: string;
    /** UTC, such as 2026-11-15T19:00:00.000Z. */
    readonly createdAt: string;
    readonly partitions: readonly {
      /** A UUID. */
      readonly id: string;
      readonly name: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly createdAt: string;
      readonly stats: {
        /** In the log; the places of deleted messages count. */
        readonly total: number;
        /** Without what is processing. */
        readonly pending: number;
        readonly processing: number;
        /** Neither pending nor processing. */
        readonly completed: number;
        /** Always 0: a message that failed is pending again or a dead letter. */
        readonly failed: number;
        readonly deadLetter: number;
      };
      readonly oldestMessage: string | null;
      readonly newestMessage: string | null;
      /** When the oldest unfinished message was stored. */
      readonly oldestPending: string | null;
      /** Unfinished messages that failed before. */
      readonly retrying: number;
    }[];
    readonly totals: {
      /** In the log; the places of deleted messages count. */
      readonly total: number;
      /** Without what is processing. */
      readonly pending: number;
      readonly processing: number;
      /** Neither pending nor processing. */
      readonly completed: number;
      /** Always 0: a message that failed is pending again or a dead letter. */
      readonly failed: number;
      readonly deadLetter: number;
    };
    readonly pagination: {
      readonly limit: number;
      readonly offset: number;
      /** Partitions in all. */
      readonly total: number;
    };
  };
  /** Partitions of a queue or of all, with their figures. */
  "GET /api/v1/resources/partitions": {
    readonly partitions: readonly {
      /** A UUID. */
      readonly id: string;
      readonly name: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly createdAt: string;
      readonly queue: string;
      readonly messages: {
        /** In the log; the places of deleted messages count. */
        readonly total: number;
        /** Without what is processing. */
        readonly pending: number;
        readonly processing: number;
        /** Neither pending nor processing. */
        readonly completed: number;
        /** Always 0: a message that failed is pending again or a dead letter. */
        readonly failed: number;
        readonly deadLetter: number;
      };
      readonly oldestMessage: string | null;
      readonly newestMessage: string | null;
      /** When the oldest unfinished message was stored. */
      readonly oldestPending: string | null;
      /** Unfinished messages that failed before. */
      readonly retrying: number;
      /** When it was last pushed to or consumed. */
      readonly lastActivity: string | null;
    }[];
    readonly total: number;
    readonly pagination: {
      readonly limit: number;
      readonly offset: number;
    };
  };
  /** A partition with the places of its consumer groups. */
  "GET /api/v1/queues/:queue/partitions/:partition": {
    /** A UUID. */
    readonly id: string;
    readonly name: string;
    /** UTC, such as 2026-11-15T19:00:00.000Z. */
    readonly createdAt: string;
    readonly queue: string;
    readonly newestMessage: string | null;
    /** The first message that the log holds. */
    readonly startOffset: number;
    /** The next message that is stored. */
    readonly nextOffset: number;
    readonly deadLetter: number;
    readonly consumerGroups: readonly {
      readonly name: string;
      /** The first message that it has not finished. */
      readonly offset: number;
      readonly pending: number;
      /** Offsets behind it that are finished, from and to; the first hundred. */
      readonly finishedAhead: readonly (readonly unknown[])[];
      /** The offset after the last one under a lease. */
      readonly leasedUntil: number | null;
      readonly leaseExpiresAt: string | null;
    }[];
  };
  /** Namespaces with the sums over their queues. */
  "GET /api/v1/resources/namespaces": {
    readonly namespaces: readonly {
      readonly namespace: string;
      readonly queues: number;
      readonly partitions: number;
      readonly messages: {
        readonly total: number;
        /** Without what is processing. */
        readonly pending: number;
        readonly processing: number;
      };
    }[];
  };
  /** Tasks with the sums over their queues. */
  "GET /api/v1/resources/tasks": {
    readonly tasks: readonly {
      readonly task: string;
      readonly queues: number;
      readonly partitions: number;
      readonly messages: {
        readonly total: number;
        /** Without what is processing. */
        readonly pending: number;
        readonly processing: number;
      };
    }[];
  };
  /** The sums over everything. */
  "GET /api/v1/resources/overview": {
    readonly queues: number;
    readonly partitions: number;
    readonly namespaces: number;
    readonly tasks: number;
    readonly messages: {
      /** In the log; the places of deleted messages count. */
      readonly total: number;
      /** Without what is processing. */
      readonly pending: number;
      readonly processing: number;
      /** Neither pending nor processing. */
      readonly completed: number;
      /** Always 0: a message that failed is pending again or a dead letter. */
      readonly failed: number;
      readonly deadLetter: number;
    };
    readonly lag: {
      /** Seconds that the oldest unfinished message waits, over all groups. */
      readonly time: {
        readonly avg: number;
        readonly median: number;
        readonly min: number;
        readonly max: number;
      };
      /** Unfinished messages, over all groups. */
      readonly offset: {
        readonly avg: number;
        readonly median: number;
        readonly min: number;
        readonly max: number;
      };
    };
    readonly throughput: {
      readonly ingestedPerSecond: number;
      readonly processedPerSecond: number;
    };
    /** UTC, such as 2026-11-15T19:00:00.000Z. */
    readonly timestamp: string;
    /** Seconds since the figures were read. */
    readonly statsAge: number;
  };
  /** Queues with their figures, the newest first; `pending` is with what is processing. */
  "GET /api/v1/status/queues": {
    readonly queues: readonly {
      /** A UUID. */
      readonly id: string;
      readonly name: string;
      readonly namespace: string;
      readonly task: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly createdAt: string;
      readonly partitions: number;
      readonly messages: {
        readonly total: number;
        /** With processing. */
        readonly pending: number;
        readonly processing: number;
      };
    }[];
    readonly pagination: {
      readonly limit: number;
      readonly offset: number;
    };
  };
  /** A queue with its options, a page of its partitions and the totals over all of them. */
  "GET /api/v1/status/queues/:queue": {
    readonly queue: {
      /** A UUID. */
      readonly id: string;
      readonly name: string;
      readonly namespace: string;
      readonly task: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly createdAt: string;
      readonly priority: number;
      /** All of them; null: nobody has said it. */
      readonly options: Readonly<Record<string, number | boolean | null>>;
      readonly config: {
        readonly leaseTime: number;
        readonly retryLimit: number;
        readonly retryDelay: number;
        readonly ttl: number;
        readonly maxQueueSize: number;
        readonly deadLetterQueue: boolean;
      };
    };
    readonly partitions: readonly {
      /** A UUID. */
      readonly id: string;
      readonly name: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly createdAt: string;
      readonly messages: {
        /** In the log; the places of deleted messages count. */
        readonly total: number;
        /** Without what is processing. */
        readonly pending: number;
        readonly processing: number;
        /** Neither pending nor processing. */
        readonly completed: number;
        /** Always 0: a message that failed is pending again or a dead letter. */
        readonly failed: number;
        readonly deadLetter: number;
      };
      readonly stats: {
        /** In the log; the places of deleted messages count. */
        readonly total: number;
        /** Without what is processing. */
        readonly pending: number;
        readonly processing: number;
        /** Neither pending nor processing. */
        readonly completed: number;
        /** Always 0: a message that failed is pending again or a dead letter. */
        readonly failed: number;
        readonly deadLetter: number;
      };
      readonly cursor: {
        /** Offsets that are finished. */
        readonly totalConsumed: number;
        /** Always 0: batches are not counted. */
        readonly batchesConsumed: number;
      };
      readonly lastActivity: string | null;
      readonly oldestMessage: string | null;
      readonly newestMessage: string | null;
      /** When the oldest unfinished message was stored. */
      readonly oldestPending: string | null;
      /** Unfinished messages that failed before. */
      readonly retrying: number;
    }[];
    readonly totals: {
      /** In the log; the places of deleted messages count. */
      readonly total: number;
      /** Without what is processing. */
      readonly pending: number;
      readonly processing: number;
      /** Neither pending nor processing. */
      readonly completed: number;
      /** Always 0: a message that failed is pending again or a dead letter. */
      readonly failed: number;
      readonly deadLetter: number;
      readonly messages: {
        /** In the log; the places of deleted messages count. */
        readonly total: number;
        /** Without what is processing. */
        readonly pending: number;
        readonly processing: number;
        /** Neither pending nor processing. */
        readonly completed: number;
        /** Always 0: a message that failed is pending again or a dead letter. */
        readonly failed: number;
        readonly deadLetter: number;
      };
    };
    readonly pagination: {
      readonly limit: number;
      readonly offset: number;
      /** Partitions in all. */
      readonly total: number;
    };
  };
  /** Reads the figures of all queues anew; nothing needs it, because figures are made when asked for. */
  "POST /api/v1/stats/refresh": {
    readonly partition: {
      readonly partitionsUpdated: number;
      readonly dirtyPartitionsScanned: number;
      readonly partitionsSkippedByWatermark: number;
      readonly newPartitions: number;
    };
    readonly queue: {
      readonly queuesUpdated: number;
    };
    readonly namespace: {
      readonly namespacesUpdated: number;
    };
    readonly task: {
      readonly tasksUpdated: number;
    };
    readonly system: {
      readonly systemUpdated: number;
    };
    readonly cleanup: {
      readonly orphanedDeleted: number;
    };
  };
  /** Messages without payloads, the newest first, of the last hour unless `from` says otherwise. */
  "GET /api/v1/messages": {
    readonly messages: readonly {
      /** A UUID. */
      readonly id: string;
      readonly transactionId: string;
      /** A UUID. */
      readonly partitionId: string;
      readonly queuePath: string;
      readonly queue: string;
      readonly partition: string;
      readonly status: "pending" | "processing" | "completed" | "dead_letter";
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly createdAt: string;
      readonly traceId: string | null;
      readonly producerSub: string | null;
      /** W3C trace context of the push; absent where there is none. */
      readonly traceparent?: string | undefined;
      readonly namespace: string;
      readonly task: string;
      readonly leaseExpiresAt: string | null;
      readonly isEncrypted: boolean;
      readonly queueStatus: "pending" | "processing" | "completed" | null;
      readonly busStatus: {
        readonly consumedBy: number;
        readonly totalGroups: number;
      };
      readonly queuePriority: number;
    }[];
    readonly mode: {
      readonly hasQueueMode: boolean;
      readonly busGroupsCount: number;
      readonly type: "queue" | "bus" | "hybrid" | "none";
    };
    /** The `page` of the next request; null: this was the last. */
    readonly nextPage: string | null;
    /** With `transactionId`: how many messages were looked at so far, and how many there are. */
    readonly search: {
      readonly searched: number;
      readonly total: number;
    } | null;
    readonly pagination: {
      readonly limit: number;
      readonly offset: number;
    };
  };
  /** A queue's messages of any age, the newest first. */
  "GET /api/v1/status/queues/:queue/messages": readonly {
    /** A UUID. */
    readonly id: string;
    readonly transactionId: string;
    /** A UUID. */
    readonly partitionId: string;
    readonly queuePath: string;
    readonly queue: string;
    readonly partition: string;
    readonly status: "pending" | "processing" | "completed" | "dead_letter";
    /** UTC, such as 2026-11-15T19:00:00.000Z. */
    readonly createdAt: string;
  }[];
  /** One message with its payload and its state per group. */
  "GET /api/v1/messages/:partitionId/:transactionId": {
    /** A UUID. */
    readonly id: string;
    readonly transactionId: string;
    /** A UUID. */
    readonly partitionId: string;
    readonly queuePath: string;
    readonly queue: string;
    readonly partition: string;
    readonly status: "pending" | "processing" | "completed" | "dead_letter";
    /** UTC, such as 2026-11-15T19:00:00.000Z. */
    readonly createdAt: string;
    readonly traceId: string | null;
    readonly producerSub: string | null;
    /** W3C trace context of the push; absent where there is none. */
    readonly traceparent?: string | undefined;
    readonly namespace: string;
    readonly task: string;
    readonly leaseExpiresAt: string | null;
    /** Any JSON, as the producer sent it. */
    readonly payload: unknown;
    /** It is stored encrypted. */
    readonly isEncrypted: boolean;
    /** Why `payload` is shown encrypted, as it is stored. */
    readonly payloadError: string | null;
    readonly errorMessage: string | null;
    readonly retryCount: number | null;
    readonly queueConfig: {
      readonly leaseTime: number;
      readonly retryLimit: number;
      readonly retryDelay: number;
      readonly ttl: number;
      readonly priority: number;
    };
    readonly mode: {
      readonly hasQueueMode: boolean;
      readonly busGroupsCount: number;
      readonly consumedByGroups: number;
      readonly type: "queue" | "bus" | "hybrid" | "none";
    };
    readonly consumerGroups: readonly {
      readonly name: string;
      readonly consumed: boolean;
      readonly leaseExpiresAt: string | null;
    }[];
  };
  /** Takes a message out of the log for everybody. */
  "DELETE /api/v1/messages/:partitionId/:transactionId": {
    readonly success: boolean;
    /** A UUID. */
    readonly partitionId: string;
    readonly transactionId: string;
    readonly message: string;
  };
  /** Has a group get the message again. */
  "POST /api/v1/messages/:partitionId/:transactionId/retry": {
    readonly success: true;
    /** A UUID. */
    readonly partitionId: string;
    readonly transactionId: string;
    readonly consumerGroup: string;
    /** A UUID. */
    readonly messageId: string;
    readonly action: "requeued" | "pending" | "leased" | "redelivered" | "copied";
  };
  /** Moves the message to a group's dead letters. */
  "POST /api/v1/messages/:partitionId/:transactionId/dlq": {
    readonly success: true;
    /** A UUID. */
    readonly partitionId: string;
    readonly transactionId: string;
    readonly consumerGroup: string;
    /** A UUID. */
    readonly messageId: string;
  };
  /** Dead letters, the newest failure first. */
  "GET /api/v1/dlq": {
    readonly messages: readonly {
      /** A UUID. */
      readonly id: string;
      readonly transactionId: string;
      readonly traceId: string | null;
      readonly producerSub: string | null;
      /** W3C trace context of the push; absent where there is none. */
      readonly traceparent?: string | undefined;
      /** Any JSON, as the producer sent it. */
      readonly data: unknown;
      /** A UUID. */
      readonly partitionId: string;
      readonly queue: string;
      readonly partition: string;
      readonly consumerGroup: string;
      readonly errorMessage: string;
      readonly retryCount: number;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly createdAt: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly failedAt: string;
      /** A UUID. */
      readonly deadLetterId: string;
      /** It is stored encrypted. */
      readonly isEncrypted: boolean;
      /** Why `data` is shown encrypted, as it is stored. */
      readonly payloadError: string | null;
    }[];
    readonly total: number;
    /** The `page` of the next request; null: this was the last. */
    readonly nextPage: string | null;
    readonly pagination: {
      readonly limit: number;
      readonly offset: number;
    };
  };
  /** Dead letters by their error, the most frequent first. */
  "GET /api/v1/dlq/errors": {
    readonly errors: readonly {
      readonly error: string;
      readonly count: number;
      /** In so many queues. */
      readonly queues: number;
      readonly partitions: number;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly firstFailedAt: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly lastFailedAt: string;
    }[];
  };
  /** Makes dead letters messages again, at the end of their partitions. */
  "POST /api/v1/dlq/requeue": {
    readonly success: true;
    readonly requeued: number;
    readonly remaining: number;
    readonly messages: readonly {
      /** A UUID. */
      readonly deadLetterId: string;
      /** A UUID. */
      readonly id: string;
      /** A UUID. */
      readonly partitionId: string;
    }[];
  };
  /** Deletes dead letters. */
  "POST /api/v1/dlq/purge": {
    readonly success: true;
    readonly purged: number;
    readonly remaining: number;
  };
  /** Every group of every queue, with its lag. */
  "GET /api/v1/consumer-groups": readonly {
    readonly name: string;
    readonly topics: readonly string[];
    readonly queueName: string;
    /** Partitions that it has met. */
    readonly members: number;
    readonly partitionsWithLag: number;
    readonly totalLag: number;
    /** Seconds. */
    readonly maxTimeLag: number;
    readonly state: "Stable" | "Lagging" | "Dead";
    readonly subscriptionMode: string;
    readonly subscriptionTimestamp: string | null;
    /** UTC, such as 2026-11-15T19:00:00.000Z. */
    readonly subscriptionCreatedAt: string;
  }[];
  /** Partitions whose oldest unfinished message waits longest. */
  "GET /api/v1/consumer-groups/lagging": readonly {
    readonly consumer_group: string;
    readonly queue_name: string;
    readonly partition_name: string;
    /** A UUID. */
    readonly partition_id: string;
    readonly worker_id: string | null;
    readonly offset_lag: number;
    readonly time_lag_seconds: number;
    readonly lag_hours: number;
    /** UTC, such as 2026-11-15T19:00:00.000Z. */
    readonly oldest_unconsumed_at: string;
    readonly last_consumed_at: string | null;
  }[];
  /** The group's places, by queue. */
  "GET /api/v1/consumer-groups/:group": Readonly<
    Record<
      string,
      {
        readonly partitions: readonly {
          readonly partition: string;
          readonly workerId: string | null;
          readonly lastConsumedAt: string | null;
          readonly totalConsumed: number;
          readonly offsetLag: number;
          readonly timeLagSeconds: number;
          readonly leaseActive: boolean;
        }[];
      }
    >
  >;
  /** Forgets the group in all queues. */
  "DELETE /api/v1/consumer-groups/:group": {
    readonly success: true;
    readonly consumerGroup: string;
    readonly deletedPartitions: number;
    readonly metadataDeleted: boolean;
  };
  /** Says where the group starts in partitions it has not met. */
  "POST /api/v1/consumer-groups/:group/subscription": {
    readonly success: true;
    readonly consumerGroup: string;
    /** UTC, such as 2026-11-15T19:00:00.000Z. */
    readonly newTimestamp: string;
    /** Queues. */
    readonly rowsUpdated: number;
  };
  /** Forgets the group in one queue. */
  "DELETE /api/v1/consumer-groups/:group/queues/:queue": {
    readonly success: true;
    readonly consumerGroup: string;
    readonly deletedPartitions: number;
    readonly metadataDeleted: boolean;
    readonly queueName: string;
  };
  /** How far the group was behind, over time. */
  "GET /api/v1/consumer-groups/:group/queues/:queue/lag": {
    readonly timeRange: {
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly from: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly to: string;
    };
    /** 1 up to an hour, 5 up to 6 hours, 15 up to a day, 60 up to a week, else 360. */
    readonly bucketMinutes: number;
    readonly series: readonly {
      /** When the bucket begins, such as 2026-11-15T19:00:00Z. */
      readonly bucket: string;
      /** Most unfinished ones that were seen in the bucket. */
      readonly messages: number;
      /** The greatest age of the oldest of them. */
      readonly oldestSeconds: number;
    }[];
  };
  /** What a seek would do; nothing is moved. */
  "GET /api/v1/consumer-groups/:group/queues/:queue/seek": {
    /** Null: the end. */
    readonly targetTimestamp: string | null;
    readonly partitionsMoved: number;
    /** Messages that the group has finished and would get again. */
    readonly deliveredAgain: number;
    /** Messages that the group has not finished and would not get. */
    readonly skipped: number;
    readonly leasesEnded: number;
  };
  /** What a seek in one partition would do. */
  "GET /api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek": {
    /** Null: the end. */
    readonly targetTimestamp: string | null;
    readonly partitionsMoved: number;
    /** Messages that the group has finished and would get again. */
    readonly deliveredAgain: number;
    /** Messages that the group has not finished and would not get. */
    readonly skipped: number;
    readonly leasesEnded: number;
  };
  /** Moves the group in all partitions of a queue, to the end or to a time. */
  "POST /api/v1/consumer-groups/:group/queues/:queue/seek": {
    readonly success: true;
    readonly consumerGroup: string;
    readonly queueName: string;
    readonly seekToEnd: boolean;
    readonly targetTimestamp: string | null;
    readonly partitionsUpdated: number;
  };
  /** Moves the group in one partition; without a body to the end. */
  "POST /api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek": {
    readonly success: true;
    readonly consumerGroup: string;
    readonly queueName: string;
    readonly partitionName: string;
    readonly updated: true;
    /** The last message before the new place. */
    readonly cursorMovedTo: string | null;
  };
  /** Notes something about a message. */
  "POST /api/v1/traces": {
    readonly success: true;
    /** A UUID. */
    readonly traceId: string;
  };
  /** The names of traces, the one used last first. */
  "GET /api/v1/traces/names": {
    readonly trace_names: readonly {
      readonly trace_name: string;
      readonly trace_count: number;
      readonly message_count: number;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly last_seen: string;
    }[];
    readonly total: number;
    readonly pagination: {
      readonly limit: number;
      readonly offset: number;
    };
  };
  /** The traces with a name, of all messages, the oldest first. */
  "GET /api/v1/traces/by-name/:traceName": {
    readonly traces: readonly {
      /** A UUID. */
      readonly id: string;
      readonly event_type: string;
      /** Any JSON, as the consumer sent it. */
      readonly data: unknown;
      readonly consumer_group: string;
      /** The worker that took the trace. */
      readonly worker_id: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly created_at: string;
      readonly trace_names: readonly string[];
      readonly transaction_id: string;
      /** A UUID. */
      readonly partition_id: string;
      readonly queue_name: string;
      readonly partition_name: string;
      /** Of the message; null where it is gone. */
      readonly message_payload: unknown;
    }[];
    readonly total: number;
    readonly pagination: {
      readonly limit: number;
      readonly offset: number;
    };
  };
  /** The traces of a message, the oldest first. */
  "GET /api/v1/traces/:partitionId/:transactionId": {
    readonly traces: readonly {
      /** A UUID. */
      readonly id: string;
      readonly event_type: string;
      /** Any JSON, as the consumer sent it. */
      readonly data: unknown;
      readonly consumer_group: string;
      /** The worker that took the trace. */
      readonly worker_id: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly created_at: string;
      readonly trace_names: readonly string[];
    }[];
  };
  /** Stops the delivery of a queue, of a partition, to a group, or of a partition to a group. */
  "POST /api/v1/queues/:queue/pause": {
    readonly success: true;
    readonly queue: string;
    readonly partition: string | null;
    readonly consumerGroup: string | null;
    readonly paused: true;
    readonly changed: boolean;
    readonly pausedBy: string;
    /** UTC, such as 2026-11-15T19:00:00.000Z. */
    readonly pausedAt: string;
    readonly reason: string | null;
    readonly message: string;
  };
  /** Ends the pause of exactly what is named. */
  "POST /api/v1/queues/:queue/resume": {
    readonly success: true;
    readonly queue: string;
    readonly partition: string | null;
    readonly consumerGroup: string | null;
    readonly paused: false;
    readonly changed: boolean;
    /** Other pauses of the queue. */
    readonly remainingPauses: number;
    readonly message: string;
  };
  /** What of a queue is paused, by whom, why and since when. */
  "GET /api/v1/queues/:queue/pauses": {
    readonly queue: string;
    readonly pauses: readonly {
      readonly partition: string | null;
      readonly consumerGroup: string | null;
      readonly reason: string | null;
      readonly pausedBy: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly pausedAt: string;
      readonly message: string;
    }[];
  };
  /** Why a partition does not move for a group. */
  "GET /api/v1/queues/:queue/partitions/:partition/explain": {
    readonly queue: string;
    readonly partition: string;
    /** A UUID. */
    readonly partitionId: string;
    readonly consumerGroup: string;
    readonly code:
      | "empty"
      | "pop_maintenance"
      | "paused"
      | "never_popped"
      | "leased"
      | "locked"
      | "retry_delay"
      | "window_buffer"
      | "delayed"
      | "exhausted"
      | "ready";
    readonly message: string;
    readonly advice: string;
    /** Rules that would keep it back if the first did not. */
    readonly also: readonly {
      readonly code:
        | "empty"
        | "pop_maintenance"
        | "paused"
        | "never_popped"
        | "leased"
        | "locked"
        | "retry_delay"
        | "window_buffer"
        | "delayed"
        | "exhausted"
        | "ready";
      readonly message: string;
      readonly advice: string;
    }[];
    /** When the rules of time are over; null: nobody knows, or now. */
    readonly dueAt: string | null;
    /** The first message that the group has not finished. */
    readonly head: {
      /** A UUID. */
      readonly id: string;
      readonly transactionId: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly createdAt: string;
      readonly ageSeconds: number;
    } | null;
    /** Messages that the group has not finished. */
    readonly pending: number;
    /** Messages behind the head that it has finished already. */
    readonly finishedAhead: number;
    /** The last lease, which may have run out; null: it was ended. */
    readonly lease: {
      readonly leaseId: string;
      readonly acquiredAt: string | null;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly expiresAt: string;
      readonly isActive: boolean;
      readonly firstMessageId: string | null;
      /** A UUID. */
      readonly lastMessageId: string;
      readonly unfinished: number;
    } | null;
    /** Of the head. */
    readonly attempts: {
      readonly failed: number;
      /** Null: it is retried until it succeeds. */
      readonly retryLimit: number | null;
      readonly lastErrors: readonly {
        /** UTC, such as 2026-11-15T19:00:00.000Z. */
        readonly at: string;
        readonly error: string;
      }[];
    };
    /** UTC, such as 2026-11-15T19:00:00.000Z. */
    readonly checkedAt: string;
  };
  /** What is wrong with PostgreSQL and the broker, and what fixes it. */
  "GET /api/v1/system/doctor": {
    /** The worst of them. */
    readonly status: "ok" | "warning" | "critical";
    /** UTC, such as 2026-11-15T19:00:00.000Z. */
    readonly checkedAt: string;
    readonly findings: readonly {
      readonly code: string;
      readonly severity: "ok" | "warning" | "critical";
      readonly message: string;
      readonly fix: string | null;
      readonly details: Readonly<Record<string, unknown>>;
    }[];
  };
  /** Which modes of maintenance are on, and what waits on the broker's disk. */
  "GET /api/v1/system/maintenance": {
    readonly maintenanceMode: boolean;
    readonly popMaintenanceMode: boolean;
    readonly bufferedMessages: number;
    readonly bufferHealthy: boolean;
    readonly bufferStats: {
      readonly pendingCount: number;
      readonly failedCount: number;
      readonly dbHealthy: boolean;
      readonly failedFiles: {
        readonly count: number;
        readonly totalBytes: number;
        readonly totalMB: number;
        readonly failoverCount: number;
        readonly qos0Count: number;
      };
    };
  };
  /** Switches push maintenance: while it is on, pushes wait on the brokers' disks. */
  "POST /api/v1/system/maintenance": {
    readonly maintenanceMode: boolean;
    readonly bufferedMessages: number;
    readonly bufferHealthy: boolean;
    readonly message: string;
  };
  /** Whether pop maintenance is on. */
  "GET /api/v1/system/maintenance/pop": {
    readonly popMaintenanceMode: boolean;
    readonly message: string;
  };
  /** Switches pop maintenance: while it is on, every pop is answered at once, with nothing. */
  "POST /api/v1/system/maintenance/pop": {
    readonly popMaintenanceMode: boolean;
    readonly message: string;
  };
  /** What waits on the broker's disk. */
  "GET /api/v1/status/buffers": {
    readonly pending: number;
    readonly failed: number;
    readonly dbHealthy: boolean;
    readonly worker: number;
  };
  /** What the worker that answers knows of the others. */
  "GET /api/v1/system/shared-state": {
    readonly enabled: boolean;
    readonly running: boolean;
    readonly server_id: string;
    readonly queue_config_cache: {
      readonly size: number;
      readonly hits: number;
      readonly misses: number;
      readonly hit_rate: number;
    };
    readonly server_health: {
      readonly servers_tracked: number;
      readonly servers_alive: number;
      readonly servers_dead: number;
      readonly heartbeats_received: number;
      readonly restarts_detected: number;
    };
    readonly maintenance_mode: boolean;
    readonly pop_maintenance_mode: boolean;
  };
  /** What the worker that answers knows of the others. */
  "GET /internal/api/shared-state/stats": {
    readonly enabled: boolean;
    readonly running: boolean;
    readonly server_id: string;
    readonly queue_config_cache: {
      readonly size: number;
      readonly hits: number;
      readonly misses: number;
      readonly hit_rate: number;
    };
    readonly server_health: {
      readonly servers_tracked: number;
      readonly servers_alive: number;
      readonly servers_dead: number;
      readonly heartbeats_received: number;
      readonly restarts_detected: number;
    };
    readonly maintenance_mode: boolean;
    readonly pop_maintenance_mode: boolean;
  };
  /** What the worker that answers knows of the others. */
  "GET /internal/api/inter-instance/stats": {
    readonly enabled: boolean;
    readonly running: boolean;
    readonly server_id: string;
    readonly queue_config_cache: {
      readonly size: number;
      readonly hits: number;
      readonly misses: number;
      readonly hit_rate: number;
    };
    readonly server_health: {
      readonly servers_tracked: number;
      readonly servers_alive: number;
      readonly servers_dead: number;
      readonly heartbeats_received: number;
      readonly restarts_detected: number;
    };
    readonly maintenance_mode: boolean;
    readonly pop_maintenance_mode: boolean;
  };
  /** Has parked pops of a queue, or of one of its partitions, look for work on every broker. */
  "POST /internal/api/notify": {
    readonly status: "ok";
  };
  /** Throughput, messages, leases, dead letters, workers and errors. */
  "GET /api/v1/status": {
    readonly timeRange: {
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly from: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly to: string;
    };
    /** 1 up to an hour, 5 up to 6 hours, 15 up to a day, 60 up to a week, else 360. */
    readonly bucketMinutes: number;
    readonly pointCount: number;
    /** Seconds since a worker wrote its figures; -1: none ever did. */
    readonly statsAge: number;
    /** The newest first. */
    readonly throughput: readonly {
      /** When the bucket begins, such as 2026-11-15T19:00:00Z. */
      readonly timestamp: string;
      readonly ingested: number;
      readonly processed: number;
      readonly popMessages: number;
      readonly ingestedPerSecond: number;
      readonly processedPerSecond: number;
      readonly popPerSecond: number;
      /** Age of messages at their delivery. */
      readonly avgLagMs: number;
      readonly maxLagMs: number;
      readonly avgEventLoopLagMs: number;
      readonly maxEventLoopLagMs: number;
      readonly minFreeSlots: number;
      readonly dbErrors: number;
      readonly ackFailed: number;
      readonly dlqCount: number;
      readonly queenCpuUserPct: number | null;
      readonly queenCpuSysPct: number | null;
      readonly queenRssMb: number | null;
      readonly dbPoolActive: number | null;
      readonly dbPoolIdle: number | null;
      readonly dbPoolSize: number | null;
    }[];
    /** Those that hold messages. */
    readonly queues: readonly {
      /** A UUID. */
      readonly id: string;
      readonly name: string;
      readonly namespace: string;
      readonly task: string;
      readonly partitions: number;
      readonly totalConsumed: number;
    }[];
    readonly messages: {
      /** In the log. */
      readonly total: number;
      /** Not finished and not leased. */
      readonly pending: number;
      /** Leased. */
      readonly processing: number;
      readonly completed: number;
      /** Not finished, and failed before. */
      readonly failed: number;
      readonly deadLetter: number;
      /** In the range. */
      readonly requests: {
        readonly push: number;
        readonly pop: number;
        readonly ack: number;
      };
      /** Messages per request in the range. */
      readonly batchEfficiency: {
        readonly push: number;
        readonly pop: number;
        readonly ack: number;
      };
    };
    readonly leases: {
      readonly active: number;
      readonly partitionsWithLeases: number;
      /** Messages under leases. */
      readonly totalBatchSize: number;
      /** Those of them that are finished. */
      readonly totalAcked: number;
    };
    readonly deadLetterQueue: {
      readonly totalMessages: number;
      readonly affectedPartitions: number;
      /** The five most frequent. */
      readonly topErrors: readonly {
        readonly error: string;
        readonly count: number;
      }[];
    };
    readonly workers: readonly {
      readonly hostname: string;
      readonly workerId: number;
      readonly avgEventLoopLagMs: number;
      readonly maxEventLoopLagMs: number;
      readonly freeSlots: number;
      readonly dbConnections: number;
      readonly jobQueueSize: number;
      readonly messagesProcessed: number;
    }[];
    readonly errors: {
      readonly dbErrors: number;
      readonly ackFailed: number;
      readonly dlqMessages: number;
    };
  };
  /** Messages stored by minute, hour or day. */
  "GET /api/v1/status/analytics": {
    /** Messages stored, the oldest interval first; intervals without any figure are left out. */
    readonly dataPoints: readonly {
      /** When the bucket begins, such as 2026-11-15T19:00:00Z. */
      readonly timestamp: string;
      readonly messages: number;
    }[];
    readonly interval: "minute" | "hour" | "day";
    /** UTC, such as 2026-11-15T19:00:00.000Z. */
    readonly from: string;
    /** UTC, such as 2026-11-15T19:00:00.000Z. */
    readonly to: string;
  };
  /** Memory, processor time and connections of every worker. */
  "GET /api/v1/analytics/system-metrics": {
    readonly timeRange: {
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly from: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly to: string;
    };
    readonly replicas: readonly {
      readonly hostname: string;
      readonly port: number;
      readonly workerId: string;
      readonly timeSeries: readonly {
        /** When the bucket begins, such as 2026-11-15T19:00:00Z. */
        readonly timestamp: string;
        readonly sampleCount: number;
        readonly metrics: {
          /** Microseconds of processor time per second. */
          readonly cpu: {
            readonly user_us: {
              readonly avg: number;
              readonly min: number;
              readonly max: number;
              readonly last: number;
            };
            readonly system_us: {
              readonly avg: number;
              readonly min: number;
              readonly max: number;
              readonly last: number;
            };
          };
          readonly memory: {
            readonly rss_bytes: {
              readonly avg: number;
              readonly min: number;
              readonly max: number;
              readonly last: number;
            };
            readonly virtual_bytes: {
              readonly avg: number;
              readonly min: number;
              readonly max: number;
              readonly last: number;
            };
          };
          readonly database: {
            readonly pool_size: {
              readonly avg: number;
              readonly min: number;
              readonly max: number;
              readonly last: number;
            };
            readonly pool_idle: {
              readonly avg: number;
              readonly min: number;
              readonly max: number;
              readonly last: number;
            };
            readonly pool_active: {
              readonly avg: number;
              readonly min: number;
              readonly max: number;
              readonly last: number;
            };
          };
          /** Connections of the data plane (`db`) and for everything else, and what waits for one. */
          readonly threadpool: {
            readonly db: {
              readonly pool_size: {
                readonly avg: number;
                readonly min: number;
                readonly max: number;
                readonly last: number;
              };
              readonly queue_size: {
                readonly avg: number;
                readonly min: number;
                readonly max: number;
                readonly last: number;
              };
            };
            readonly system: {
              readonly pool_size: {
                readonly avg: number;
                readonly min: number;
                readonly max: number;
                readonly last: number;
              };
              readonly queue_size: {
                readonly avg: number;
                readonly min: number;
                readonly max: number;
                readonly last: number;
              };
            };
          };
          readonly registries: {
            /** Requests that are not answered yet. */
            readonly response: {
              readonly avg: number;
              readonly min: number;
              readonly max: number;
              readonly last: number;
            };
          };
          readonly shared_state: {
            /** Other workers that the bus hears. */
            readonly peers: {
              readonly avg: number;
              readonly min: number;
              readonly max: number;
              readonly last: number;
            };
          };
        };
      }[];
    }[];
    readonly replicaCount: number;
    /** 1 up to an hour, 5 up to 6 hours, 15 up to a day, 60 up to a week, else 360. */
    readonly bucketMinutes: number;
    readonly pointCount: number;
  };
  /** What workers did. */
  "GET /api/v1/analytics/worker-metrics": {
    readonly timeRange: {
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly from: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly to: string;
    };
    /** 1 up to an hour, 5 up to 6 hours, 15 up to a day, 60 up to a week, else 360. */
    readonly bucketMinutes: number;
    readonly pointCount: number;
    /** The newest first. */
    readonly timeSeries: readonly {
      /** When the bucket begins, such as 2026-11-15T19:00:00Z. */
      readonly timestamp: string;
      readonly pushMessages: number;
      readonly popMessages: number;
      readonly ackMessages: number;
      readonly pushRequests: number;
      readonly popRequests: number;
      readonly ackRequests: number;
      readonly jobsDone: number;
      /** Per second of the bucket that has passed. */
      readonly pushPerSecond: number;
      /** Per second of the bucket that has passed. */
      readonly popPerSecond: number;
      /** Per second of the bucket that has passed. */
      readonly ackPerSecond: number;
      readonly avgEventLoopLagMs: number;
      readonly maxEventLoopLagMs: number;
      readonly avgFreeSlots: number;
      readonly minFreeSlots: number;
      readonly dbConnections: number;
      readonly avgJobQueueSize: number;
      readonly maxJobQueueSize: number;
      /** Always 0: a waiting pop does not poll. */
      readonly backoffSize: number;
      /** Age of messages at their delivery. */
      readonly avgLagMs: number;
      readonly maxLagMs: number;
      readonly lagCount: number;
      readonly dbErrors: number;
      readonly ackSuccess: number;
      readonly ackFailed: number;
      readonly dlqCount: number;
    }[];
    readonly workers: readonly {
      readonly hostname: string;
      readonly workerId: number;
      readonly avgEventLoopLagMs: number;
      readonly maxEventLoopLagMs: number;
      readonly freeSlots: number;
      readonly dbConnections: number;
      readonly jobQueueSize: number;
      readonly backoffSize: number;
      readonly messagesProcessed: number;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly lastSeen: string;
    }[];
    readonly queues: readonly {
      readonly queueName: string;
      readonly popCount: number;
      readonly avgLagMs: number;
      readonly maxLagMs: number;
    }[];
    readonly summary: {
      readonly totalPushMessages: number;
      readonly totalPopMessages: number;
      readonly totalAckMessages: number;
      readonly totalPushRequests: number;
      readonly totalPopRequests: number;
      readonly totalAckRequests: number;
      readonly totalDbErrors: number;
      readonly totalAckFailed: number;
      readonly totalDlq: number;
      readonly pendingMessages: number;
    };
  };
  /** How old messages were when they were delivered. */
  "GET /api/v1/analytics/queue-lag": readonly {
    readonly queueName: string;
    readonly popCount: number;
    readonly avgLagMs: number;
    readonly maxLagMs: number;
    /** When the bucket begins, such as 2026-11-15T19:00:00Z. */
    readonly bucketTime: string;
  }[];
  /** What was done with queues. */
  "GET /api/v1/analytics/queue-ops": {
    readonly timeRange: {
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly from: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly to: string;
    };
    /** 1 up to an hour, 5 up to 6 hours, 15 up to a day, 60 up to a week, else 360. */
    readonly bucketMinutes: number;
    /** The oldest first. */
    readonly series: readonly {
      /** When the bucket begins, such as 2026-11-15T19:00:00Z. */
      readonly bucket: string;
      readonly queueName: string;
      readonly pushRequests: number;
      readonly pushMessages: number;
      readonly popMessages: number;
      readonly popEmpty: number;
      readonly ackRequests: number;
      readonly ackSuccess: number;
      readonly ackFailed: number;
      readonly transactions: number;
      /** Of those that still exist. */
      readonly partitionsCreated: number;
      readonly partitionsDeleted: number;
      /** Now. */
      readonly partitionCount: number;
      readonly avgLagMs: number;
      readonly maxLagMs: number;
      /** Per second of the bucket that has passed. */
      readonly pushPerSecond: number;
      /** Per second of the bucket that has passed. */
      readonly popPerSecond: number;
      /** Per second of the bucket that has passed. */
      readonly ackPerSecond: number;
      /** Per second of the bucket that has passed. */
      readonly emptyPerSecond: number;
      /** Most consumers that waited at once. */
      readonly parkedCount: number;
    }[];
    readonly queues: readonly string[];
  };
  /** How many consumers waited at which worker. */
  "GET /api/v1/analytics/queue-parked-replicas": {
    readonly timeRange: {
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly from: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly to: string;
    };
    /** 1 up to an hour, 5 up to 6 hours, 15 up to a day, 60 up to a week, else 360. */
    readonly bucketMinutes: number;
    readonly series: readonly {
      /** When the bucket begins, such as 2026-11-15T19:00:00Z. */
      readonly bucket: string;
      readonly queueName: string;
      readonly hostname: string;
      readonly workerId: number;
      readonly parkedCount: number;
    }[];
    readonly replicas: readonly {
      readonly hostname: string;
      readonly workerId: number;
    }[];
  };
  /** How PostgreSQL is doing with Queen's tables. */
  "GET /api/v1/analytics/postgres-stats": {
    /** UTC, such as 2026-11-15T19:00:00.000Z. */
    readonly timestamp: string;
    readonly database: string;
    readonly databaseCache: {
      readonly database: string;
      readonly diskReads: number;
      readonly cacheHits: number;
      /** Percent. */
      readonly cacheHitRatio: number;
    };
    readonly tableCache: readonly {
      readonly schema: string;
      readonly table: string;
      readonly diskReads: number;
      readonly cacheHits: number;
      /** Percent. */
      readonly cacheHitRatio: number;
    }[];
    readonly indexCache: readonly {
      readonly schema: string;
      readonly table: string;
      readonly index: string;
      readonly diskReads: number;
      readonly cacheHits: number;
      /** Percent. */
      readonly cacheHitRatio: number;
    }[];
    readonly cacheSummary: {
      readonly tables: {
        readonly diskReads: number;
        readonly cacheHits: number;
        /** Percent. */
        readonly hitRatio: number;
      };
      readonly indexes: {
        readonly diskReads: number;
        readonly cacheHits: number;
        /** Percent. */
        readonly hitRatio: number;
      };
    };
    readonly deadTuples: readonly {
      readonly schema: string;
      readonly table: string;
      readonly deadTuples: number;
      readonly liveTuples: number;
      /** Percent. */
      readonly deadPercentage: number;
      readonly lastVacuum: string | null;
      readonly lastAutovacuum: string | null;
    }[];
    readonly hotUpdates: readonly {
      readonly schema: string;
      readonly table: string;
      readonly totalUpdates: number;
      readonly hotUpdates: number;
      /** Percent. */
      readonly hotUpdatePercentage: number;
    }[];
    readonly activeQueries: readonly {
      readonly pid: number;
      /** Seconds. */
      readonly duration: number | null;
      readonly state: string | null;
      readonly query: string | null;
      readonly waitEventType: string | null;
      readonly waitEvent: string | null;
    }[];
    readonly autovacuumStatus: readonly {
      readonly table: string;
      readonly lastAutovacuum: string | null;
      readonly deadTuples: number;
      readonly autovacuumCount: number;
      readonly autoanalyzeCount: number;
    }[];
    readonly bufferConfig: {
      /** Blocks. */
      readonly sharedBuffers: number;
      readonly sharedBuffersSize: string;
    };
    /** Empty unless the extension pg_buffercache is installed and may be read. */
    readonly bufferUsage: readonly {
      readonly object: string;
      /** For people, such as 8192 bytes. */
      readonly bufferedSize: string;
      readonly bufferedBytes: number;
      /** Percent. */
      readonly percentOfCache: number;
    }[];
    readonly tableSizes: readonly {
      readonly table: string;
      /** For people, such as 8192 bytes. */
      readonly totalSize: string;
      readonly totalSizeBytes: number;
      /** For people, such as 8192 bytes. */
      readonly tableSize: string;
      readonly tableSizeBytes: number;
      /** For people, such as 8192 bytes. */
      readonly indexSize: string;
      readonly indexSizeBytes: number;
    }[];
  };
  /** Messages that retention and eviction took from readers, over time. */
  "GET /api/v1/analytics/retention": {
    readonly timeRange: {
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly from: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly to: string;
    };
    readonly bucketMinutes: number;
    readonly series: readonly {
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly bucket: string;
      /** Too old, or expired. */
      readonly retentionMsgs: number;
      /** Old, and finished by every group. */
      readonly completedRetentionMsgs: number;
      /** Moved to dead letters because they waited too long. */
      readonly evictionMsgs: number;
      readonly totalMsgs: number;
      /** Rounds. */
      readonly eventCount: number;
    }[];
    readonly totals: {
      /** Too old, or expired. */
      readonly retentionMsgs: number;
      /** Old, and finished by every group. */
      readonly completedRetentionMsgs: number;
      /** Moved to dead letters because they waited too long. */
      readonly evictionMsgs: number;
      readonly totalMsgs: number;
      /** Rounds. */
      readonly eventCount: number;
    };
  };
  /** Background sweeps: which is under way, what each did last and ever. */
  "GET /api/v1/system/sweeps": {
    readonly sweeps: readonly {
      readonly name: string;
      readonly underWay: boolean;
      /** Who did the last round. */
      readonly worker: string | null;
      /** Of the pass under way, or of the last one. */
      readonly startedAt: string | null;
      /** Of the last whole pass. */
      readonly finishedAt: string | null;
      /** Of the pass under way, or of the last one. */
      readonly rounds: number;
      /** Time spent in these rounds. */
      readonly busyMs: number;
      /** What they did, by kind. */
      readonly done: Readonly<Record<string, number>>;
      /** Whole passes ever. */
      readonly passes: number;
      /** What was ever done, by kind. */
      readonly total: Readonly<Record<string, number>>;
    }[];
  };
  /** Whether the database can be used, and the broker is not stopping. */
  "GET /health": {
    readonly status: "healthy" | "unhealthy";
    readonly database: "connected" | "disconnected";
    readonly server: string;
    readonly worker_id: number;
    readonly version: string;
    readonly shared_state: {
      readonly enabled: boolean;
      readonly running: boolean;
      readonly server_id: string;
      readonly queue_config_cache: {
        readonly size: number;
        readonly hits: number;
        readonly misses: number;
        readonly hit_rate: number;
      };
      readonly server_health: {
        readonly servers_tracked: number;
        readonly servers_alive: number;
        readonly servers_dead: number;
        readonly heartbeats_received: number;
        readonly restarts_detected: number;
      };
      readonly maintenance_mode: boolean;
      readonly pop_maintenance_mode: boolean;
    };
    readonly queen: {
      readonly worker_id: number;
      readonly status: string;
    };
  };
  /** Whether the process lives. */
  "GET /livez": {
    readonly status: string;
  };
  /** Whether requests can be served. */
  "GET /readyz": {
    readonly status: string;
  };
  /** Figures of all workers of this broker. */
  "GET /metrics": Readonly<Record<string, unknown>>;
  /** Figures of all workers of this broker. */
  "GET /api/v1/system/metrics": Readonly<Record<string, unknown>>;
  /** Makes an API key; the key is shown this once. */
  "POST /api/v1/system/keys": {
    readonly id: string;
    readonly name: string;
    readonly role: "admin" | "read-write" | "read-only" | "produce" | "consume";
    /** Patterns; null: every queue. */
    readonly queues: readonly string[] | null;
    /** UTC, such as 2026-11-15T19:00:00.000Z. */
    readonly createdAt: string;
    readonly expiresAt: string | null;
    readonly key: string;
  };
  /** Every API key, without its secret, the newest first. */
  "GET /api/v1/system/keys": {
    readonly keys: readonly {
      readonly id: string;
      readonly name: string;
      readonly role: "admin" | "read-write" | "read-only" | "produce" | "consume";
      /** Patterns; null: every queue. */
      readonly queues: readonly string[] | null;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly createdAt: string;
      readonly expiresAt: string | null;
      readonly createdBy: string;
      readonly revokedAt: string | null;
    }[];
  };
  /** Revokes an API key, on every broker within a second. */
  "DELETE /api/v1/system/keys/:id": {
    readonly revoked: true;
    readonly id: string;
  };
  /** Who changed what, and what was refused, the newest first. */
  "GET /api/v1/system/audit": {
    readonly entries: readonly {
      readonly id: number;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly at: string;
      readonly actor: string;
      readonly address: string;
      readonly action: string;
      readonly target: string;
      readonly status: number;
      /** Refusals that repeat are counted. */
      readonly times: number;
    }[];
    /** The `before` of the next request; null: this was the last. */
    readonly nextBefore: number | null;
  };
  /** Makes a user, who signs in to the page by name and password. */
  "POST /api/v1/system/users": {
    readonly name: string;
    readonly role: "admin" | "read-write" | "read-only" | "produce" | "consume";
    /** Patterns; null: every queue. */
    readonly queues: readonly string[] | null;
    /** UTC, such as 2026-11-15T19:00:00.000Z. */
    readonly createdAt: string;
    readonly expiresAt: string | null;
  };
  /** Every user, by name. */
  "GET /api/v1/system/users": {
    readonly users: readonly {
      readonly name: string;
      readonly role: "admin" | "read-write" | "read-only" | "produce" | "consume";
      /** Patterns; null: every queue. */
      readonly queues: readonly string[] | null;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly createdAt: string;
      readonly expiresAt: string | null;
      readonly createdBy: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly passwordChangedAt: string;
      /** Browsers in which he is signed in. */
      readonly sessions: number;
    }[];
  };
  /** Removes a user; his sessions end on every broker within a second. */
  "DELETE /api/v1/system/users/:user": {
    readonly removed: true;
    readonly name: string;
  };
  /** Gives a user another password; his sessions end on every broker within a second. */
  "POST /api/v1/system/users/:user/password": {
    readonly changed: true;
    readonly name: string;
  };
  /** Messages on the broker's disk: how many wait, and which the database refused. */
  "GET /api/v1/system/spool": {
    readonly enabled: boolean;
    readonly folder: string | null;
    /** Whether the worker that answers sends pushes to the disk. */
    readonly databaseAway: boolean;
    /** Whether the last write went well. */
    readonly healthy: boolean;
    readonly draining: boolean;
    /** Messages that wait. */
    readonly pending: number;
    readonly bytes: number;
    readonly files: number;
    readonly bytesMax: number;
    /** Pieces of damaged bytes found at the start; copies are in quarantine/. */
    readonly damaged: number;
    readonly rejectedCount: number;
    readonly rejectedBytes: number;
    readonly rejected: readonly {
      readonly id: string;
      readonly queue: string;
      readonly partition: string;
      readonly transactionId: string | null;
      readonly traceId: string | null;
      readonly producerSub: string | null;
      readonly traceparent?: string | undefined;
      /** Any JSON, as the producer sent it. */
      readonly data: unknown;
      readonly reason: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly spooledAt: string;
      /** UTC, such as 2026-11-15T19:00:00.000Z. */
      readonly rejectedAt: string;
    }[];
    readonly pagination: {
      readonly limit: number;
      readonly offset: number;
    };
  };
  /** Tries rejected messages again, at the end of their partitions. */
  "POST /api/v1/system/spool/retry": {
    readonly success: true;
    readonly retried: number;
    readonly remaining: number;
  };
  /** Deletes rejected messages. */
  "POST /api/v1/system/spool/discard": {
    readonly success: true;
    readonly discarded: number;
    readonly remaining: number;
  };
  /** Who asks, and what he may do. */
  "GET /api/v1/session": {
    /** Whether it is on; if not, everybody may do everything. */
    readonly authentication: boolean;
    /** Whether users sign in by name and password. */
    readonly passwords: boolean;
    /** Null: nobody has signed in. */
    readonly name: string | null;
    readonly roles: readonly ("admin" | "read-write" | "read-only" | "produce" | "consume")[];
    /** What the caller may do. */
    readonly access: readonly ("open" | "read" | "produce" | "consume" | "write" | "admin")[];
    /** Patterns; null: every queue. */
    readonly queues: readonly string[] | null;
    readonly version: string;
  };
  /** Signs a browser in with a token or an API key, or by user and password; needs the header Queen-Page. */
  "POST /api/v1/session": {
    /** Whether it is on; if not, everybody may do everything. */
    readonly authentication: boolean;
    /** Whether users sign in by name and password. */
    readonly passwords: boolean;
    /** Null: nobody has signed in. */
    readonly name: string | null;
    readonly roles: readonly ("admin" | "read-write" | "read-only" | "produce" | "consume")[];
    /** What the caller may do. */
    readonly access: readonly ("open" | "read" | "produce" | "consume" | "write" | "admin")[];
    /** Patterns; null: every queue. */
    readonly queues: readonly string[] | null;
    readonly version: string;
  };
  /** This interface as an OpenAPI document. */
  "GET /openapi.json": Readonly<Record<string, unknown>>;
}
