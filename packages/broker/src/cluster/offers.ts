/**
 * Offers are connections that Node's cluster has offered to a worker, and that the worker has neither taken nor declined
 * yet. When the worker dies Node forgets them and leaves them open: their clients would wait for ever. Here they are
 * closed then, so that a client hears of it and comes again.
 *
 *   accepted ──newconn──▶ offered ──accepted──▶ the worker's
 *                            ├─────declined───▶ offered to another
 *                            └─────it died────▶ closed
 *
 * The messages are those of Node's own conversation with its workers, as Node 20 has it. Where they are others nothing is
 * closed, and a test says so.
 */
import type { Worker } from "node:cluster";

interface Connection {
  close(): void;
}

interface ClusterMessage {
  readonly act?: string;
  readonly seq?: number;
  /** The number of the message that this one answers. */
  readonly ack?: number;
}

/** To be called before the worker is offered anything. Returns what is to be called when it has ended. */
export function watchOffers({ process: child }: Worker): () => void {
  const offers = new Map<number, Connection>();
  const send = child.send;
  child.send = (...values: unknown[]): boolean => {
    const [message, connection] = values as [ClusterMessage, Connection?];
    if (message.act === "newconn" && message.seq !== undefined && connection)
      offers.set(message.seq, connection);
    return Reflect.apply(send, child, values);
  };
  child.on("internalMessage", ({ ack }: ClusterMessage) => {
    if (ack !== undefined) offers.delete(ack);
  });
  return () => {
    // Until its line is closed, too, connections would still be offered to it, and what it had said would still be heard.
    if (child.connected) child.disconnect();
    for (const connection of offers.values()) connection.close();
    offers.clear();
  };
}
