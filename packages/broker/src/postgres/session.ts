/**
 * A session is one PostgreSQL connection with at most one call in flight.
 *
 *   starting ──ready──▶ idle ──run──▶ busy ──ready──▶ idle
 *                        │             │
 *                        ├───close─────┤ a call in flight is answered first
 *                        ▼             ▼
 *                      closing ────▶ closed ◀── connection lost, deadline passed, destroy
 *
 * After the handshake (handshake.ts) the session takes over the socket and speaks the extended query protocol itself:
 * named prepared statements, binary parameters and results, one write per call, rows read where they lie in the
 * received bytes.
 *
 * Behind a pooler, which lends a session of the server for one transaction, statements have no names and every call
 * has a preface (see preface.ts). A pooler is known by the id that it gives for the server's process: it is not
 * the one that the server tells.
 *
 * A call is one implicit transaction. Every call ends: with rows, with the error that PostgreSQL answered
 * (`PostgresError`, the session stays usable), or with `ConnectionLostError` (the session is closed).
 */
import type { Socket } from "node:net";
import { isStalePlan, readError } from "./error-response.ts";
import { ConnectionLostError, PostgresError } from "./errors.ts";
import { connectError, serverName, shakeHands, textOf } from "./handshake.ts";
import type { Origin } from "./lineage.ts";
import { MessageFramer } from "./message-framer.ts";
import { prefaceOf, TIMELINE } from "./preface.ts";
import { PrimarySearch } from "./primary-search.ts";
import { RowReader } from "./row-reader.ts";
import { type ParameterType, WireWriter } from "./wire-writer.ts";

/** A statement is prepared under its name at its first use in a session; a name stands for one text. */
export interface Statement<Row> {
  readonly name: string;
  readonly text: string;
  readonly parameters: readonly ParameterType[];
  /** Makes a row of the result; called once per row, while the bytes arrive. */
  read(row: RowReader): Row;
}

export interface Server {
  readonly host: string;
  readonly port: number;
}

export interface ConnectionSettings {
  /**
   * The one that was used last, then the others in this order, each with a head start; the first that answers and is
   * not in recovery is taken.
   */
  readonly hosts: readonly Server[];
  readonly database: string;
  readonly user: string;
  readonly password?: string | undefined;
  readonly ssl: false | { readonly rejectUnauthorized: boolean };
}

export interface SessionOptions {
  readonly applicationName: string;
  /** For each host, once for its handshake and once for each of the calls that set the session up. */
  readonly connectTimeoutMs: number;
  /** How long a call may wait for its answer before the connection is given up. */
  readonly callTimeoutMs: number;
  /** PostgreSQL's own limits; 0 is no limit. */
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  readonly idleInTransactionTimeoutMs: number;
  /** Throws where this primary must not be used; not called where a server does not tell its origin. */
  readonly admit?: (origin: Origin) => void;
}

export type CloseListener = (error: Error | undefined) => void;
export type NotificationListener = (channel: string, payload: string) => void;

type SessionState = "starting" | "idle" | "busy" | "closing" | "closed";

/** A prepared statement with its values. */
export interface Step<Row> {
  readonly statement: Statement<Row>;
  readonly values: readonly unknown[];
}

interface Call {
  /** In the order in which they run; a text is a simple query, whose rows are not read. */
  readonly steps: readonly Step<unknown>[] | string;
  readonly resolve: (rows: unknown[][]) => void;
  readonly reject: (error: Error) => void;
  /** Of each step. */
  rows: unknown[][];
  /** The step that the server answers now; PREFACE before the first. */
  at: number;
  error: Error | undefined;
  preparedAgain: boolean;
}

// The place of the preface among the steps of a call.
const PREFACE = -1;

// The server ends the connection within a round trip of Terminate; a network that swallows it does not hold
// up a shutdown.
const CLOSE_GRACE_MS = 1_000;

// One for all connections to the same servers.
const searches = new WeakMap<ConnectionSettings, PrimarySearch<Session>>();

const SERVER_FACTS: Statement<{ inRecovery: boolean; processId: number }> = {
  name: "session_server_facts",
  text: "select pg_is_in_recovery(), pg_backend_pid()",
  parameters: [],
  read: (row) => ({ inRecovery: row.bool(0), processId: row.int4(1) }),
};

const ORIGIN: Statement<Origin> = {
  name: "session_origin",
  text: `select system_identifier::text, ${TIMELINE} from pg_control_system()`,
  parameters: [],
  read: (row) => ({ system: row.text(0), timeline: Number.parseInt(row.text(1), 16) }),
};

