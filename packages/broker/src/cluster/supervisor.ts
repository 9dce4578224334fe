/**
 * A worker is a process that serves requests; the supervisor, in the primary process, keeps a number of them
 * running. All workers listen on one port: the primary accepts connections and offers them to one worker after the other,
 * until one takes it. Which one does is a matter of placement (see placement.ts).
 *
 *   forked ──hello──▶ waiting ──start──▶ starting ──listening──▶ serving ──stop──▶ stopping ──▶ ended
 *     ▲                                      │                      │
 *     │                                      └──────── it died ─────┤
 *     └───────────── after a pause of 0.1 to 5 s ◀──────────────────┘
 *
 * Their conversation is defined here; worker-process.ts has its other half. Orders travel by message, so that no secret
 * stands in an argument list.
 */
import cluster, { type Worker } from "node:cluster";
import { cpus } from "node:os";
import type { Log } from "../telemetry.ts";
import { watchOffers } from "./offers.ts";
import { PLACED_EVERY_MS, place } from "./placement.ts";
import {
  type AnswerMessage,
  type AnswersMessage,
  type AskMessage,
  type QuestionMessage,
  QuestionRelay,
} from "./questions.ts";

/** What a worker process does between its start and its end. */
export interface WorkerService {
  readonly port: number;
  /** The schema is there. Resolves when this worker can use the database. */
  databaseReady(): Promise<void>;
  /** Every worker can use the database. */
  allReady(): void;
  /** Whether it takes connections that it is offered. */
  accept(isAccepting: boolean): void;
  /** So many of its clients, from 0 to 1, are asked to come back by another connection. */
  turnAway(share: number): void;
  /** What this worker says to a question that another one asked. */
  answer(question: string): unknown;
  stop(): Promise<void>;
}

export type ToWorker<Orders> =
  | {
      readonly queen: "start";
      readonly orders: Orders;
      readonly workerIndex: number;
      readonly stopMsMax: number;
      /** Whether it tells how busy it is. */
      readonly isPlaced: boolean;
    }
  | { readonly queen: "database-ready" }
  | { readonly queen: "all-ready" }
  | { readonly queen: "accept"; readonly isAccepting: boolean }
  | { readonly queen: "turn-away"; readonly share: number }
  | { readonly queen: "service"; readonly message: unknown }
  | { readonly queen: "stop" }
  | QuestionMessage
  | AnswersMessage;

export type ToSupervisor =
  | { readonly queen: "hello" }
  | { readonly queen: "listening"; readonly port: number }
  | { readonly queen: "ready" }
  | { readonly queen: "busy"; readonly share: number }
  | { readonly queen: "stopping" }
  | { readonly queen: "service"; readonly message: unknown }
  | { readonly queen: "failed"; readonly message: string; readonly code: string | undefined }
  | AskMessage
  | AnswerMessage;

/** The way to the service of one worker. */
export interface WorkerLine {
  send(message: unknown): void;
}

/** The way from a worker's service to the primary process. */
export interface PrimaryLine {
  send(message: unknown): void;
  onMessage(listener: (message: unknown) => void): void;
  /** The primary process is gone; the worker is about to stop. */
  onEnd(listener: () => void): void;
}

/** Hears what the services of workers say to the primary process. */
export interface ServiceListener {
  received(line: WorkerLine, message: unknown): void;
  left(line: WorkerLine): void;
}

export interface SupervisorOptions {
  /** The file that a worker process runs. */
  readonly script: string;
  readonly workerCount: number;
  /** Packed: the first worker that has time left gets new connections. Even: each worker in turn. */
  readonly placement: "packed" | "even";
  /** How long a worker may take to stop before it is killed. */
  readonly stopMsMax: number;
  readonly listener: ServiceListener;
  readonly log: Log;
}

