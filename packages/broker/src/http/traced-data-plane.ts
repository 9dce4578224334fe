/** The data plane where requests are traced: each operation has a span, from its request to its answer. */
import type { BrokerError } from "@queen/protocol";
import { readTraceparent } from "../operations/traceparent.ts";
import type { OperationSpan, TracedOperation, Tracing } from "../tracing.ts";
import { DataPlane, type DataPlaneOptions } from "./data-plane.ts";
import type { AnyPopQuery, PopQuery } from "./pops.ts";
import type { Answer, Request } from "./route.ts";

export class TracedDataPlane extends DataPlane {
  readonly #tracing: Tracing;
  readonly #classify: (error: unknown) => BrokerError;

  constructor(options: DataPlaneOptions, tracing: Tracing, classify: (error: unknown) => BrokerError) {
    super(options);
    this.#tracing = tracing;
    this.#classify = classify;
  }

  override push(request: Request): Promise<Answer> {
    return this.#trace("push", request, (span) => super.push(request, span));
  }

  override popQueue(request: Request, query: PopQuery): Promise<Answer> {
    return this.#trace("pop", request, (span) => super.popQueue(request, query, span));
  }

  override popAny(request: Request, query: AnyPopQuery): Promise<Answer> {
    return this.#trace("pop", request, (span) => super.popAny(request, query, span));
  }

  override ack(request: Request): Promise<Answer> {
    return this.#trace("ack", request, (span) => super.ack(request, span));
  }

  override ackBatch(request: Request): Promise<Answer> {
    return this.#trace("ack", request, (span) => super.ackBatch(request, span));
  }

  override transaction(request: Request): Promise<Answer> {
    return this.#trace("transaction", request, (span) => super.transaction(request, span));
  }

  async #trace(
    operation: TracedOperation,
    request: Request,
    work: (span: OperationSpan | undefined) => Promise<Answer>,
  ): Promise<Answer> {
    const parent = readTraceparent(request.headers.traceparent);
    const span = this.#tracing.start(operation, parent, request.requestId());
    try {
      const answer = await work(span);
      span?.end(answer.status);
      return answer;
    } catch (error) {
      span?.fail(this.#classify(error).code);
      throw error;
    }
  }
}
