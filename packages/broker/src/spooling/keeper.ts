/**
 * The keeper is the one owner of the spool, in the primary process. Workers send it records and ask it before each
 * push while it is engaged; it sends batches of records to a worker that can reach the database.
 *
 *   idle ──first record, maintenance──▶ engaging ──every worker confirmed──▶ engaged ──empty──▶ idle
 *
 * No record is answered before every worker has confirmed, so no worker stores a push directly while an earlier
 * push to the same lane waits on the disk. When little is left to drain, pushes to its lanes are made to wait for that:
 * behind it on the disk they would, under load, follow each other there for ever.
 */
import { mkdir } from "node:fs/promises";
import { BrokerError } from "@queen/protocol";
import { crashPoint } from "../crash-point.ts";
import type { LaneName } from "../lanes/directory.ts";
import { claimFolder, type Ownership } from "../postgres/embedded-owner.ts";
import type { Log } from "../telemetry.ts";
import type { AskKind, Asks, Chosen, SpoolFigures, ToKeeper, ToWorker } from "./conversation.ts";
import { Drain, type DrainResult } from "./drain.ts";
import { readProgress } from "./progress.ts";
import type { NewRecord, SpoolRecord } from "./record.ts";
import type { OpenFile } from "./segment-file.ts";
import { SpoolStore } from "./spool-store.ts";

/** The way to a worker. */
export interface WorkerLine {
  send(message: ToWorker): void;
}

export interface KeeperOptions {
  readonly folder: string;
  readonly bytesMax: number;
  readonly log: Log;
  readonly openFile?: OpenFile;
}

interface Member {
  readonly line: WorkerLine;
  hasJoined: boolean;
  /** The last engagement that it confirmed. */
  epoch: number;
  isAble: boolean;
  isInMaintenance: boolean;
}

interface DrainUnderWay {
  readonly batch: number;
  readonly member: Member;
  readonly done: (results: readonly DrainResult[] | undefined) => void;
}

// While it is not known whether the database takes messages, little is sent to find out.
const TRIAL_RECORDS_MAX = 16;
const PAUSE_MS = 50;
const REPORT_EVERY_MS = 5_000;
const TELL_AFTER_MS = 500;
// So much is drained in a moment, and a push may wait for it a little.
const LITTLE_RECORDS_MAX = 2_000;
const WAIT_MS_MAX = 2_000;

export class Keeper {
  readonly folder: string;
  readonly #options: KeeperOptions;
  readonly #ownership: Ownership;
  readonly #store: SpoolStore;
  readonly #drain: Drain;
  readonly #members = new Map<WorkerLine, Member>();
  #epoch = 0;
  #isEngaged = false;
  #confirmed: (() => void)[] = [];
  /** Called when a batch was settled, and when there will be none. */
  #settled: (() => void)[] = [];
  #addsUnderWay = 0;
  #isDraining = false;
  /** The last batch was taken by the database. */
  #isProven = false;
  #underWay: DrainUnderWay | undefined;
  #batches = 0;
  #telling: NodeJS.Timeout | undefined;
  #stopped = false;

  /** Rejects where the folder cannot be used, with an Error whose message says what to do. */
  static async open(options: KeeperOptions): Promise<Keeper> {
    const { folder, bytesMax, log, openFile } = options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const ownership = await claimFolder(
      folder,
      (message) => log.info({ message }, "spool.folder"),
      spoolInUse,
    );
    try {
      const clock = Date.now;
      const now = (): number => performance.now();
      const progress = await readProgress(folder);
      const store = await SpoolStore.open({
        folder,
        bytesMax,
        log,
        clock,
        ...(openFile ? { openFile } : {}),
      });
      const drain = new Drain({ store, folder, progress, now, clock, log });
      return new Keeper(options, ownership, store, drain);
    } catch (error) {
      ownership.release();
      throw error;
    }
  }

  private constructor(options: KeeperOptions, ownership: Ownership, store: SpoolStore, drain: Drain) {
    this.folder = options.folder;
    this.#options = options;
    this.#ownership = ownership;
    this.#store = store;
    this.#drain = drain;
    this.#isEngaged = store.pending > 0;
  }

  get figures(): SpoolFigures {
    const { pending, bytes, files, rejected, damaged, isHealthy } = this.#store;
    return {
      pending,
      bytes,
      files: files.length,
      bytesMax: this.#options.bytesMax,
      rejected: rejected.count,
      rejectedBytes: rejected.bytes,
      damaged,
      isHealthy,
      isDraining: this.#isDraining,
    };
  }

