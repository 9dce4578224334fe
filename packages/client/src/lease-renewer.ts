/**
 * The renewer extends leases on time until they are released. It runs in a worker where there is one, so that
 * a handler which blocks the event loop keeps its lease; otherwise beside the handlers.
 *
 * A pop does not say how long its lease is, and a queue's leaseTime may be a second: the first extension comes
 * early, and makes the lease as long as the next ones need.
 */
import type { DataPlane } from "./data-plane.ts";
import { LeaseLostError, ServerError } from "./errors.ts";

export interface Lease {
  readonly leaseId: string;
  readonly seconds: number;
  readonly affinityKey: string;
}

export interface RenewerEvents {
  /** Nobody holds the lease any more. */
  readonly lost: (leaseId: string, reason: string) => void;
  readonly warn: (message: string) => void;
}

const FIRST_MILLIS = 400;
// An extension that fails is tried twice more before the lease ends.
const EXTENSIONS_PER_LEASE = 3;

export class LeaseRenewer {
  readonly #data: DataPlane;
  readonly #events: RenewerEvents;
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();

  constructor(data: DataPlane, events: RenewerEvents) {
    this.#data = data;
    this.#events = events;
  }

  hold(lease: Lease): void {
    this.#timers.set(
      lease.leaseId,
      setTimeout(() => void this.#renew(lease), FIRST_MILLIS),
    );
  }

  release(leaseId: string): void {
    clearTimeout(this.#timers.get(leaseId));
    this.#timers.delete(leaseId);
  }

  async #renew(lease: Lease): Promise<void> {
    const { leaseId, seconds, affinityKey } = lease;
    let waitMillis = (seconds * 1_000) / EXTENSIONS_PER_LEASE;
    try {
      await this.#data.extend(leaseId, seconds, affinityKey);
    } catch (error) {
      if (error instanceof LeaseLostError || (error instanceof ServerError && !error.retryable)) {
        const reason = error instanceof LeaseLostError ? error.reason : error.message;
        if (this.#timers.delete(leaseId)) this.#events.lost(leaseId, reason);
        return;
      }
      this.#events.warn(`A lease was not extended: ${(error as Error).message}`);
      waitMillis = Math.min(waitMillis, 1_000);
    }
    if (!this.#timers.has(leaseId)) return; // released meanwhile
    this.#timers.set(
      leaseId,
      setTimeout(() => void this.#renew(lease), waitMillis),
    );
  }
}
