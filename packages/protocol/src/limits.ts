/** Limits that clients can rely on. A name is counted in characters (Unicode code points), not bytes. */
export const NAME_LENGTH_MAX = 255;
export const TRANSACTION_ID_LENGTH_MAX = 255;
export const PAYLOAD_DEPTH_MAX = 512;
export const PUSH_ITEMS_MAX = 10_000;
export const ACK_ITEMS_MAX = 10_000;
export const TRANSACTION_OPERATIONS_MAX = 1_000;
export const POP_BATCH_MAX = 10_000;
/** What a pop answers at most; a single message may have more. */
export const POP_BYTES_MAX = 16 * 1024 * 1024;
/** A lease names its partitions inside its id, so their number bounds the id's length. */
export const POP_PARTITIONS_MAX = 128;
export const TRACE_DATA_BYTES_MAX = 65_536;
export const LEASE_SECONDS_MAX = 43_200;

/** Queue mode is the consumer group with this name. */
export const QUEUE_MODE_GROUP = "__QUEUE_MODE__";
export const DEFAULT_PARTITION = "Default";
