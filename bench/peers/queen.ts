/** The broker, over plain HTTP: a connection for each sender and consumer, one request in flight on each. */
import { HttpConnection } from "../http-connection.ts";
import { type PoppedMessage, popPath, rangeAckBody, uuidV7 } from "../messages.ts";
import { startBrokers } from "../processes/broker.ts";
import {
  type ClientPlace,
  type Consumption,
  loops,
  type Peer,
  type PeerClient,
  type PeerMessage,
  type Sink,
} from "./peer.ts";

const QUEUE = "bench";
const CONSUMERS = 32;
const POP_BATCH = 100;
const POP_WAIT_MS = 1_000;

export const queen: Peer = {
  name: "queen",
  title: "Queen",
  packages: [],
  usesPostgres: true,
  isOrdered: true,
  offers: { lanes: "yes", groups: "yes", replay: "yes", acks: "awaited" },
  missing: () => null,
  startServer: async ({ databaseUrl }) => {
    const { addresses, pids, stop } = await startBrokers(databaseUrl!, { brokers: 1, workers: null });
    return { addresses, pids, stop, version: "this commit", settings: "defaults", answersAfterFsync: true };
  },
  connect: async (place) => new QueenClient(place),
};

class QueenClient implements PeerClient {
  readonly #place: ClientPlace;
  readonly #senders: HttpConnection[] = [];
  readonly #consumers: HttpConnection[] = [];

  constructor(place: ClientPlace) {
    this.#place = place;
  }

  send(sender: number, message: PeerMessage): Promise<void> {
    return this.sendBatch(sender, [message]);
  }

  async sendBatch(sender: number, messages: readonly PeerMessage[]): Promise<void> {
    this.#senders[sender] ??= this.#connect();
    const items = messages.map(
      ({ partition, data }) =>
        `{"queue":"${QUEUE}","partition":"p${partition}","transactionId":"${uuidV7()}","payload":${JSON.stringify(data)}}`,
    );
    const body = `{"items":[${items.join(",")}]}`;
    const answer = await this.#senders[sender].request("POST", "/api/v1/push", body);
    const text = answer.body.toString("latin1");
    const queued = text.split('"status":"queued"').length - 1;
    if (answer.status !== 201 || queued !== messages.length) {
      throw new Error(
        `push: status ${answer.status}, ${queued} of ${messages.length} queued: ${text.slice(0, 100)}`,
      );
    }
  }

  async consume(style: "drain" | "wait", sink: Sink): Promise<Consumption> {
    const path = popPath({ queue: QUEUE, batch: POP_BATCH, waitMs: POP_WAIT_MS });
    const idle = Array.from({ length: style === "drain" ? CONSUMERS : 1 }, () => this.#connect());
    this.#consumers.push(...idle);
    return loops(idle.length, sink, async () => {
      const connection = idle.pop()!;
      try {
        await this.#popAndAck(connection, path, sink);
      } finally {
        idle.push(connection);
      }
    });
  }

  async close(): Promise<void> {
    for (const connection of [...this.#senders, ...this.#consumers]) connection?.destroy();
  }

  #connect(): HttpConnection {
    return new HttpConnection(this.#place.addresses[0]!);
  }

  async #popAndAck(connection: HttpConnection, path: string, sink: Sink): Promise<void> {
    const answer = await connection.request("GET", path);
    if (answer.status === 204) return;
    if (answer.status !== 200) throw new Error(`pop: status ${answer.status}`);
    const { messages } = JSON.parse(answer.body.toString()) as { messages: PoppedMessage[] };
    sink.received(messages);
    const ack = await connection.request("POST", "/api/v1/ack/batch", rangeAckBody(messages));
    const [result] = JSON.parse(ack.body.toString()) as {
      success: boolean;
      messages: number;
      error: string;
    }[];
    if (!result?.success || result.messages !== messages.length)
      throw new Error(`ack: ${result?.error ?? ack.status}`);
    sink.done(messages.length);
  }
}
