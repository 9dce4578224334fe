/**
 * A fault run is one run of a fault test: the processes it started, its random numbers, the history of its
 * load, and what did not hold.
 *
 *   start PostgreSQL, brokers, proxies ──▶ load ──▶ faults ──▶ healed ──▶ pushes end ──▶ drained ──▶ check
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { check, type Verdict } from "@queen/test/checker/check";
import { type LogEntry, readFinalState } from "@queen/test/checker/final-state";
import { type HistoryEvent, nowMs } from "@queen/test/checker/history";
import type { Limits, Rule, Violation } from "@queen/test/checker/rules";
import { HttpClient } from "@queen/test/support/http";
import { randomFrom } from "@queen/test/support/load";
import { until } from "@queen/test/support/moments";
import { type PostgresProxy, startProxy } from "@queen/test/support/proxy";
import { drain } from "./drain.ts";
import { HistoryFile, readHistory } from "./load/history-file.ts";
import { describe, LOAD, type LoadShape, PIPE_GROUP, QUEUE, SINK, SOURCE } from "./load/shape.ts";
import { figuresOf, type Outcome } from "./outcome.ts";
import { BrokerSlot } from "./rig/broker-slot.ts";
import { Clients } from "./rig/clients.ts";
import { type PostgresOptions, type PostgresServer, query, startPostgres } from "./rig/postgres.ts";

export interface FaultRunOptions {
  readonly id: string;
  readonly seed: number;
  /** How long faults and load go on; preparing, draining and checking come on top. */
  readonly seconds: number;
  readonly tell: (phase: string) => void;
  /** A database that is there already and stays; without it the run starts a server of its own. */
  readonly databaseUrl?: string;
  /** What is to be different in the load, whatever the test says. */
  readonly load?: Partial<LoadShape>;
}

const DATABASE = "queen";
const PROBLEMS_MAX = 20;
// Generous on purpose: a verdict must not depend on how busy the machine is.
const REQUEST_MS_MAX = 30_000;
const HEAL_MS_MAX = 60_000;
const DRAIN_MS_MAX = 120_000;
const PROGRESS_AFTER = 50;
const REDELIVERED_SHARE_MAX = 0.02;
// What the consumers of a load hold at one moment.
const IN_FLIGHT_MAX = 200;

export class FaultRun {
  readonly id: string;
  readonly seed: number;
  readonly seconds: number;
  readonly random: () => number;
  readonly folder: string;
  readonly brokers: BrokerSlot[] = [];
  readonly #tell: (phase: string) => void;
  readonly #givenDatabaseUrl: string | undefined;
  readonly #loadChanges: Partial<LoadShape>;
  readonly #history: HistoryFile;
  readonly #clients = new Clients();
  readonly #httpClients = new Map<number, HttpClient>();
  readonly #cleanups: (() => Promise<void> | void)[] = [];
  readonly #problems: string[] = [];
  readonly #notes: string[] = [];
  readonly #tolerated = new Set<Rule>();
  #server: PostgresServer | undefined;
  #databaseUrl = "";
  #faults = 0;
  #folders = 0;
  #pushed = 0;
  #delivered = 0;
  #load = "none";
  #endMs = 0;
  #verdict: Verdict | undefined;
  #events: readonly HistoryEvent[] = [];
  #log: readonly LogEntry[] = [];

  constructor({ id, seed, seconds, tell, databaseUrl, load = {} }: FaultRunOptions) {
    this.id = id;
    this.seed = seed;
    this.seconds = seconds;
    this.random = randomFrom(seed);
    this.#tell = tell;
    this.#givenDatabaseUrl = databaseUrl;
    this.#loadChanges = load;
    this.folder = mkdtempSync(join(tmpdir(), "queen-faults-"));
    mkdirSync(this.#historyFolder);
    this.#history = new HistoryFile(this.#historyFolder, "rig");
  }

  get #historyFolder(): string {
    return join(this.folder, "history");
  }

  // ------------------------------------------------------------------------------------------- what there is

