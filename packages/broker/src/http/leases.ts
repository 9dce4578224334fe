/** The handler of leases that are to last longer. */
import type { OperationStatistics } from "../batching/operation-statistics.ts";
import { isoMilliseconds } from "../operations/timestamp.ts";
import type { Renewer } from "../settling/renewer.ts";
import type { Answer, Request } from "./route.ts";

export interface LeaseRoutesOptions {
  readonly renewer: Renewer;
  readonly statistics: { readonly renew_lease: OperationStatistics };
  readonly now: () => number;
}

export class LeaseRoutes {
  readonly #options: LeaseRoutesOptions;

  constructor(options: LeaseRoutesOptions) {
    this.#options = options;
  }

  async extend(request: Request, seconds: number): Promise<Answer> {
    const { renewer, statistics, now } = this.#options;
    const startedAtMs = now();
    const leaseId = request.params.leaseId!;
    const expiresAtUs = await renewer.renew(leaseId, seconds);
    statistics.renew_lease.answered(1, now() - startedAtMs);
    const expiresAt = expiresAtUs === undefined ? null : isoMilliseconds(expiresAtUs);
    const result = {
      index: 0,
      leaseId,
      success: expiresAt !== null,
      error: expiresAt === null ? "Lease not found" : null,
      expiresAt,
      newExpiresAt: expiresAt,
    };
    return {
      status: 200,
      body: JSON.stringify([result]),
      isText: true,
      headers: expiresAt === null ? {} : { "Queen-Lease-Expires-At": expiresAt },
    };
  }
}
