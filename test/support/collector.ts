/** An OpenTelemetry collector of our own: takes spans as JSON over HTTP and keeps them. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface CollectedSpan {
  readonly name: string;
  /** By OTLP's numbers, from 1: internal, server, client, producer, consumer. */
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** As traceparents, without their flags. */
  readonly links: readonly string[];
  readonly isError: boolean;
  readonly resource: Readonly<Record<string, unknown>>;
}

export interface Collector {
  readonly url: string;
  readonly spans: readonly CollectedSpan[];
  /** Of the requests that came, the latest last. */
  readonly headers: readonly IncomingHttpHeaders[];
  /** From now on it takes requests and answers none of them. */
  hang(): void;
  stop(): Promise<void>;
}

// biome-ignore lint/suspicious/noExplicitAny: OTLP as it comes; a wrong shape fails the assertion on it
type Otlp = any;

export async function startCollector(port = 0): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const held: ServerResponse[] = [];
  let isHanging = false;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      headers.push(request.headers);
      if (isHanging) {
        held.push(response);
        return;
      }
      spans.push(...readSpans(JSON.parse(Buffer.concat(chunks).toString("utf8"))));
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    headers,
    hang: () => {
      isHanging = true;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function readSpans(body: Otlp): CollectedSpan[] {
  return body.resourceSpans.flatMap((group: Otlp) =>
    group.scopeSpans.flatMap((scope: Otlp) =>
      scope.spans.map(
        (span: Otlp): CollectedSpan => ({
          name: span.name,
          kind: span.kind,
          traceId: span.traceId,
          spanId: span.spanId,
          parentSpanId: span.parentSpanId || undefined,
          attributes: readAttributes(span.attributes),
          links: (span.links ?? []).map((link: Otlp) => `00-${link.traceId}-${link.spanId}`),
          isError: span.status?.code === 2,
          resource: readAttributes(group.resource.attributes),
        }),
      ),
    ),
  );
}

function readAttributes(list: Otlp[] = []): Record<string, unknown> {
  return Object.fromEntries(
    list.map(({ key, value }) => [
      key,
      value.intValue === undefined ? Object.values(value)[0] : Number(value.intValue),
    ]),
  );
}