export class Session {
  /** The server as `host:port`, for messages. */
  readonly server: string;
  readonly #stream: Socket;
  readonly #writer = new WireWriter();
  readonly #row = new RowReader();
  readonly #framer = new MessageFramer((type, bytes, start, end) => this.#message(type, bytes, start, end));
  readonly #preparedTexts = new Map<string, string>();
  readonly #closeListeners: CloseListener[] = [];
  readonly #notificationListeners: NotificationListener[] = [];
  readonly #failureListeners: ((error: Error) => void)[] = [];
  #state: SessionState = "starting";
  #call: Call | undefined;
  #processId = 0;
  #busySinceMs = 0;
  /** Until it is known, nothing is done that a pooler could mind. */
  #isPooled = true;
  #preface: Statement<number | undefined> | undefined;
  #timeline: number | undefined;
  #closeError: Error | undefined;
  #deadline: NodeJS.Timeout;

  static connect(settings: ConnectionSettings, options: SessionOptions): Promise<Session> {
    let search = searches.get(settings);
    if (!search) {
      search = new PrimarySearch(settings.hosts, (session) =>
        session.destroy(new Error("another server was found first")),
      );
      searches.set(settings, search);
    }
    return search.find((server) => Session.#connectTo(server, settings, options));
  }

  static async #connectTo(
    server: Server,
    settings: ConnectionSettings,
    options: SessionOptions,
  ): Promise<Session> {
    const session = await Session.#authenticate(server, settings, options);
    try {
      const [facts] = await session.run(SERVER_FACTS, []);
      if (facts!.inRecovery) throw new Error("it is in recovery and takes no writes");
      session.#isPooled = facts!.processId !== session.#processId;
      if (!session.#isPooled)
        await session.simple(
          `set timezone = 'UTC'; set client_encoding = 'UTF8';
           set statement_timeout = ${Math.trunc(options.statementTimeoutMs)};
           set lock_timeout = ${Math.trunc(options.lockTimeoutMs)};
           set idle_in_transaction_session_timeout = ${Math.trunc(options.idleInTransactionTimeoutMs)}`,
        );
      const origin = options.admit && (await session.#origin());
      if (origin) options.admit?.(origin);
      if (session.#isPooled) {
        session.#timeline = origin?.timeline;
        session.#preface = prefaceOf({ ...options, asksTimeline: origin !== undefined });
      }
      session.#setCallTimeout(options.callTimeoutMs);
      return session;
    } catch (error) {
      session.destroy(error as Error);
      throw connectError(session.server, error as Error);
    }
  }

  /** Undefined: some services keep it to themselves. */
  async #origin(): Promise<Origin | undefined> {
    try {
      return (await this.run(ORIGIN, []))[0];
    } catch (error) {
      if (error instanceof PostgresError) return undefined;
      throw error;
    }
  }

  static async #authenticate(
    server: Server,
    settings: ConnectionSettings,
    options: SessionOptions,
  ): Promise<Session> {
    const name = serverName(server);
    let session: Session | undefined;
    try {
      const processId = await shakeHands(server, settings, options, (stream) => {
        session = new Session(name, stream, options.connectTimeoutMs);
      });
      session!.#takeOver(processId);
      return session!;
    } catch (error) {
      const reason = connectError(name, error as Error);
      session?.destroy(reason);
      throw reason;
    }
  }

