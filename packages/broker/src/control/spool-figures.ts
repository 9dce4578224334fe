/** What is known of messages that wait on the broker's disk. */
export interface SpoolFigures {
  readonly pending: number;
  /** Set aside, because the database refused them. */
  readonly failed: number;
  readonly failedFiles: number;
  readonly failedBytes: number;
  /** Whether messages could be written to it. */
  readonly healthy: boolean;
}

/** A broker without a spool has nothing waiting in it. */
export const NO_SPOOL: SpoolFigures = {
  pending: 0,
  failed: 0,
  failedFiles: 0,
  failedBytes: 0,
  healthy: true,
};
