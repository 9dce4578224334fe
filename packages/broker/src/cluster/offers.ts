/**
 * Offers are connections on their way to a worker. Node's cluster offers each to the worker whose turn it is, and that
 * worker has its next turn when the offer is answered. Here the offer goes to the worker that is to have the connection,
 * one at a time, so that nobody has to decline what is meant for another.
 *
 *   accepted ──newconn──▶ waiting ──▶ offered ──taken─────────────────▶ the worker's
 *                            ▲            ├────declined: it stops──────▶ offered anew
 *                            │            └────it died or stands still─▶ left to it
 *                            └─ while who is to have it has not answered the one before
 *
 * What is left to a worker is closed by its death, or served when it goes on. Node itself would forget the offers of one
 * that died and leave them open: their clients would wait for ever.
 *
 * The messages are those of Node's own conversation with its workers, as Node 20 has it. Where they are others each worker
 * is offered connections in turn and nothing is closed, and a test says so.
 */
import type { ChildProcess } from "node:child_process";
import type { Worker } from "node:cluster";

interface ClusterMessage {
  readonly act?: string;
  readonly seq?: number;
  /** The number of the message that this one answers. */
  readonly ack?: number;
  /** Not said by the worker, but in its stead. */
  readonly isLeft?: boolean;
}

interface Offer {
  readonly turn: Worker;
  readonly seq: number;
  /** What Node gave to `send`. */
  readonly values: readonly unknown[];
}

interface Taker {
  readonly child: ChildProcess;
  /** As it was before it was watched. */
  readonly send: ChildProcess["send"];
  /** The number of the offer that it has not answered. */
  offered: number | undefined;
}

export class Offers {
  readonly #takers = new Map<Worker, Taker>();
  readonly #takerOf: (turn: Worker) => Worker;
  #waiting: Offer[] = [];

  /** `takerOf`: who is to have a connection that it is this worker's turn to get. */
  constructor(takerOf: (turn: Worker) => Worker) {
    this.#takerOf = takerOf;
  }

  /** To be called before the worker is offered anything. */
  watch(worker: Worker): void {
    const { process: child } = worker;
    const taker: Taker = { child, send: child.send, offered: undefined };
    this.#takers.set(worker, taker);
    child.send = (...values: unknown[]): boolean => {
      const [{ act, seq }] = values as [ClusterMessage];
      if (act !== "newconn" || seq === undefined) return Reflect.apply(taker.send, child, values);
      this.#waiting.push({ turn: worker, seq, values });
      this.offer();
      return true;
    };
    child.on("internalMessage", ({ ack, isLeft }: ClusterMessage) => {
      if (ack === undefined || ack !== taker.offered || isLeft) return;
      taker.offered = undefined;
      this.offer();
    });
  }

  /** Offers what waits to who is to have it by now. */
  offer(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const offer of waiting) {
      const taker = this.#takers.get(this.#takerOf(offer.turn));
      if (!taker) {
        // Everybody has ended.
        leave(offer.turn.process, offer.seq);
      } else if (taker.offered !== undefined || !taker.child.connected) {
        this.#waiting.push(offer);
      } else {
        taker.offered = offer.seq;
        Reflect.apply(taker.send, taker.child, offer.values);
      }
    }
  }

  /** It is no longer waited for what the worker says to its offer; it gets no other one until it has said it. */
  leave(worker: Worker): void {
    const { child, offered } = this.#takers.get(worker)!;
    if (offered !== undefined) leave(child, offered);
  }

  /** The worker has ended. */
  end(worker: Worker): void {
    const { child } = this.#takers.get(worker)!;
    // Until its line is closed, too, connections would still be offered to it, and what it had said would still be heard.
    if (child.connected) child.disconnect();
    this.leave(worker);
    this.#takers.delete(worker);
    this.offer();
  }
}

/** As if a worker had said that it has taken the connection: the primary closes what it has of it. */
function leave(child: ChildProcess, ack: number): void {
  child.emit("internalMessage", { cmd: "NODE_CLUSTER", ack, accepted: true, isLeft: true });
}
