/**
 * The balancer says which endpoint a request tries first, and which next.
 *
 *   round-robin   one after the other
 *   session       always the same one, until it fails
 *   affinity      requests of the same key (queue, partition, group) to the same one, so that the broker which
 *                 delivered a message also gets its ack and knows its lane; without a key round-robin
 *
 * Endpoints that failed come last, the one whose rest ends first at their head: with nothing else left it is tried.
 */
import type { Endpoint } from "./endpoint.ts";
import { HashRing } from "./hash-ring.ts";

export type Balancing = "round-robin" | "session" | "affinity";

export class Balancer {
  readonly endpoints: readonly Endpoint[];
  readonly #balancing: Balancing;
  readonly #ring: HashRing;
  #next: number;

  constructor(endpoints: readonly Endpoint[], balancing: Balancing, random: () => number = Math.random) {
    this.endpoints = endpoints;
    this.#balancing = balancing;
    this.#ring = new HashRing(endpoints.map((endpoint) => endpoint.url));
    // Clients that start together begin at different brokers.
    this.#next = Math.floor(random() * endpoints.length);
  }

  order(key?: string): Endpoint[] {
    const all = this.#preference(key).map((index) => this.endpoints[index]!);
    const healthy = all.filter((endpoint) => endpoint.isHealthy);
    const others = all
      .filter((endpoint) => !healthy.includes(endpoint))
      .sort((a, b) => a.restsUntil - b.restsUntil);
    if (this.#balancing === "session" && healthy[0]) this.#next = this.endpoints.indexOf(healthy[0]);
    return [...healthy, ...others];
  }

  /** The endpoint that requests of a key go to while it is well; empty where keys make no difference. */
  home(key: string): string {
    if (this.#balancing !== "affinity" || this.endpoints.length === 1) return "";
    return this.endpoints[this.#ring.order(key)[0]!]!.url;
  }

  #preference(key: string | undefined): number[] {
    if (this.#balancing === "affinity" && key !== undefined) return this.#ring.order(key);
    const count = this.endpoints.length;
    const first = this.#next;
    if (this.#balancing !== "session") this.#next = (this.#next + 1) % count;
    return Array.from({ length: count }, (_, step) => (first + step) % count);
  }
}
