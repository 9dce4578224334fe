/**
 * What the keeper of the spool, in the primary process, and the workers say to each other. An ask has an answer with
 * its id. `engage` is confirmed by `engaged`: from then on the worker asks before it stores a push.
 */
import type { LaneName } from "../lanes/directory.ts";
import type { DrainResult } from "./drain.ts";
import type { NewRecord, SpoolRecord } from "./record.ts";
import type { Rejected } from "./rejected-records.ts";

export interface SpoolFigures {
  /** Messages that wait on the disk. */
  readonly pending: number;
  /** Bytes and files of those. */
  readonly bytes: number;
  readonly files: number;
  readonly bytesMax: number;
  readonly rejected: number;
  readonly rejectedBytes: number;
  /** Pieces of damaged bytes that were found at the start and are in quarantine. */
  readonly damaged: number;
  /** Whether messages can be written. */
  readonly isHealthy: boolean;
  /** Whether messages are being brought to the database. */
  readonly isDraining: boolean;
}

export type Chosen = { readonly ids: readonly string[] } | { readonly all: true };

/** Each ask with what it is answered. */
export interface Asks {
  /** A worker comes; it serves nobody before this is answered. */
  join: { ask: null; answer: { readonly figures: SpoolFigures } };
  /** Which of these lanes have records, so that a push must go behind them? */
  held: { ask: readonly LaneName[]; answer: readonly boolean[] };
  /** Answered when the records are synced. */
  add: { ask: readonly NewRecord[]; answer: null };
  /** The worker can reach the database again. Answered with whether others have shown that pushes work. */
  able: { ask: null; answer: { readonly isProven: boolean } };
  figures: { ask: null; answer: SpoolFigures };
  rejected: { ask: { readonly limit: number; readonly offset: number }; answer: readonly Rejected[] };
  retry: { ask: Chosen; answer: { readonly done: number; readonly remaining: number } };
  discard: { ask: Chosen; answer: { readonly done: number; readonly remaining: number } };
}

export type AskKind = keyof Asks;

export type ToKeeper =
  | { readonly spool: "ask"; readonly id: number; readonly kind: AskKind; readonly ask: unknown }
  | { readonly spool: "engaged"; readonly epoch: number }
  | { readonly spool: "unable" }
  | { readonly spool: "maintenance"; readonly isOn: boolean }
  | { readonly spool: "drained"; readonly batch: number; readonly results: readonly DrainResult[] };

export type ToWorker =
  | { readonly spool: "answer"; readonly id: number; readonly answer: unknown }
  | { readonly spool: "refusal"; readonly id: number; readonly code: string; readonly message: string }
  | { readonly spool: "engage"; readonly epoch: number }
  | { readonly spool: "disengage" }
  | { readonly spool: "figures"; readonly figures: SpoolFigures }
  | { readonly spool: "drain"; readonly batch: number; readonly records: readonly SpoolRecord[] };