/** No worker can listen on the port. */
export class ListenError extends Error {
  override readonly name = "ListenError";
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

interface WorkerRecord {
  readonly workerIndex: number;
  readonly line: WorkerLine;
  /** What it was offered and had not taken is closed; it is offered nothing more. */
  readonly closeOffers: () => void;
  state: "forked" | "waiting" | "starting" | "serving" | "stopping";
  servingSinceMs: number;
  /** The share of a processor that it used of late, and when it said so. */
  busy: number;
  heardAtMs: number;
  isAccepting: boolean;
}

const SILENT_MS = 3 * PLACED_EVERY_MS;
const RESTART_PAUSE_MS_MIN = 100;
const RESTART_PAUSE_MS_MAX = 5_000;
// A worker that served so long did not die of its start: the next pause is the shortest again.
const STEADY_AFTER_MS = 10_000;
// A worker ends itself when its time to stop is over; only one that no longer can is killed.
const KILL_GRACE_MS = 1_000;
const LISTEN_CODES: ReadonlySet<string> = new Set(["EADDRINUSE", "EACCES", "EADDRNOTAVAIL", "ENOTFOUND"]);

// A request's strings and objects live for a few milliseconds. Where they fit into the young generation, they
// die there; at V8's own 16 MB many are copied first, and a push-bound worker spends a quarter of its time so.
const YOUNG_GENERATION_MB = 64;

export class Supervisor<Orders> {
  /**
   * The port, once all workers listen on it and can use the database. Rejects with a ListenError if the first to
   * try cannot listen.
   */
  readonly ready: Promise<number>;
  readonly #options: SupervisorOptions;
  readonly #workers = new Map<Worker, WorkerRecord>();
  readonly #pauseMs = new Map<number, number>();
  readonly #readyIndexes = new Set<number>();
  readonly #restarts = new Set<NodeJS.Timeout>();
  readonly #questions = new QuestionRelay<Worker>((worker, message) => this.#send(worker, message));
  #orders: Orders | undefined;
  #isDatabaseReady = false;
  #port: number | undefined;
  #stopping: Promise<void> | undefined;
  #placing: NodeJS.Timeout | undefined;
  #idle = { ms: idleMs(), atMs: performance.now() };
  #noWorkerIsLeft = (): void => {};
  #resolveReady!: (port: number) => void;
  #rejectReady!: (error: ListenError) => void;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.ready = new Promise((resolve, reject) => {
      this.#resolveReady = resolve;
      this.#rejectReady = reject;
    });
    this.ready.catch(() => {}); // whoever waits for it is told; it may be that nobody does yet
  }

  /** Starts the processes. They load their code and wait for orders. */
  start(): void {
    const execArgv = [...process.execArgv, `--max-semi-space-size=${YOUNG_GENERATION_MB}`];
    // One worker accepts for itself. Several get their connections in turn from here, for an even share: the
    // kernel would give most of them to one.
    cluster.schedulingPolicy = this.#options.workerCount === 1 ? cluster.SCHED_NONE : cluster.SCHED_RR;
    // Messages of the services hold bytes.
    cluster.setupPrimary({ exec: this.#options.script, args: [], execArgv, serialization: "advanced" });
    for (let index = 0; index < this.#options.workerCount; index += 1) this.#fork(index);
    if (this.#isPlaced) this.#placing = setInterval(() => this.#place(this.#spare()), PLACED_EVERY_MS);
  }

  /** Every worker, now and later, serves by these orders. */
  give(orders: Orders): void {
    this.#orders = orders;
    for (const [worker, record] of this.#workers) if (record.state === "waiting") this.#order(worker, record);
  }

  /** Tells every worker, now and later, that the schema is up to date. */
  databaseReady(): void {
    this.#isDatabaseReady = true;
    for (const [worker, { state }] of this.#workers) {
      if (state === "starting" || state === "serving") this.#send(worker, { queen: "database-ready" });
    }
  }

  /** Resolves when every worker has ended: by itself, or killed when its time was over. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stopAll();
    return this.#stopping;
  }

  /** Sends a signal to every worker: SIGKILL ends them at once. */
  signal(name: NodeJS.Signals): void {
    for (const worker of this.#workers.keys()) worker.process.kill(name);
  }

  async #stopAll(): Promise<void> {
    for (const timer of this.#restarts) clearTimeout(timer);
    clearInterval(this.#placing);
    if (this.#workers.size === 0) return;
    const ended = new Promise<void>((resolve) => {
      this.#noWorkerIsLeft = resolve;
    });
    for (const worker of this.#workers.keys()) this.#send(worker, { queen: "stop" });
    const deadline = setTimeout(() => {
      this.#options.log.warn({ message: "a worker did not stop in time and is killed" }, "worker.killed");
      this.signal("SIGKILL");
    }, this.#options.stopMsMax + KILL_GRACE_MS);
    await ended;
    clearTimeout(deadline);
  }

  #fork(workerIndex: number): void {
    const worker = cluster.fork();
    const closeOffers = watchOffers(worker);
    const line = { send: (message: unknown) => this.#send(worker, { queen: "service", message }) };
    const record: WorkerRecord = {
      workerIndex,
      line,
      closeOffers,
      state: "forked",
      servingSinceMs: 0,
      busy: 0,
      heardAtMs: 0,
      isAccepting: true,
    };
    this.#workers.set(worker, record);
    worker.on("message", (message: ToSupervisor) => this.#receive(worker, record, message));
    worker.on("error", (error) => {
      this.#options.log.warn({ error, worker: workerIndex + 1 }, "worker.error");
      if (worker.process.pid === undefined) this.#ended(worker, record, "no process");
    });
    worker.on("exit", (code, signal) =>
      this.#ended(worker, record, signal ? `signal ${signal}` : `exit code ${code}`),
    );
  }

  #receive(worker: Worker, record: WorkerRecord, message: ToSupervisor): void {
    switch (message.queen) {
      case "hello":
        record.state = "waiting";
        if (this.#stopping !== undefined) this.#send(worker, { queen: "stop" });
        else if (this.#orders !== undefined) this.#order(worker, record);
        return;
      case "listening":
        record.state = "serving";
        record.servingSinceMs = performance.now();
        record.heardAtMs = performance.now();
        this.#port = message.port;
        this.#place(0);
        return;
      case "busy":
        record.busy = (record.busy + message.share) / 2;
        record.heardAtMs = performance.now();
        return;
      case "ready":
        this.#readyIndexes.add(record.workerIndex);
        if (!this.#areAllReady) return;
        for (const each of this.#workers.keys()) this.#send(each, { queen: "all-ready" });
        this.#resolveReady(this.#port!);
        return;
      case "stopping":
        // Somebody asked this one worker to end: the next takes over while it answers what it has begun.
        record.state = "stopping";
        if (this.#stopping === undefined) this.#fork(record.workerIndex);
        this.#place(0);
        return;
      case "service":
        this.#options.listener.received(record.line, message.message);
        return;
      case "failed":
        if (this.#port === undefined && message.code !== undefined && LISTEN_CODES.has(message.code)) {
          this.#rejectReady(new ListenError(message.code, message.message));
        }
        return;
      case "ask":
        this.#questions.asked(worker, this.#serving(worker), message);
        return;
      case "answer":
        this.#questions.answered(worker, message);
    }
  }

  /** Whether each was ready once: one that takes another's place later is not waited for. */
  get #areAllReady(): boolean {
    return this.#readyIndexes.size === this.#options.workerCount;
  }

  /** Those that serve, but for one. */
  #serving(other: Worker): Worker[] {
    return [...this.#workers].flatMap(([worker, { state }]) =>
      worker !== other && state === "serving" ? [worker] : [],
    );
  }

  get #isPlaced(): boolean {
    return this.#options.workerCount > 1 && this.#options.placement === "packed";
  }

  /** Tells workers whether to take connections, and to turn clients away. */
  #place(spare: number): void {
    if (!this.#isPlaced || this.#stopping !== undefined) return;
    const serving = [...this.#workers]
      .filter(([, { state }]) => state === "serving")
      .sort(([, a], [, b]) => a.workerIndex - b.workerIndex);
    // One that is silent has no time left, whatever it uses.
    const silentSinceMs = performance.now() - SILENT_MS;
    const placements = place(
      serving.map(([, { busy, heardAtMs }]) => (heardAtMs < silentSinceMs ? Infinity : busy)),
      spare,
    );
    for (const [index, [worker, record]] of serving.entries()) {
      const { isAccepting, turnedAway } = placements[index]!;
      if (record.isAccepting !== isAccepting) this.#send(worker, { queen: "accept", isAccepting });
      record.isAccepting = isAccepting;
      if (turnedAway > 0) this.#send(worker, { queen: "turn-away", share: turnedAway });
    }
  }

  /** The processors that nobody used since the last call. */
  #spare(): number {
    const before = this.#idle;
    this.#idle = { ms: idleMs(), atMs: performance.now() };
    return (this.#idle.ms - before.ms) / (this.#idle.atMs - before.atMs);
  }

  #order(worker: Worker, record: WorkerRecord): void {
    record.state = "starting";
    const { workerIndex } = record;
    this.#send(worker, {
      queen: "start",
      orders: this.#orders!,
      workerIndex,
      stopMsMax: this.#options.stopMsMax,
      isPlaced: this.#isPlaced,
    });
    if (this.#isDatabaseReady) this.#send(worker, { queen: "database-ready" });
    if (this.#areAllReady) this.#send(worker, { queen: "all-ready" });
  }

  #ended(worker: Worker, record: WorkerRecord, how: string): void {
    const { workerIndex, line, state, servingSinceMs } = record;
    this.#workers.delete(worker);
    record.closeOffers();
    this.#place(0);
    this.#options.listener.left(line);
    if (this.#stopping !== undefined) {
      if (this.#workers.size === 0) this.#noWorkerIsLeft();
      return;
    }
    if (state === "stopping") return;
    const wasSteady = state === "serving" && performance.now() - servingSinceMs >= STEADY_AFTER_MS;
    const pauseMs = wasSteady
      ? RESTART_PAUSE_MS_MIN
      : (this.#pauseMs.get(workerIndex) ?? RESTART_PAUSE_MS_MIN);
    this.#pauseMs.set(workerIndex, Math.min(2 * pauseMs, RESTART_PAUSE_MS_MAX));
    this.#options.log.warn({ message: how, worker: workerIndex + 1, pauseMs }, "worker.died");
    const timer = setTimeout(() => {
      this.#restarts.delete(timer);
      this.#fork(workerIndex);
    }, pauseMs);
    this.#restarts.add(timer);
  }

  /** A worker that can no longer be told anything is about to end, which is heard by itself. */
  #send(worker: Worker, message: ToWorker<Orders>): void {
    if (worker.isConnected()) worker.send(message, () => {});
  }
}

/** How long the machine's processors had nothing to do, since it was started. */
const idleMs = (): number => cpus().reduce((sum, { times }) => sum + times.idle, 0);