  async startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
    this.tell("starting PostgreSQL");
    return this.useServer(await startPostgres(options));
  }

  /** Makes a server the one of the run, with a database in it. */
  async useServer(server: PostgresServer): Promise<PostgresServer> {
    this.#server = server;
    await this.useDatabaseOf(server);
    return server;
  }

  /** Makes a database on whatever holds one, and ends it with the run. */
  async useDatabaseOf(holder: Pick<PostgresServer, "urlOf" | "dispose">): Promise<void> {
    this.onEnd(() => holder.dispose());
    const make = (): Promise<unknown> => query(holder.urlOf("postgres"), `create database ${DATABASE}`);
    await until("a database can be made", () => make().then(() => true));
    this.#databaseUrl = holder.urlOf(DATABASE);
  }

  get postgres(): PostgresServer {
    if (!this.#server) throw new Error("this test has no server of its own: call startPostgres() first");
    return this.#server;
  }

  /** The database, not through any proxy. It may move to another server. */
  get databaseUrl(): string {
    return this.#databaseUrl || this.#givenDatabaseUrl!;
  }

  moveTo(server: PostgresServer): void {
    this.#databaseUrl = server.urlOf(DATABASE);
  }

  query(text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
    return query(this.databaseUrl, text, values);
  }

  async startProxy(): Promise<PostgresProxy> {
    const proxy = await startProxy(this.databaseUrl, this.random);
    this.onEnd(() => proxy.close());
    return proxy;
  }

  /** Starts brokers, with a server of their own where nobody gave one. */
  async startBrokers(
    count: number,
    options: { env?: Record<string, string>; databaseUrl?: string } = {},
  ): Promise<void> {
    if (this.#databaseUrl === "" && this.#givenDatabaseUrl === undefined) await this.startPostgres();
    this.tell(`starting ${count} brokers`);
    for (let index = 0; index < count; index++) {
      const folder = join(this.folder, `broker-${this.#folders++}`);
      const slot = await BrokerSlot.create(
        folder,
        options.databaseUrl ?? this.databaseUrl,
        options.env ?? {},
      );
      this.brokers.push(slot);
      this.onEnd(() => {
        slot.thaw();
        return slot.kill();
      });
      await slot.start();
    }
  }

  /** One client for each broker, with as many connections as it is asked for at once. */
  client(broker = 0): HttpClient {
    let client = this.#httpClients.get(broker);
    if (!client) {
      client = new HttpClient(this.brokers[broker]!.url);
      this.#httpClients.set(broker, client);
    }
    return client;
  }

  /** Called when the run is over, the last first. */
  onEnd(cleanup: () => Promise<void> | void): void {
    this.#cleanups.push(cleanup);
  }

  // --------------------------------------------------------------------------------------------- what is said

  tell(phase: string): void {
    this.#tell(phase);
  }

  fault(name: string): void {
    this.#faults++;
    this.#history.record({ type: "mark", atMs: nowMs(), what: "fault", name });
    this.tell(name);
  }

  problem(text: string): void {
    this.#problems.push(text);
  }

  expect(holds: boolean, otherwise: string): void {
    if (!holds) this.problem(otherwise);
  }

  /** What did not hold so far was meant not to. */
  forgive(): void {
    this.#problems.length = 0;
  }

  note(text: string): void {
    this.#notes.push(text);
  }

  /** What breaks these rules is what the test expects; it is counted, and no failure. */
  tolerate(...rules: Rule[]): void {
    for (const rule of rules) this.#tolerated.add(rule);
  }

  /** For a test with a load of its own. */
  count(figures: { load?: string; pushed?: number; delivered?: number }): void {
    this.#load = figures.load ?? this.#load;
    this.#pushed += figures.pushed ?? 0;
    this.#delivered += figures.delivered ?? 0;
  }

  /** What clients of the load saw; complete once the load is over. */
  get events(): readonly HistoryEvent[] {
    return this.#events;
  }

  /** The log as it was in the end. */
  get log(): readonly LogEntry[] {
    return this.#log;
  }

  // ----------------------------------------------------------------------------------------------- the load

  /** Whether there is time for a fault that takes so long. */
  hasTime(ms = 0): boolean {
    return performance.now() + ms < this.#endMs;
  }

  /** Sleeps for a time by chance. */
  async pause(msMin: number, msMax = msMin): Promise<void> {
    await sleep(msMin + this.random() * (msMax - msMin));
  }

  /** How far the load is. */
  get progress(): { stored: number; delivered: number; acked: number } {
    return this.#clients.figures;
  }

  /** Resolves when so many more messages were pushed and acked: the system works, now. */
  async progressBy(messages: number): Promise<void> {
    const { stored, acked } = this.progress;
    await until(
      `${messages} more messages were pushed and acked`,
      () => this.progress.stored >= stored + messages && this.progress.acked >= acked + messages,
      HEAL_MS_MAX,
    );
  }

  /** Runs the load while `faults` does its worst, and has the checker look at everything. */
  async underLoad(
    changes: Partial<LoadShape>,
    faults: () => Promise<void>,
    limits: Limits = {},
    urls = this.brokers.map((broker) => broker.url),
  ): Promise<Verdict> {
    const shape: LoadShape = { ...LOAD, keyed: this.seed % 2 === 0, ...changes, ...this.#loadChanges };
    this.#load = describe(shape);
    const client = this.client();
    const { leaseSeconds, retryLimit } = shape;
    await client.configure(QUEUE, { leaseTime: leaseSeconds, retryLimit, retryDelay: 50 });
    await client.configure(SOURCE, { leaseTime: leaseSeconds, retryLimit: 1_000, retryDelay: 0 });
    this.tell("load");
    this.onEnd(() => this.#clients.kill());
    this.#clients.start({ shape, urls, seed: this.seed, historyFolder: this.#historyFolder });
    await this.progressBy(PROGRESS_AFTER);
    this.#endMs = performance.now() + this.seconds * 1_000;
    await faults();
    while (this.hasTime()) await sleep(Math.max(1, Math.min(200, this.#endMs - performance.now())));
    this.#mark("healed");
    this.tell("healed");
    await this.progressBy(PROGRESS_AFTER);
    this.tell("the last pushes");
    await this.#clients.endPushes();
    this.#mark("pushes-ended");
    this.tell("draining");
    if (await drain(this, readersOf(shape), limits.drainMsMax ?? DRAIN_MS_MAX)) this.#mark("drained");
    await this.#clients.end();
    return this.#check(shape, limits);
  }

  #mark(what: "healed" | "pushes-ended" | "drained"): void {
    this.#history.record({ type: "mark", atMs: nowMs(), what, name: what });
  }

  /** Messages on the disks of the brokers; 0 where a broker has no spool. */
  async spooled(): Promise<number> {
    let total = 0;
    for (const [index] of this.brokers.entries()) {
      const { status, json } = await this.client(index).request("GET", "/api/v1/system/spool");
      if (status === 200) total += (json as { pending: number }).pending;
    }
    return total;
  }

  async #check(shape: LoadShape, limits: Limits): Promise<Verdict> {
    this.tell("checking");
    this.#history.close();
    this.#events = readHistory(this.#historyFolder);
    const pipes = shape.pipes > 0 ? [{ source: SOURCE, sink: SINK }] : [];
    const state = await readFinalState((text, values) => this.query(text, values), readersOf(shape), pipes);
    this.#log = state.log;
    const delivered = this.#events.reduce(
      (sum, event) => sum + (event.type === "popped" ? event.messages.length : 0),
      0,
    );
    const verdict = check(
      this.#events,
      { ...state, spooled: await this.spooled() },
      {
        retryLimits: { [QUEUE]: shape.retryLimit },
        redeliveriesMax: Math.max(
          this.#faults === 0 ? 0 : delivered * REDELIVERED_SHARE_MAX,
          this.#faults * IN_FLIGHT_MAX,
        ),
        requestMsMax: REQUEST_MS_MAX,
        healMsMax: HEAL_MS_MAX,
        drainMsMax: DRAIN_MS_MAX,
        ...limits,
      },
    );
    this.#verdict = verdict;
    this.#pushed = verdict.pushed;
    this.#delivered = verdict.delivered;
    const broken = verdict.violations.filter(({ rule }) => !this.#tolerated.has(rule));
    for (const { rule, message } of broken.slice(0, PROBLEMS_MAX)) this.problem(`${rule}: ${message}`);
    if (broken.length > PROBLEMS_MAX) this.problem(`and ${broken.length - PROBLEMS_MAX} more violations`);
    for (const detail of new Set(this.#events.flatMap((event) => ("detail" in event ? [event.detail] : []))))
      this.problem(`an answer that no fault excuses: ${detail}`);
    if (this.#problems.length > 0) this.#noteRefusals();
    for (const { output } of this.brokers)
      this.expect(
        !/uncaught|http\.failed/.test(output),
        `a broker failed: ${/.*(?:uncaught|http\.failed).*/.exec(output)?.[0]}`,
      );
    return verdict;
  }

  /** Where something did not hold: what asked clients to try again when no fault was there any more. */
  #noteRefusals(): void {
    const counts = new Map<string, number>();
    let isHealed = false;
    for (const event of this.#events) {
      if (event.type === "mark" && event.what === "healed") isHealed = true;
      if (!isHealed || event.type !== "request" || event.later === undefined) continue;
      const said = `${event.operation}: ${event.later}`;
      counts.set(said, (counts.get(said) ?? 0) + 1);
    }
    for (const [said, times] of counts) this.note(`503 after the faults, ${times} times, ${said}`);
  }

  // ------------------------------------------------------------------------------------------------ the end

  /** Violations of the load's check, tolerated ones included. */
  get violations(): readonly Violation[] {
    return this.#verdict?.violations ?? [];
  }

  get outcome(): Outcome {
    return {
      load: this.#load,
      faults: this.#faults,
      pushed: this.#pushed,
      delivered: this.#delivered,
      ...figuresOf(this.#verdict, this.#events),
      notes: this.#notes,
      problems: this.#problems,
    };
  }

  /** Ends everything that was started. The history stays where something did not hold. */
  async dispose(): Promise<void> {
    for (const client of this.#httpClients.values()) client.close();
    for (const cleanup of this.#cleanups.reverse()) {
      try {
        await cleanup();
      } catch (error) {
        this.problem(`cleaning up: ${(error as Error).message}`);
      }
    }
    if (this.#problems.length === 0) rmSync(this.folder, { recursive: true, force: true });
    else this.note(`history and spools are in ${this.folder}`);
  }
}

function readersOf(shape: LoadShape): { queue: string; group: string }[] {
  const readers = shape.groups.map((group) => ({ queue: QUEUE, group }));
  return shape.pipes > 0 ? [...readers, { queue: SOURCE, group: PIPE_GROUP }] : readers;
}
