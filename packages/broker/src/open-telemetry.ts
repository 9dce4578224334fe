/**
 * Tracing with OpenTelemetry: spans by its conventions for messaging, sent to a collector in batches as
 * JSON. Spans wait in a bounded queue, and what does not fit is dropped: a collector that is away or slow
 * costs spans, and nothing else.
 *
 * The libraries read their own variables (OTEL_…) from the environment.
 */
import { hostname } from "node:os";
import {
  type Attributes,
  type Context,
  diag,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import { BasicTracerProvider, BatchSpanProcessor, type SpanExporter } from "@opentelemetry/sdk-trace-base";
import { environmentWithSecrets } from "./config.ts";
import type { Log } from "./telemetry.ts";
import type { EndCall, OperationSpan, Place, TracedOperation, Tracing } from "./tracing.ts";

export interface TracingOptions {
  /** Where spans go, for messages; the exporter reads the address itself. */
  readonly collector: string;
  readonly version: string;
  readonly workerIndex: number;
  readonly log: Log;
}

// By OpenTelemetry's default a span keeps so many links; more are not worth the bytes.
const LINKS_MAX = 128;

const KINDS: Readonly<Record<TracedOperation, { readonly kind: SpanKind; readonly type?: string }>> = {
  push: { kind: SpanKind.PRODUCER, type: "send" },
  pop: { kind: SpanKind.CONSUMER, type: "receive" },
  ack: { kind: SpanKind.SERVER, type: "settle" },
  transaction: { kind: SpanKind.SERVER },
};

export function startTracing({ collector, version, workerIndex, log }: TracingOptions): Tracing {
  // The libraries know nothing of secrets in files.
  const { OTEL_EXPORTER_OTLP_HEADERS: headers } = environmentWithSecrets(process.env);
  if (headers) process.env.OTEL_EXPORTER_OTLP_HEADERS = headers;
  // While they start, the libraries complain about variables they cannot read.
  const warn = (message: string): void => log.warn({ message }, "traces.settings");
  const silent = (): void => {};
  diag.setLogger({ error: warn, warn, info: silent, debug: silent, verbose: silent });
  const resource = defaultResource()
    .merge(
      resourceFromAttributes({
        "service.name": "queen",
        "service.version": version,
        "service.instance.id": `${hostname()}-${process.pid}`,
        "queen.worker": workerIndex + 1,
      }),
    )
    .merge(detectResources({ detectors: [envDetector] }));
  const exporter = new ComplainingExporter(new OTLPTraceExporter(), collector, log);
  const provider = new BasicTracerProvider({
    resource,
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  diag.disable();
  const tracer = provider.getTracer("queen", version);
  return {
    start: (operation, parent, requestId) => startOperation(tracer, operation, parent, requestId),
    call: (procedure, operations) => startCall(tracer, procedure, operations),
    stop: async (withinMs) => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<"late">((resolve) => {
        timer = setTimeout(resolve, withinMs, "late");
      });
      // What a collector refused is in the log already.
      const outcome = await Promise.race([provider.shutdown().catch(() => {}), late]);
      clearTimeout(timer);
      if (outcome === "late") {
        const message = `The last spans are lost: ${collector} did not take them within ${Math.round(withinMs)} ms.`;
        log.warn({ message }, "traces.failed");
      }
    },
  };
}

/** Says in the log that spans are lost, always in the same words, so that repetitions are held back. */
class ComplainingExporter implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #collector: string;
  readonly #log: Log;

  constructor(exporter: SpanExporter, collector: string, log: Log) {
    this.#exporter = exporter;
    this.#collector = collector;
    this.#log = log;
  }

  export(...[spans, done]: Parameters<SpanExporter["export"]>): void {
    this.#exporter.export(spans, (result) => {
      if (result.error) {
        const message =
          `Spans are lost: ${this.#collector} did not take them. ` +
          "Start the collector, or correct or unset OTEL_EXPORTER_OTLP_ENDPOINT.";
        this.#log.warn({ message, reason: result.error.message }, "traces.failed");
      }
      done(result);
    });
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }
}

