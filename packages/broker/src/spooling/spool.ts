/**
 * The spool as a worker sees it: where pushes go when the database is away or push maintenance is on.
 *
 * `isEngaged` is the one thing that a push looks at while all is well. It is true
 *   - while the database is away for this worker: from a push that the database did not take (or the start) until
 *     a push went well again, by this worker's drain or another's;
 *   - while push maintenance is on;
 *   - while the keeper says so, because messages wait on the disk: then each push asks the keeper which of its lanes
 *     have some, and goes behind them.
 */
import { BrokerError, ERRORS, type ErrorCode } from "@queen/protocol";
import type { LaneName } from "../lanes/directory.ts";
import type { PushItem } from "../operations/push-body.ts";
import type { Pusher, PushRequest } from "../pushing/pusher.ts";
import type { Log } from "../telemetry.ts";
import type { OperationSpan } from "../tracing.ts";
import type { AskKind, Asks, Chosen, SpoolFigures, ToKeeper, ToWorker } from "./conversation.ts";
import type { Drainer } from "./drainer.ts";
import { laneKey, type SpoolRecord } from "./record.ts";
import type { RecordSeal } from "./record-seal.ts";

/** The way to the keeper. */
export interface KeeperLine {
  send(message: ToKeeper): void;
}

export interface SpoolOptions {
  /** Undefined: this broker has no spool. */
  readonly line: KeeperLine | undefined;
  readonly seal: RecordSeal;
  readonly pusher: Pusher;
  readonly drainer: Drainer;
  /** Resolves when a connection for pushes can be used; rejects where that ends in an error. */
  readonly probe: () => Promise<unknown>;
  readonly log: Log;
}

interface Asked {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

const ANSWER_MS_MAX = 8_000;
const PROBE_PAUSE_MS_MIN = 50;
const PROBE_PAUSE_MS_MAX = 1_000;

export class Spool {
  readonly #options: SpoolOptions;
  readonly #asked = new Map<number, Asked>();
  #asks = 0;
  #isEngaged: boolean;
  #isAway: boolean;
  #isInMaintenance = false;
  #isHeldByKeeper = false;
  #probing: Promise<void> | undefined;
  #isStopped = false;
  #buffered = 0;
  #latest: SpoolFigures | undefined;

  constructor(options: SpoolOptions) {
    this.#options = options;
    this.#isAway = options.line !== undefined; // until a first probe
    this.#isEngaged = this.#isAway;
  }

  get isEnabled(): boolean {
    return this.#options.line !== undefined;
  }

  /** Whether a push must come here first. */
  get isEngaged(): boolean {
    return this.#isEngaged;
  }

  /** Whether the database is away, as far as pushes go. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** Messages that this worker put on the disk. */
  get buffered(): number {
    return this.#buffered;
  }

  /** The broker's figures as they were a moment ago; undefined: it has no spool. */
  get latest(): SpoolFigures | undefined {
    return this.#latest;
  }

  /** Before the worker serves anybody: the keeper counts on it from now on. */
  async join(): Promise<void> {
    if (!this.isEnabled) return;
    const { figures } = await this.#ask("join", null);
    this.#latest = figures;
  }

  /** Connections may be made. Resolves when pushes go to the database. */
  async databaseReady(): Promise<void> {
    if (this.isEnabled) await this.#probe();
  }

  stop(): void {
    this.#isStopped = true;
    this.#keeperGone();
  }

  /** Push maintenance: every push goes to the disk, and nothing is drained. */
  setMaintenance(isOn: boolean): void {
    if (isOn === this.#isInMaintenance || !this.isEnabled) return;
    this.#isInMaintenance = isOn;
    this.#options.line!.send({ spool: "maintenance", isOn });
    this.#decide();
  }

  /** For pushes while `isEngaged`; the request's stranded items are for `take`. */
  async push(items: readonly PushItem[], span?: OperationSpan): Promise<PushRequest> {
    const { pusher } = this.#options;
    if (this.#isAway || this.#isInMaintenance) {
      return pusher.push(
        items,
        span,
        items.map(() => true),
      );
    }
    const held = await this.#held(items);
    return pusher.push(
      items,
      span,
      items.map(({ queue, partition }) => held.has(laneKey(queue, partition))),
    );
  }

  /** Puts the stranded items of a push on the disk. Rejects where that cannot be done. */
  async take(request: PushRequest): Promise<void> {
    const { seal } = this.#options;
    const { strandedBy, strandedItems, items } = request;
    if (!this.isEnabled) throw strandedBy!;
    if (strandedBy) this.#goAway(strandedBy);
    const indexes = [...strandedItems!.keys()].sort((a, b) => a - b);
    try {
      await this.#ask(
        "add",
        indexes.map((index) => {
          const { queue, partition, fragment } = items[index]!;
          return { queue, partition, doubt: strandedItems!.get(index), content: seal.seal(fragment) };
        }),
      );
    } finally {
      void this.#probe(); // not before: what waits on the disk shows whether the database takes it
    }
    this.#buffered += indexes.length;
  }

  /** A transaction cannot wait behind messages that are on the disk. */
  async refuseHeld(items: readonly LaneName[]): Promise<void> {
    if (items.length === 0 || !this.isEnabled) return;
    const held = await this.#held(items);
    const one = items.find(({ queue, partition }) => held.has(laneKey(queue, partition)));
    if (!one) return;
    throw new BrokerError(
      "DATABASE_UNAVAILABLE",
      `Partition ${one.partition} of ${one.queue} has messages on the broker's disk, which go first. Try again later.`,
    );
  }

