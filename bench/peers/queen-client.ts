/** The broker by its own client, which gathers what senders push at the same time, and acks of consumers. */
import { Queen } from "@queen/client";
import type { Data } from "../messages.ts";
import type { Consumption, Peer, PeerClient, PeerMessage, Sink } from "./peer.ts";
import { queen } from "./queen.ts";

const QUEUE = "bench";
const CONSUMERS = 32;
const POP_BATCH = 100;

export const queenClient: Peer = {
  ...queen,
  name: "queen-client",
  title: "Queen, its client",
  connect: async ({ addresses }) => {
    const [{ host, port }] = addresses as [(typeof addresses)[number]];
    return new ClientOfQueen(new Queen(`http://${host}:${port}`));
  },
};

class ClientOfQueen implements PeerClient {
  readonly #queen: Queen;

  constructor(client: Queen) {
    this.#queen = client;
  }

  send(sender: number, message: PeerMessage): Promise<void> {
    return this.sendBatch(sender, [message]);
  }

  async sendBatch(_sender: number, messages: readonly PeerMessage[]): Promise<void> {
    const results = await this.#queen
      .queue(QUEUE)
      .push(messages.map(({ partition, data }) => ({ partition: `p${partition}`, data })));
    const refused = results.find(({ status }) => status !== "queued");
    if (refused || results.length !== messages.length)
      throw new Error(`push: ${refused?.status ?? `${results.length} results`}`);
  }

  async consume(style: "drain" | "wait", sink: Sink): Promise<Consumption> {
    const consumption = this.#queen
      .queue<Data>(QUEUE)
      .batch(POP_BATCH)
      .concurrency(style === "drain" ? CONSUMERS : 1)
      .consume((messages) => sink.received(messages))
      .onSuccess((messages) => sink.done(messages.length))
      .onError((error) => sink.failed(error));
    return { stop: async () => void (await consumption.stop()) };
  }

  close(): Promise<void> {
    return this.#queen.close();
  }
}
