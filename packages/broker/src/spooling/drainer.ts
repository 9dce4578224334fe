/**
 * The drainer brings a batch of spool records into their lanes, in a worker, the way that every push goes.
 *
 *   check ──▶ open the lanes ──▶ look in the log ──▶ push
 *     │            │                  │                │
 *     └─ rejected ◀┴── refused        └─ stored        ├─ stored
 *                                                      ├─ rejected: refused for what it is
 *                                                      └─ later: lane held, database away
 *
 * Of one lane, what is stored is always the first part of what was to be stored.
 */
import { BrokerError } from "@queen/protocol";
import { crashPoint } from "../crash-point.ts";
import type { Directory } from "../lanes/directory.ts";
import type { Lane, MessageOwner } from "../lanes/lane.ts";
import { groupBy } from "../operations/group-by.ts";
import { checkName } from "../operations/names.ts";
import type { PushItem } from "../operations/push-body.ts";
import { traceIdJson, transactionIdJson } from "../operations/segment.ts";
import { transactionKey, transactionKeyBytes } from "../operations/transaction-key.ts";
import { classify, isAway } from "../postgres/errors.ts";
import type { Session } from "../postgres/session.ts";
import { findMessages } from "../postgres/statements.ts";
import type { Pusher } from "../pushing/pusher.ts";
import type { DrainResult } from "./drain.ts";
import { checkFragment } from "./fragment.ts";
import { LogKeys } from "./log-keys.ts";
import { laneKey, type SpoolRecord } from "./record.ts";
import type { RecordSeal } from "./record-seal.ts";

export interface DrainerOptions {
  readonly directory: Directory;
  readonly pusher: Pusher;
  readonly seal: RecordSeal;
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

interface Entry {
  readonly record: SpoolRecord;
  readonly item: PushItem;
  lane: Lane | undefined;
  result: DrainResult | undefined;
}

export interface Drained {
  readonly results: DrainResult[];
  /** The database is away: nothing else need be tried now. */
  readonly isAway: boolean;
}

// A lane that somebody holds is tried again later; the batch's other lanes should not wait long for it.
const PATIENCE_MS = 1_000;
const STORED: DrainResult = { status: "stored" };

export class Drainer {
  readonly #options: DrainerOptions;
  readonly #logKeys: LogKeys;

  constructor(options: DrainerOptions) {
    this.#options = options;
    this.#logKeys = new LogKeys(options.clock);
  }

  /** Nothing is left on the disk. */
  forget(): void {
    this.#logKeys.forget();
  }

  async drain(records: readonly SpoolRecord[]): Promise<Drained> {
    const results: (DrainResult | undefined)[] = records.map(() => undefined);
    const entries = new Map<number, Entry>();
    const held = new Set<string>();
    for (const [index, record] of records.entries()) {
      const key = laneKey(record.queue, record.partition);
      if (held.has(key)) {
        results[index] = { status: "later", reason: "An earlier message of its partition must wait." };
        continue;
      }
      try {
        entries.set(index, { record, item: this.#item(record), lane: undefined, result: undefined });
      } catch (error) {
        const { message: reason, retryable } = classify(error);
        results[index] = { status: retryable ? "later" : "rejected", reason };
        if (retryable) held.add(key); // a key is missing, and what comes behind it waits, too
      }
    }
    const all = [...entries.values()];
    let away = false;
    const fail = (entry: Entry, error: unknown): void => {
      entry.result ??= failure(error);
      away ||= isAway(error);
    };
    try {
      await this.#openLanes(all, fail);
      await this.#lookUp(all.filter((entry) => !entry.result));
      crashPoint("drain-before-append");
      await this.#push(
        all.filter((entry) => !entry.result),
        fail,
      );
    } catch (error) {
      for (const entry of all) fail(entry, error);
    }
    for (const [index, { result }] of entries) results[index] = result!;
    return { results: results as DrainResult[], isAway: away };
  }

  /** Everything is checked again: the file may come from elsewhere. */
  #item(record: SpoolRecord): PushItem {
    const queue = checkName(record.queue, "queue", { allowEmpty: true });
    const partition = checkName(record.partition, "partition");
    const fragment = this.#options.seal.open(record.content);
    const transactionId = checkFragment(fragment);
    const { high: keyHigh, low: keyLow } = transactionKey(transactionId);
    return {
      queue,
      partition,
      transactionId,
      transactionIdJson: transactionIdJson(fragment),
      traceIdJson: traceIdJson(fragment),
      keyHigh,
      keyLow,
      fragment,
    };
  }

