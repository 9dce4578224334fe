/**
 * A seal is how a message's fragment stands on the disk. Names are not sealed: the spool counts records by lane, and
 * the database has them in plain text, too.
 */
import type { Keyring } from "../operations/encryption.ts";
export interface RecordSeal {
  seal(fragment: string): Buffer;
  /** Throws where it cannot be opened. */
  open(content: Buffer): string;
}

/** With keys, everything is sealed: which queues are encrypted cannot be asked for while the database is away. */
export const recordSeal = (keyring: Keyring): RecordSeal => ({
  seal: (fragment) => {
    const content = keyring.isEmpty ? fragment : keyring.seal(fragment, "");
    return PLAIN_SEAL.seal(content);
  },
  open: (content) => keyring.open(PLAIN_SEAL.open(content)),
});

/** Fragments have one character per byte. */
export const PLAIN_SEAL: RecordSeal = {
  seal: (fragment) => Buffer.from(fragment, "latin1"),
  open: (content) => content.toString("latin1"),
};
