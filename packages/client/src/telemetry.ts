/**
 * Spans for those who have `@opentelemetry/api`; without it nothing happens. A push is a producer span, whose
 * traceparent its messages carry; the work on a message is a consumer span that links to it, in a trace of
 * its own unless it is one message: then it continues the producer's trace.
 */
import type { Message } from "./message.ts";

export interface Span {
  /** W3C trace context of the span; undefined where nothing is recorded. */
  readonly traceparent: string | undefined;
  /** Calls the function with the span as the current one. */
  run<T>(work: () => T): T;
  end(error?: unknown): void;
}

/** As much of `@opentelemetry/api` as is used. */
interface Api {
  readonly trace: {
    getTracer(name: string): {
      startSpan(name: string, options: object, context: unknown): ApiSpan;
    };
    setSpan(context: unknown, span: ApiSpan): unknown;
    setSpanContext(context: unknown, spanContext: SpanContext): unknown;
  };
  readonly context: { active(): unknown; with<T>(context: unknown, work: () => T): T };
  readonly ROOT_CONTEXT: unknown;
}

interface ApiSpan {
  isRecording(): boolean;
  spanContext(): SpanContext;
  recordException(error: Error): void;
  setStatus(status: { code: number; message: string }): void;
  end(): void;
}

interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly isRemote?: boolean;
}

// Of OpenTelemetry's enumerations, which are not imported.
const PRODUCER = 3;
const CONSUMER = 4;
const STATUS_ERROR = 2;
const LINKS_MAX = 128;

const NOTHING: Span = { traceparent: undefined, run: (work) => work(), end: () => undefined };

export class Telemetry {
  readonly #api: Promise<Api | undefined>;

  constructor() {
    const module = "@opentelemetry/api"; // by name: whoever has none must not be asked to install it
    this.#api = import(/* @vite-ignore */ /* webpackIgnore: true */ module).catch(() => undefined);
  }

  push(queue: string, count: number): Promise<Span> {
    return this.#start(`push ${queue}`, PRODUCER, "send", queue, count, [], undefined);
  }

  process(messages: readonly Message[]): Promise<Span> {
    const [first] = messages;
    const parent = messages.length === 1 ? first?.traceparent : undefined;
    const links = messages.map((message) => message.traceparent);
    const { queue, consumerGroup } = first!;
    return this.#start(`process ${queue}`, CONSUMER, "process", queue, messages.length, links, parent, {
      "messaging.consumer.group.name": consumerGroup,
    });
  }

  async #start(
    name: string,
    kind: number,
    operation: string,
    queue: string,
    count: number,
    links: readonly (string | undefined)[],
    parent: string | undefined,
    more: object = {},
  ): Promise<Span> {
    const api = await this.#api;
    if (api === undefined) return NOTHING;
    const { trace, context } = api;
    const remote = parent === undefined ? undefined : parseTraceparent(parent);
    const outer = remote ? trace.setSpanContext(api.ROOT_CONTEXT, remote) : context.active();
    const span = trace.getTracer("@queen/client").startSpan(
      name,
      {
        kind,
        attributes: {
          "messaging.system": "queen",
          "messaging.operation.type": operation,
          "messaging.destination.name": queue,
          "messaging.batch.message_count": count,
          ...more,
        },
        links: linksOf(links),
      },
      outer,
    );
    const traceparent = traceparentOf(span.spanContext());
    if (traceparent === undefined && !span.isRecording()) return NOTHING;
    const inner = trace.setSpan(outer, span);
    return {
      traceparent,
      run: (work) => context.with(inner, work),
      end: (error) => {
        if (error !== undefined) {
          span.recordException(error instanceof Error ? error : new Error(String(error)));
          span.setStatus({ code: STATUS_ERROR, message: String(error) });
        }
        span.end();
      },
    };
  }
}

function linksOf(traceparents: readonly (string | undefined)[]): { readonly context: SpanContext }[] {
  const links = new Map<string, { readonly context: SpanContext }>();
  for (const text of traceparents) {
    if (text === undefined || links.has(text) || links.size === LINKS_MAX) continue;
    const context = parseTraceparent(text);
    if (context !== undefined) links.set(text, { context });
  }
  return [...links.values()];
}

function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string | undefined {
  if (/^0*$/.test(traceId)) return undefined; // no SDK is set up: spans are not real
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}

export function parseTraceparent(text: string): SpanContext | undefined {
  const [, traceId, spanId, flags] =
    /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