  private constructor(server: string, stream: Socket, callTimeoutMs: number) {
    this.server = server;
    this.#stream = stream;
    this.#deadline = this.#deadlineAfter(callTimeoutMs);
    stream.prependListener("data", this.#receive);
  }

  /** Whether a pooler stands between: what one call leaves in the server's session, the next may not find. */
  get isPooled(): boolean {
    return this.#isPooled;
  }

  /** The id of the server process, as in pg_stat_activity; of a pooler it says nothing. */
  get processId(): number {
    return this.#processId;
  }

  /** Since when a call waits for its answer, by `performance.now()`; undefined: none does. */
  get busySinceMs(): number | undefined {
    return this.#call ? this.#busySinceMs : undefined;
  }

  /** True as soon as the session takes no more calls. */
  get closed(): boolean {
    return this.#state === "closing" || this.#state === "closed";
  }

  /** Calls the listener once when the connection is gone: with the reason, or without after `close`. */
  onClose(listener: CloseListener): void {
    if (this.#state === "closed") listener(this.#closeError);
    else this.#closeListeners.push(listener);
  }

  /** Calls the listener for each notification on the channels that a `listen` subscribed this session to. */
  onNotification(listener: NotificationListener): void {
    this.#notificationListeners.push(listener);
  }

  /** Calls the listener for each call that failed once it was sent. */
  onFailure(listener: (error: Error) => void): void {
    this.#failureListeners.push(listener);
  }

  /** Runs a prepared statement as one implicit transaction. */
  async run<Row>(statement: Statement<Row>, values: readonly unknown[]): Promise<Row[]> {
    return (await this.#start([{ statement, values }]))[0] as Row[];
  }

  /** Runs two prepared statements as one implicit transaction, in one round trip; the second sees what the first did. */
  runBoth<First, Second>(first: Step<First>, second: Step<Second>): Promise<[First[], Second[]]> {
    return this.#start([first, second]) as Promise<[First[], Second[]]>;
  }

  /** Runs statements without parameters, several if parted by semicolons; rows are ignored. */
  async simple(text: string): Promise<void> {
    await this.#start(text);
  }

  /** Takes no more calls, waits for the answer to the one in flight, and says goodbye. */
  close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.onClose(() => resolve()));
    if (this.#state === "idle") this.#terminate();
    if (this.#state === "busy") this.#state = "closing";
    return closed;
  }

  /** Cuts the connection at once; the call in flight is rejected. */
  destroy(reason: Error): void {
    this.#closeWith(reason);
  }

  #start(steps: Call["steps"]): Promise<unknown[][]> {
    return new Promise((resolve, reject) => {
      if (this.closed || !this.#stream.writable)
        throw new ConnectionLostError(`the connection to ${this.server} is closed`, {
          outcomeUnknown: false,
          cause: this.#closeError,
        });
      if (this.#state !== "idle") throw new Error("a session runs one call at a time");
      const call: Call = { steps, resolve, reject, rows: [], at: 0, error: undefined, preparedAgain: false };
      this.#encode(call);
      this.#state = "busy";
      this.#call = call;
      this.#busySinceMs = performance.now();
      this.#deadline.refresh();
      this.#stream.write(this.#writer.message);
    });
  }

  #encode(call: Call): void {
    const writer = this.#writer;
    writer.reset(this.#stream.writableLength > 0);
    if (typeof call.steps === "string") {
      writer.simpleQuery(call.steps);
      return;
    }
    call.at = this.#preface ? PREFACE : 0;
    call.rows = call.steps.map(() => []);
    if (this.#preface) this.#writeUnnamed({ statement: this.#preface, values: [] });
    for (const step of call.steps) {
      if (this.#isPooled) this.#writeUnnamed(step);
      else this.#writePrepared(step, call.preparedAgain);
    }
    writer.sync();
  }

  #writePrepared({ statement, values }: Step<unknown>, isAgain: boolean): void {
    const writer = this.#writer;
    const preparedText = this.#preparedTexts.get(statement.name);
    if (preparedText === undefined) {
      if (isAgain) writer.closeStatement(statement.name);
      writer.parse(statement.name, statement.text, statement.parameters);
    } else if (preparedText !== statement.text) {
      throw new Error(`two statements have the name ${statement.name}`);
    }
    writer.bind(statement.name, statement.parameters, values);
    writer.execute();
  }

  #writeUnnamed({ statement: { text, parameters }, values }: Step<unknown>): void {
    this.#writer.parse("", text, parameters);
    this.#writer.bind("", parameters, values);
    this.#writer.execute();
  }

  readonly #receive = (chunk: Buffer): void => {
    try {
      this.#framer.receive(chunk);
    } catch (error) {
      this.destroy(error as Error);
    }
  };

  #message(type: number, bytes: Buffer, start: number, end: number): void {
    if (this.#state === "starting") {
      if (type === READY_FOR_QUERY) this.#state = "idle";
      return;
    }
    switch (type) {
      case DATA_ROW:
        this.#dataRow(bytes, start, end);
        return;
      case READY_FOR_QUERY:
        this.#ready(bytes[start]!);
        return;
      case PARSE_COMPLETE: {
        const statement = this.#step?.statement;
        if (statement !== undefined && !this.#isPooled)
          this.#preparedTexts.set(statement.name, statement.text);
        return;
      }
      case COMMAND_COMPLETE:
        if (this.#call !== undefined) this.#call.at++;
        return;
      case ERROR_RESPONSE: {
        const error = readError(bytes, start, end);
        if (error.severity !== "ERROR") this.destroy(error);
        else if (this.#call !== undefined) this.#call.error = error;
        return;
      }
      case NOTIFICATION_RESPONSE: {
        const channelEnd = bytes.indexOf(0, start + 4);
        const channel = bytes.toString("utf8", start + 4, channelEnd);
        const payload = bytes.toString("utf8", channelEnd + 1, end - 1);
        for (const listener of this.#notificationListeners) listener(channel, payload);
        return;
      }
      default:
        if (!WITHOUT_CONSEQUENCE.has(type))
          throw new Error(
            `the server sent a message of type ${String.fromCharCode(type)} that no call awaits`,
          );
    }
  }

  /** A row that cannot be read fails its call, not the session: the rest of the answer is passed over. */
  #dataRow(bytes: Buffer, start: number, end: number): void {
    const call = this.#call;
    const step = this.#step;
    if (call === undefined || call.error !== undefined) return;
    this.#row.moveTo(bytes, start, end);
    if (call.at === PREFACE) {
      if (this.#preface!.read(this.#row) !== this.#timeline)
        this.destroy(new Error("another server has taken over, or this one takes no writes any more"));
      return;
    }
    if (step === undefined) return;
    try {
      call.rows[call.at]!.push(step.statement.read(this.#row));
    } catch (error) {
      call.error = error as Error;
    }
  }

  get #step(): Step<unknown> | undefined {
    const call = this.#call;
    return call === undefined || typeof call.steps === "string" ? undefined : call.steps[call.at];
  }

  #ready(transactionStatus: number): void {
    const call = this.#call;
    if (call === undefined) throw new Error("the server is ready a second time");
    if (transactionStatus === NO_TRANSACTION && isStalePlan(call.error) && !call.preparedAgain) {
      this.#runAgain(call);
      return;
    }
    this.#call = undefined;
    if (this.#state === "closing") this.#terminate();
    else this.#state = "idle";
    if (call.error === undefined) call.resolve(call.rows);
    else this.#fail(call, call.error);
  }

  #fail(call: Call, error: Error): void {
    for (const listener of this.#failureListeners) listener(error);
    call.reject(error);
  }

  /** The failed call was rolled back whole, so that running it again cannot do anything twice. */
  #runAgain(call: Call): void {
    if (typeof call.steps !== "string")
      for (const { statement } of call.steps) this.#preparedTexts.delete(statement.name);
    call.preparedAgain = true;
    call.error = undefined;
    this.#encode(call);
    this.#stream.write(this.#writer.message);
  }

  #takeOver(processId: number): void {
    this.#processId = processId;
    const stream = this.#stream;
    for (const listener of stream.listeners("data"))
      if (listener !== this.#receive) stream.off("data", listener as (chunk: Buffer) => void);
    stream.on("error", (error) => this.#connectionEnded(error));
    stream.on("end", () => this.#connectionEnded(new Error("the server ended the connection")));
    stream.on("close", () => this.#connectionEnded(new Error("the connection was closed")));
  }

  /** After Terminate the end is expected, however it comes. */
  #connectionEnded(reason: Error): void {
    const isExpected = this.#state === "closing" && this.#call === undefined;
    this.#closeWith(isExpected ? undefined : reason);
  }

  #terminate(): void {
    this.#state = "closing";
    this.#setCallTimeout(CLOSE_GRACE_MS);
    this.#writer.reset(this.#stream.writableLength > 0);
    this.#writer.terminate();
    this.#stream.end(this.#writer.message);
  }

  #closeWith(reason: Error | undefined): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#closeError = reason;
    this.#framer.stop();
    clearTimeout(this.#deadline);
    this.#stream.destroy();
    const call = this.#call;
    this.#call = undefined;
    if (call) {
      const lost = `the connection to ${this.server} was lost: ${textOf(reason)}`;
      this.#fail(call, new ConnectionLostError(lost, { outcomeUnknown: true, cause: reason }));
    }
    for (const listener of this.#closeListeners.splice(0)) listener(reason);
  }

  #setCallTimeout(callTimeoutMs: number): void {
    clearTimeout(this.#deadline);
    this.#deadline = this.#deadlineAfter(callTimeoutMs);
  }

  /** One timer serves all calls: each call pushes it back, and it means nothing while none is in flight. */
  #deadlineAfter(callTimeoutMs: number): NodeJS.Timeout {
    return setTimeout(() => {
      if (this.#call !== undefined) this.destroy(new Error(`no answer within ${callTimeoutMs} ms`));
      else if (this.#state === "closing") this.#closeWith(undefined);
    }, callTimeoutMs).unref();
  }
}

const typeCode = (letter: string): number => letter.charCodeAt(0);

const DATA_ROW = typeCode("D");
const READY_FOR_QUERY = typeCode("Z");
const COMMAND_COMPLETE = typeCode("C");
const PARSE_COMPLETE = typeCode("1");
const ERROR_RESPONSE = typeCode("E");
const NOTIFICATION_RESPONSE = typeCode("A");

const WITHOUT_CONSEQUENCE: ReadonlySet<number> = new Set([
  typeCode("2"), // BindComplete
  typeCode("3"), // CloseComplete
  typeCode("I"), // EmptyQueryResponse
  typeCode("N"), // NoticeResponse
  typeCode("S"), // ParameterStatus
  typeCode("T"), // RowDescription, of a simple query
]);

// ReadyForQuery says I for idle, T inside a transaction, E inside a failed one.
const NO_TRANSACTION = typeCode("I");