  /** All names in one call; if that is refused, each alone, so that a bad one fails nobody else. */
  async #openLanes(entries: readonly Entry[], fail: (entry: Entry, error: unknown) => void): Promise<void> {
    const byLane = groupBy(entries, ({ item }) => laneKey(item.queue, item.partition));
    const open = async (own: readonly Entry[]): Promise<void> => {
      const { directory } = this.#options;
      const { item } = own[0]!;
      const lane = directory.lane(item.queue, item.partition) ?? (await directory.open(item, true));
      if (!lane) throw new BrokerError("OVERLOADED", `Queue ${item.queue} is being deleted.`);
      for (const entry of own) entry.lane = lane;
    };
    const groups = [...byLane.values()];
    const opened = await Promise.allSettled(groups.map(open));
    for (const [index, outcome] of opened.entries()) {
      if (outcome.status === "fulfilled") continue;
      const own = groups[index]!;
      const failed = isRefusal(outcome.reason)
        ? await open(own).then(
            () => undefined,
            (error: unknown) => ({ error }),
          )
        : { error: outcome.reason as unknown };
      if (failed) for (const entry of own) fail(entry, failed.error);
    }
  }

  /** What an append in doubt, a drain that was cut off or another broker has stored is not stored again. */
  async #lookUp(entries: readonly Entry[]): Promise<void> {
    if (entries.length === 0) return;
    const { use } = this.#options;
    const byLane = groupBy(entries, (entry) => entry.lane!);
    const waiting = [...byLane].map(([lane, own]) => {
      const doubts = own.flatMap(({ record: { doubt } }) =>
        doubt?.partition === lane.id ? [doubt.from] : [],
      );
      return {
        lane,
        sinceMs: Math.min(...own.map(({ record }) => record.spooledAtMs)),
        doubtFrom: doubts.length === 0 ? -1 : Math.min(...doubts),
      };
    });
    await use((session) => this.#logKeys.read(session, waiting));
    const suspects = entries.filter(({ lane, item }) => this.#logKeys.maybeHas(lane!, item.keyLow));
    if (suspects.length === 0) return;
    const rows = await use((session) =>
      session.run(findMessages, [
        suspects.map(({ lane }) => lane!.id),
        suspects.map(({ item }) => transactionKeyBytes(item.transactionId)),
        suspects.map(({ lane }) => this.#logKeys.fromOffset(lane!)),
      ]),
    );
    for (const { search, fragment } of rows) {
      const entry = suspects[search]!;
      if (transactionIdJson(fragment) === entry.item.transactionIdJson) entry.result = STORED;
    }
  }

  #push(entries: readonly Entry[], fail: (entry: Entry, error: unknown) => void): Promise<void> {
    const { pusher, now } = this.#options;
    if (entries.length === 0) return Promise.resolve();
    return new Promise((resolve) => {
      let left = entries.length;
      const decided = (): void => {
        if (--left === 0) resolve();
      };
      const stored = (index: number): void => {
        entries[index]!.result = STORED;
        decided();
      };
      const owner: MessageOwner = {
        queued: stored,
        duplicate: stored,
        failed: (index, error) => {
          fail(entries[index]!, error);
          decided();
        },
        stranded: (index, reason) => {
          fail(entries[index]!, reason);
          decided();
        },
      };
      const deadlineAtMs = now() + PATIENCE_MS;
      for (const [index, { item }] of entries.entries()) pusher.add(owner, index, item, deadlineAtMs);
    });
  }
}

/** Only what is wrong with the message itself sets it aside; everything else may be mended. */
const isRefusal = (error: unknown): boolean =>
  classify(error).code === "VALIDATION_FAILED" || isConstraint(error);

/** A rule of the database's own, such as a check or a trigger of its owner's. */
function isConstraint(error: unknown): boolean {
  const { cause = error } = classify(error);
  return /^23/.test(String((cause as { sqlstate?: string }).sqlstate ?? ""));
}

function failure(error: unknown): DrainResult {
  const { message } = classify(error);
  return { status: isRefusal(error) ? "rejected" : "later", reason: message };
}
