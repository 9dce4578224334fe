/** The renewer extends leases. A lease over several partitions is extended wherever it is still held. */
import { BrokerError, LEASE_SECONDS_MAX, parseLeaseId } from "@queen/protocol";
import type { Batcher, BatchKind } from "../batching/batcher.ts";
import type { Session } from "../postgres/session.ts";
import { RENEW, renew } from "../postgres/statements.ts";

export interface RenewOperation {
  readonly partition: number;
  readonly token: number;
  readonly seconds: number;
}

export interface RenewResult {
  readonly status: number;
  readonly expiresAtUs: number | null;
}

export const renewKind: BatchKind<RenewOperation, RenewResult> = {
  name: "renew_lease",
  repeatable: true,
  weight: () => 1,
  async run(session: Session, operations: readonly RenewOperation[]) {
    const rows = await session.run(renew, [
      operations.map((operation) => operation.partition),
      operations.map((operation) => operation.token),
      operations.map((operation) => operation.seconds),
    ]);
    const results: RenewResult[] = [];
    for (const row of rows) results[row.lease] = row;
    return results;
  },
};

export interface RenewerOptions {
  readonly renews: Batcher<RenewOperation, RenewResult>;
  readonly extended: (partition: number, leaseMs: number) => void;
  readonly now: () => number;
  readonly busyPauseMs: number;
  readonly patienceMs: number;
}

export class Renewer {
  readonly #options: RenewerOptions;

  constructor(options: RenewerOptions) {
    this.#options = options;
  }

  /** When the lease ends now, the earliest of its partitions; undefined: nobody holds it. */
  async renew(leaseId: string, seconds: number): Promise<number | undefined> {
    const lease = parseLeaseId(leaseId);
    if (!lease) return undefined;
    const bounded = Math.min(Math.max(1, seconds), LEASE_SECONDS_MAX);
    const results = await Promise.all(
      lease.partitions.map((partition) => this.#renewOne(partition, lease.token, bounded)),
    );
    const held = results.filter((expiresAtUs) => expiresAtUs !== undefined);
    return held.length === 0 ? undefined : Math.min(...held);
  }

  async #renewOne(partition: number, token: number, seconds: number): Promise<number | undefined> {
    const deadlineAtMs = this.#options.now() + this.#options.patienceMs;
    for (;;) {
      const result = await this.#options.renews.submit({ partition, token, seconds });
      if (result.status === RENEW.extended) {
        this.#options.extended(partition, seconds * 1000);
        return result.expiresAtUs!;
      }
      if (result.status === RENEW.notHeld) return undefined;
      if (this.#options.now() > deadlineAtMs) {
        throw new BrokerError("OVERLOADED", "The lease is held by another transaction. Try again.");
      }
      await new Promise((resolve) => setTimeout(resolve, this.#options.busyPauseMs));
    }
  }
}