function startOperation(
  tracer: Tracer,
  operation: TracedOperation,
  parent: string | undefined,
  requestId: string,
): OperationSpan | undefined {
  const { kind, type } = KINDS[operation];
  const attributes: Attributes = {
    "messaging.system": "queen",
    "messaging.operation.name": operation,
    "queen.request.id": requestId,
  };
  if (type !== undefined) attributes["messaging.operation.type"] = type;
  const span = tracer.startSpan(
    operation,
    { kind, attributes },
    parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, contextOf(parent)),
  );
  return span.isRecording() ? new RecordedOperation(operation, span) : undefined;
}

class RecordedOperation implements OperationSpan {
  readonly #operation: TracedOperation;
  readonly #span: Span;
  readonly #linked = new Set<string>();

  constructor(operation: TracedOperation, span: Span) {
    this.#operation = operation;
    this.#span = span;
  }

  get context(): Context {
    return trace.setSpan(ROOT_CONTEXT, this.#span);
  }

  get spanContext(): SpanContext {
    return this.#span.spanContext();
  }

  get traceparent(): string {
    const { traceId, spanId, traceFlags } = this.spanContext;
    return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
  }

  about(messages: number, places: Iterable<Place>, group?: string): void {
    const span = this.#span;
    span.setAttribute("messaging.batch.message_count", messages);
    if (group !== undefined) span.setAttribute("messaging.consumer.group.name", group);
    const all = [...places];
    const [first] = all;
    if (first === undefined || all.some(({ queue }) => queue !== first.queue)) return;
    span.updateName(`${this.#operation} ${first.queue}`);
    span.setAttribute("messaging.destination.name", first.queue);
    const { partition } = first;
    if (partition === undefined || all.some((place) => place.partition !== partition)) return;
    span.setAttribute("messaging.destination.partition.id", partition);
  }

  link(traceparents: Iterable<string | undefined>): void {
    for (const traceparent of traceparents) {
      if (this.#linked.size >= LINKS_MAX) return;
      if (traceparent === undefined || this.#linked.has(traceparent)) continue;
      this.#linked.add(traceparent);
      this.#span.addLink({ context: contextOf(traceparent) });
    }
  }

  end(status: number): void {
    if (status >= 400) this.fail(String(status));
    else this.#span.end();
  }

  fail(code: string): void {
    this.#span.setAttribute("error.type", code);
    this.#span.setStatus({ code: SpanStatusCode.ERROR });
    this.#span.end();
  }
}

/** A call is a child of the first request in it, and linked to the others. */
function startCall(
  tracer: Tracer,
  procedure: string,
  operations: Iterable<OperationSpan | undefined>,
): EndCall | undefined {
  const recorded = new Set<RecordedOperation>();
  for (const operation of operations) {
    if (operation instanceof RecordedOperation) recorded.add(operation);
    if (recorded.size > LINKS_MAX) break;
  }
  const [first, ...others] = recorded;
  if (first === undefined) return undefined;
  const span = tracer.startSpan(
    procedure,
    {
      kind: SpanKind.CLIENT,
      attributes: { "db.system.name": "postgresql", "db.operation.name": procedure },
      links: others.map(({ spanContext }) => ({ context: spanContext })),
    },
    first.context,
  );
  return (error) => {
    if (error !== undefined) {
      span.setAttribute("error.type", error instanceof Error ? error.name : "Error");
      span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end();
  };
}

/** Of a traceparent that was checked before. */
function contextOf(traceparent: string): SpanContext {
  return {
    traceId: traceparent.slice(3, 35),
    spanId: traceparent.slice(36, 52),
    traceFlags: Number.parseInt(traceparent.slice(53), 16),
    isRemote: true,
  };
}