  figures(): Promise<SpoolFigures> {
    return this.#ask("figures", null);
  }

  rejected(limit: number, offset: number): Promise<Asks["rejected"]["answer"]> {
    return this.#ask("rejected", { limit, offset });
  }

  retry(chosen: Chosen): Promise<Asks["retry"]["answer"]> {
    return this.#ask("retry", chosen);
  }

  discard(chosen: Chosen): Promise<Asks["discard"]["answer"]> {
    return this.#ask("discard", chosen);
  }

  received(message: ToWorker): void {
    switch (message.spool) {
      case "answer":
        this.#answered(message.id)?.resolve(message.answer);
        return;
      case "refusal":
        this.#answered(message.id)?.reject(new BrokerError(codeOf(message.code), message.message));
        return;
      case "engage":
        this.#isHeldByKeeper = true;
        this.#decide();
        this.#options.line!.send({ spool: "engaged", epoch: message.epoch });
        return;
      case "disengage":
        this.#isHeldByKeeper = false;
        this.#options.drainer.forget();
        this.#decide();
        return;
      case "figures":
        this.#latest = message.figures;
        return;
      case "drain":
        void this.#drain(message.batch, message.records);
    }
  }

  /** The primary process is gone; this one is about to end. */
  #keeperGone(): void {
    for (const id of [...this.#asked.keys()]) {
      this.#answered(id)?.reject(stopping());
    }
  }

  async #drain(batch: number, records: readonly SpoolRecord[]): Promise<void> {
    const { drainer, line, log } = this.#options;
    const { results, isAway } = await drainer.drain(records);
    if (isAway) {
      line!.send({ spool: "unable" });
      const reason = results.find((result) => result.status === "later")?.reason ?? "";
      this.#goAway(new Error(reason));
      void this.#probe();
    } else if (results.some((result) => result.status !== "later")) this.#comeBack();
    line!.send({ spool: "drained", batch, results });
    log.debug({ batch, records: records.length, isAway }, "spool.batch");
  }

  #goAway(reason: Error): void {
    if (this.#isAway) return;
    this.#isAway = true;
    this.#decide();
    this.#options.line!.send({ spool: "unable" });
    this.#options.log.warn({ message: reason.message }, "spool.database-away");
  }

  #comeBack(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#decide();
    this.#options.log.info({}, "spool.database-back");
  }

  /** Until the database takes pushes again: found out here, or by whoever drains. */
  #probe(): Promise<void> {
    this.#probing ??= this.#probeUntilBack().finally(() => {
      this.#probing = undefined;
    });
    return this.#probing;
  }

  async #probeUntilBack(): Promise<void> {
    let pauseMs = PROBE_PAUSE_MS_MIN;
    while (this.#isAway && !this.#isStopped) {
      try {
        await this.#options.probe();
        if ((await this.#ask("able", null)).isProven) this.#comeBack();
      } catch {
        // It is away, which is known.
      }
      if (!this.#isAway) break;
      await new Promise((resolve) => setTimeout(resolve, pauseMs).unref());
      pauseMs = Math.min(2 * pauseMs, PROBE_PAUSE_MS_MAX);
    }
  }

  #decide(): void {
    this.#isEngaged = this.#isAway || this.#isInMaintenance || this.#isHeldByKeeper;
  }

  async #held(lanes: readonly LaneName[]): Promise<Set<string>> {
    const named = new Map<string, LaneName>();
    for (const { queue, partition } of lanes) named.set(laneKey(queue, partition), { queue, partition });
    const held = await this.#ask("held", [...named.values()]);
    return new Set([...named.keys()].filter((_, index) => held[index]));
  }

  #ask<Kind extends AskKind>(kind: Kind, ask: Asks[Kind]["ask"]): Promise<Asks[Kind]["answer"]> {
    return new Promise((resolve, reject) => {
      const { line } = this.#options;
      if (this.#isStopped) {
        reject(stopping());
        return;
      }
      if (!line) {
        reject(new BrokerError("SPOOL_UNAVAILABLE", NO_SPOOL));
        return;
      }
      const id = ++this.#asks;
      const timer = setTimeout(() => {
        this.#answered(id)?.reject(
          new BrokerError("SPOOL_UNAVAILABLE", "The spool does not answer. Try again later."),
        );
      }, ANSWER_MS_MAX);
      this.#asked.set(id, { resolve: resolve as Asked["resolve"], reject, timer });
      line.send({ spool: "ask", id, kind, ask });
    });
  }

  #answered(id: number): Asked | undefined {
    const asked = this.#asked.get(id);
    this.#asked.delete(id);
    clearTimeout(asked?.timer);
    return asked;
  }
}

const NO_SPOOL = "This broker has no spool: its log says why, or QUEEN_SPOOL_MAX_BYTES is 0.";

const stopping = (): BrokerError =>
  new BrokerError("SHUTTING_DOWN", "The broker is stopping. Try another one.");

const codeOf = (code: string): ErrorCode => (code in ERRORS ? (code as ErrorCode) : "SPOOL_UNAVAILABLE");
