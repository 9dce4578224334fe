/** The data plane: push, pop, ack, lease, transaction. Each of its handlers builds its answer's bytes itself. */
import type { OperationStatistics } from "../batching/operation-statistics.ts";
import type { OperationSpan } from "../tracing.ts";
import { AckRoutes, type AckRoutesOptions } from "./acks.ts";
import { LeaseRoutes, type LeaseRoutesOptions } from "./leases.ts";
import { type AnyPopQuery, type PopQuery, PopRoutes, type PopRoutesOptions } from "./pops.ts";
import { PushRoutes, type PushRoutesOptions } from "./pushes.ts";
import type { Answer, Request } from "./route.ts";
import { TransactionRoutes, type TransactionRoutesOptions } from "./transactions.ts";

export interface DataPlaneOptions
  extends PushRoutesOptions,
    PopRoutesOptions,
    AckRoutesOptions,
    LeaseRoutesOptions,
    TransactionRoutesOptions {
  readonly statistics: Readonly<
    Record<"push" | "pop" | "ack" | "transaction" | "renew_lease", OperationStatistics>
  >;
}

export class DataPlane {
  readonly #pushes: PushRoutes;
  readonly #pops: PopRoutes;
  readonly #acks: AckRoutes;
  readonly #leases: LeaseRoutes;
  readonly #transactions: TransactionRoutes;

  constructor(options: DataPlaneOptions) {
    this.#pushes = new PushRoutes(options);
    this.#pops = new PopRoutes(options);
    this.#acks = new AckRoutes(options);
    this.#leases = new LeaseRoutes(options);
    this.#transactions = new TransactionRoutes(options);
  }

  push(request: Request, span?: OperationSpan): Promise<Answer> {
    return this.#pushes.push(request, span);
  }

  popQueue(request: Request, query: PopQuery, span?: OperationSpan): Promise<Answer> {
    return this.#pops.popQueue(request, query, span);
  }

  popAny(request: Request, query: AnyPopQuery, span?: OperationSpan): Promise<Answer> {
    return this.#pops.popAny(request, query, span);
  }

  ack(request: Request, span?: OperationSpan): Promise<Answer> {
    return this.#acks.ack(request, span);
  }

  ackBatch(request: Request, span?: OperationSpan): Promise<Answer> {
    return this.#acks.ackBatch(request, span);
  }

  extendLease(request: Request, seconds: number): Promise<Answer> {
    return this.#leases.extend(request, seconds);
  }

  transaction(request: Request, span?: OperationSpan): Promise<Answer> {
    return this.#transactions.run(request, span);
  }
}