  received(line: WorkerLine, message: ToKeeper): void {
    let member = this.#members.get(line);
    if (!member) {
      member = { line, hasJoined: false, epoch: 0, isAble: false, isInMaintenance: false };
      this.#members.set(line, member);
    }
    switch (message.spool) {
      case "ask":
        void this.#answer(member, message.id, message.kind, message.ask);
        return;
      case "engaged":
        member.epoch = message.epoch;
        this.#checkConfirmed();
        return;
      case "unable":
        member.isAble = false;
        this.#isProven = false;
        this.#tellSettled();
        return;
      case "maintenance":
        member.isInMaintenance = message.isOn;
        if (!message.isOn) this.#startDraining();
        return;
      case "drained":
        if (this.#underWay?.batch === message.batch) this.#underWay.done(message.results);
    }
  }

  /** The worker is gone. */
  left(line: WorkerLine): void {
    const member = this.#members.get(line);
    if (!member) return;
    this.#members.delete(line);
    this.#checkConfirmed();
    if (this.#underWay?.member === member) this.#underWay.done(undefined);
    this.#startDraining();
  }

  /** Everything that was answered is synced already; the folder is free afterwards. */
  async close(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#telling);
    this.#underWay?.done(undefined);
    await this.#store.close();
    this.#ownership.release();
  }

  async #answer(member: Member, id: number, kind: AskKind, ask: unknown): Promise<void> {
    try {
      const answer = await this.#handle(member, kind, ask);
      member.line.send({ spool: "answer", id, answer });
    } catch (error) {
      const { code, message } =
        error instanceof BrokerError
          ? error
          : { code: "SPOOL_UNAVAILABLE", message: `The spool failed: ${(error as Error).message}` };
      member.line.send({ spool: "refusal", id, code, message });
    }
  }

  #handle(member: Member, kind: AskKind, ask: unknown): Promise<unknown> | unknown {
    switch (kind) {
      case "join":
        member.hasJoined = true;
        member.epoch = this.#epoch;
        // Told by a message as ever, and before the answer: what is said last about it is what holds.
        if (this.#isEngaged) member.line.send({ spool: "engage", epoch: this.#epoch });
        return { figures: this.figures } satisfies Asks["join"]["answer"];
      case "held":
        return this.#held(ask as readonly LaneName[]);
      case "add":
        return this.#add(ask as readonly NewRecord[]);
      case "able":
        member.isAble = true;
        this.#startDraining();
        return {
          isProven: this.#isProven || this.#store.pending === 0 || this.#isInMaintenance,
        } satisfies Asks["able"]["answer"];
      case "figures":
        return this.figures;
      case "rejected": {
        const { limit, offset } = ask as Asks["rejected"]["ask"];
        return this.#store.rejected.list(limit, offset);
      }
      case "retry":
        return this.#retry(ask as Chosen);
      case "discard":
        return this.#discard(ask as Chosen);
    }
  }

  async #held(lanes: readonly LaneName[]): Promise<boolean[]> {
    const untilMs = performance.now() + WAIT_MS_MAX;
    const isHeld = ({ queue, partition }: LaneName): boolean => this.#store.holds(queue, partition);
    const maySoonBeFree = (lane: LaneName): boolean => isHeld(lane) && !this.#drain.isBlocked(lane);
    while (
      this.#isProven &&
      this.#store.pending <= LITTLE_RECORDS_MAX &&
      performance.now() < untilMs &&
      lanes.some(maySoonBeFree)
    ) {
      await new Promise<void>((resolve) => {
        this.#settled.push(resolve);
      });
    }
    return lanes.map(isHeld);
  }

