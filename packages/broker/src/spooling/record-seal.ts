/**
 * A seal is how a message's fragment stands on the disk. Names are not sealed: the spool counts records by lane, and
 * the database has them in plain text, too.
 */
export interface RecordSeal {
  seal(fragment: string): Buffer;
  /** Throws where it cannot be opened. */
  open(content: Buffer): string;
}

/** Fragments have one character per byte. */
export const PLAIN_SEAL: RecordSeal = {
  seal: (fragment) => Buffer.from(fragment, "latin1"),
  open: (content) => content.toString("latin1"),
};
