/**
 * Traces are what consumers note about a message while they work: an event with data, found again by the
 * message or by names that several messages share. They go with their message.
 */
import { BrokerError } from "@queen/protocol";
import { encodeString } from "../operations/json-scanner.ts";
import { transactionIdJson } from "../operations/segment.ts";
import { transactionKeyBytes } from "../operations/transaction-key.ts";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import type { Messages, Place } from "./messages.ts";

export type { NamedTraceRow, TraceNameRow, TraceRow } from "../postgres/statements.ts";

export interface NewTrace {
  readonly partition: number;
  readonly transactionId: string;
  readonly consumerGroup: string;
  readonly eventType: string;
  /** JSON. */
  readonly data: string;
  readonly names: readonly string[];
}

export interface Page {
  readonly limit: number;
  readonly offset: number;
}

export interface TracesOptions {
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  readonly messages: Messages;
  readonly workerId: string;
}

export class Traces {
  readonly #options: TracesOptions;

  constructor(options: TracesOptions) {
    this.#options = options;
  }

  /** Returns the trace's id. */
  async add(trace: NewTrace): Promise<number> {
    const { use, messages, workerId } = this.#options;
    const { partition, transactionId, consumerGroup } = trace;
    const place = (await this.#leased(trace)) ?? (await messages.find(partition, transactionId));
    const [id] = place
      ? await use((session) =>
          session.run(statements.addTrace, [
            partition,
            place.offset,
            transactionId,
            consumerGroup,
            trace.eventType,
            trace.data,
            workerId,
            trace.names,
          ]),
        )
      : [];
    if (id === undefined || id === null) throw new BrokerError("NOT_FOUND", "Message not found");
    return id;
  }

  /** Who notes something mostly works on the message now: what its group holds is looked through first. */
  async #leased({ partition, transactionId, consumerGroup }: NewTrace): Promise<Place | undefined> {
    const key = transactionKeyBytes(transactionId);
    const rows = await this.#options.use((session) =>
      session.run(statements.findLeased, [partition, consumerGroup, key]),
    );
    const json = encodeString(transactionId);
    const found = rows.find((row) => transactionIdJson(row.fragment) === json);
    return found && { partition, offset: found.offset };
  }

  /** Of a message, the oldest first. */
  ofMessage(partition: number, transactionId: string, page: Page): Promise<statements.TraceRow[]> {
    return this.#options.use((session) =>
      session.run(statements.listTraces, [partition, transactionId, page.limit, page.offset]),
    );
  }

  /** With a name, the oldest first. */
  async named(name: string, page: Page): Promise<{ traces: statements.NamedTraceRow[]; total: number }> {
    const rows = await this.#options.use((session) =>
      session.run(statements.listNamedTraces, [name, page.limit, page.offset]),
    );
    return { traces: rows.flatMap(({ trace }) => (trace ? [trace] : [])), total: rows[0]!.total };
  }

  /** The name used last first. */
  async names(page: Page): Promise<{ names: statements.TraceNameRow[]; total: number }> {
    const rows = await this.#options.use((session) =>
      session.run(statements.listTraceNames, [page.limit, page.offset]),
    );
    return { names: rows.flatMap(({ name }) => (name ? [name] : [])), total: rows[0]!.total };
  }
}