  #tellSettled(): void {
    const settled = this.#settled;
    this.#settled = [];
    for (const resolve of settled) resolve();
  }

  async #add(records: readonly NewRecord[]): Promise<null> {
    this.#addsUnderWay++;
    try {
      await this.#engage();
      await this.#store.add(records);
    } finally {
      this.#addsUnderWay--;
      this.#tellSoon();
    }
    this.#startDraining();
    return null;
  }

  async #retry(chosen: Chosen): Promise<Asks["retry"]["answer"]> {
    const { rejected } = this.#store;
    let done = 0;
    for (const id of idsOf(chosen, rejected.ids)) {
      const found = await rejected.read(id);
      if (!found) continue;
      await this.#add([{ ...found.record, doubt: undefined }]);
      if (await rejected.discard(id)) done++;
    }
    return { done, remaining: rejected.count };
  }

  async #discard(chosen: Chosen): Promise<Asks["discard"]["answer"]> {
    const { rejected } = this.#store;
    let done = 0;
    for (const id of idsOf(chosen, rejected.ids)) if (await rejected.discard(id)) done++;
    this.#tellSoon();
    return { done, remaining: rejected.count };
  }

  /** Resolves when every worker has confirmed that it asks before it stores a push. */
  #engage(): Promise<void> | void {
    if (!this.#isEngaged) {
      this.#isEngaged = true;
      this.#epoch++;
      for (const { line } of this.#members.values()) line.send({ spool: "engage", epoch: this.#epoch });
    }
    if (this.#isConfirmed) return;
    return new Promise((resolve) => {
      this.#confirmed.push(resolve);
    });
  }

  get #isConfirmed(): boolean {
    for (const { hasJoined, epoch } of this.#members.values())
      if (hasJoined && epoch < this.#epoch) return false;
    return true;
  }

  #checkConfirmed(): void {
    if (!this.#isConfirmed) return;
    const confirmed = this.#confirmed;
    this.#confirmed = [];
    for (const resolve of confirmed) resolve();
  }

  #disengage(): void {
    if (!this.#isEngaged || this.#store.pending > 0 || this.#addsUnderWay > 0) return;
    this.#isEngaged = false;
    for (const { line } of this.#members.values()) line.send({ spool: "disengage" });
  }

  /** Workers show figures without asking for them. */
  #tellSoon(): void {
    if (this.#stopped) return;
    this.#telling ??= setTimeout(() => {
      this.#telling = undefined;
      for (const { line } of this.#members.values()) line.send({ spool: "figures", figures: this.figures });
    }, TELL_AFTER_MS);
  }

  #startDraining(): void {
    if (this.#isDraining || !this.#mayDrain()) return;
    this.#isDraining = true;
    this.#drainAll()
      .catch((error) => this.#options.log.error({ error }, "spool.drain-failed"))
      .finally(() => {
        this.#isDraining = false;
        this.#isProven = false;
        this.#tellSettled();
        this.#disengage();
        this.#tellSoon();
        // A record that was added, or a worker that became able, in this very moment.
        if (this.#mayDrain()) setTimeout(() => this.#startDraining(), PAUSE_MS);
      });
  }

  #mayDrain(): boolean {
    if (this.#stopped || this.#store.pending === 0) return false;
    return [...this.#members.values()].some((member) => member.isAble) && !this.#isInMaintenance;
  }

  get #isInMaintenance(): boolean {
    return [...this.#members.values()].some((member) => member.isInMaintenance);
  }

  async #drainAll(): Promise<void> {
    const { log } = this.#options;
    let [drained, reportedMs] = [0, performance.now()];
    const startedMs = reportedMs;
    while (this.#mayDrain()) {
      const batch = await this.#drain.nextBatch(this.#isProven ? undefined : TRIAL_RECORDS_MAX);
      const member = [...this.#members.values()].find(({ isAble }) => isAble);
      if (batch.length === 0 || !member) {
        await pause(PAUSE_MS);
        continue;
      }
      const results = await this.#send(member, batch);
      if (!results) continue; // its worker is gone
      crashPoint("drain-after-append");
      const finished = await this.#drain.settle(batch, results);
      this.#tellSoon();
      if (drained === 0 && finished > 0) log.info({ pending: this.#store.pending }, "spool.draining");
      drained += finished;
      this.#isProven = finished > 0;
      this.#tellSettled();
      if (!member.isAble) this.#drain.forgetBlocked();
      if (performance.now() - reportedMs < REPORT_EVERY_MS) continue;
      reportedMs = performance.now();
      log.info({ drained, pending: this.#store.pending }, "spool.draining");
    }
    if (drained === 0) return;
    const seconds = Math.round(performance.now() - startedMs) / 1_000;
    const { pending, rejected } = this.#store;
    log.info(
      { drained, pending, rejected: rejected.count, seconds },
      pending === 0 ? "spool.drained" : "spool.waits",
    );
  }

  #send(member: Member, records: readonly SpoolRecord[]): Promise<readonly DrainResult[] | undefined> {
    return new Promise((resolve) => {
      const batch = ++this.#batches;
      this.#underWay = {
        batch,
        member,
        done: (results) => {
          this.#underWay = undefined;
          resolve(results);
        },
      };
      member.line.send({ spool: "drain", batch, records });
    });
  }
}

const idsOf = (chosen: Chosen, all: readonly string[]): readonly string[] =>
  "ids" in chosen ? chosen.ids : all;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const spoolInUse = (folder: string, who: string): string =>
  `${who} is using the spool folder ${folder}: stop it, or set QUEEN_SPOOL_DIR to a folder of this broker's own.`;
