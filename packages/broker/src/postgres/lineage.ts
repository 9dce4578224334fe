/**
 * The lineage of the database: which cluster it is, and on which timeline. A replica that takes over begins a
 * new timeline. What the old primary had and the replica had not is gone then: its offsets are given to other
 * messages, and whatever is held of them in memory is void. An old primary that comes back, and was not made a
 * replica, is on the old timeline still: what is written to it is lost, so it is not used.
 */
export interface Origin {
  /** The cluster's system identifier. */
  readonly system: string;
  readonly timeline: number;
}

export class Lineage {
  readonly #changed: () => void;
  #newest: Origin | undefined;

  /** `changed` is called before the first connection to another cluster or timeline is used. */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** Throws where the server must not be used. */
  admit(origin: Origin): void {
    const newest = this.#newest;
    const isSame = newest?.system === origin.system;
    if (isSame && newest.timeline > origin.timeline)
      throw new Error(
        `it is on timeline ${origin.timeline}, and timeline ${newest.timeline} was seen: it was the primary before a ` +
          "fail-over. Make it a replica of the new one (pg_rewind, pg_basebackup)",
      );
    if (isSame && newest.timeline === origin.timeline) return;
    this.#newest = origin;
    if (newest) this.#changed();
  }
}
