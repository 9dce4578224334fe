/** RabbitMQ: a quorum queue of one node for each lane, with publisher confirms. */
import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import type { Data } from "../messages.ts";
import { freePort } from "../processes/children.ts";
import { startLoopbackServer } from "./loopback-server.ts";
import { findProgram, load, versionOf } from "./packages.ts";
import {
  type Consumption,
  inLane,
  type Peer,
  type PeerClient,
  type PeerMessage,
  type PeerServer,
  type ServerPlace,
  type Sink,
} from "./peer.ts";

const queueOf = (lane: number): string => `bench-${lane}`;
const PREFETCH = 500;
// Debian's wrapper in /usr/sbin wants to be root and starts as another user; this is what it starts.
const FOLDERS = ["/usr/lib/rabbitmq/bin"];
const program = (): string | null =>
  findProgram("rabbitmq-server", []) && findProgram("rabbitmq-env", FOLDERS);

interface Delivery {
  readonly content: Buffer;
}

interface Channel {
  assertQueue(name: string, options: object): Promise<unknown>;
  prefetch(count: number): Promise<unknown>;
  publish(
    exchange: string,
    key: string,
    content: Buffer,
    options: object,
    confirmed: (error: Error | null) => void,
  ): boolean;
  consume(queue: string, handler: (delivery: Delivery | null) => void): Promise<{ consumerTag: string }>;
  cancel(tag: string): Promise<unknown>;
  ack(delivery: Delivery): void;
  close(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): void;
}

interface Connection {
  createConfirmChannel(): Promise<Channel>;
  createChannel(): Promise<Channel>;
  close(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): void;
}

interface Module {
  connect(url: string, options: { noDelay: boolean }): Promise<Connection>;
}

export const rabbitmq: Peer = {
  name: "rabbitmq",
  title: "RabbitMQ, quorum queue",
  packages: ["amqplib"],
  usesPostgres: false,
  isOrdered: false,
  offers: { lanes: "a queue each", groups: "by copies", replay: "no (streams)", acks: "not awaited" },
  missing: () =>
    program() && findProgram("epmd") ? null : "rabbitmq-server is missing: apt-get install rabbitmq-server",
  startServer,
  connect: async ({ addresses, lanes }) => {
    const { host, port } = addresses[0]!;
    // Without it a small publish waits for the answer to an earlier one, 40 ms on Linux.
    const options = { noDelay: true };
    const connection = await load<Module>("amqplib").connect(`amqp://guest:guest@${host}:${port}`, options);
    connection.on("error", () => undefined);
    const channel = await connection.createConfirmChannel();
    channel.on("error", () => undefined);
    for (let lane = 0; lane < lanes; lane++)
      await channel.assertQueue(queueOf(lane), { durable: true, arguments: { "x-queue-type": "quorum" } });
    return new RabbitmqClient(connection, channel, lanes);
  },
};

/** A node needs a port mapper. It gets one of its own, so that none is left behind as a daemon. */
async function startServer({ folder }: ServerPlace): Promise<PeerServer> {
  const address = { host: "127.0.0.1", port: await freePort() };
  const mapperAddress = { host: "127.0.0.1", port: await freePort() };
  const script = program()!.replace(/rabbitmq-env$/, "rabbitmq-server");
  const mapperFolder = `${folder}/epmd`;
  mkdirSync(mapperFolder);
  writeFileSync(`${folder}/enabled_plugins`, "[].\n");
  writeFileSync(`${folder}/rabbitmq.conf`, "log.file.level = warning\n");
  const env = {
    HOME: folder,
    ERL_EPMD_PORT: String(mapperAddress.port),
    ERL_EPMD_ADDRESS: "127.0.0.1",
    RABBITMQ_NODENAME: `queen-bench-${address.port}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: address.host,
    RABBITMQ_NODE_PORT: String(address.port),
    RABBITMQ_DIST_PORT: String(await freePort()),
    RABBITMQ_MNESIA_BASE: `${folder}/mnesia`,
    RABBITMQ_LOG_BASE: `${folder}/log`,
    RABBITMQ_ENABLED_PLUGINS_FILE: `${folder}/enabled_plugins`,
    RABBITMQ_CONFIG_FILE: `${folder}/rabbitmq.conf`,
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "-kernel inet_dist_use_interface {127,0,0,1}",
  };
  const mapper = await startLoopbackServer(findProgram("epmd")!, ["-port", env.ERL_EPMD_PORT], {
    folder: mapperFolder,
    address: mapperAddress,
    env,
  });
  try {
    const server = await startLoopbackServer(script, [], { folder, address, env });
    return {
      addresses: [address],
      pids: [server.child.pid!],
      version: `${serverVersion()}, amqplib ${versionOf("amqplib")}`,
      settings: `one node, a quorum queue for each lane, publisher confirms, prefetch ${PREFETCH}`,
      answersAfterFsync: true,
      stop: async () => {
        await server.stop();
        await mapper.stop();
      },
    };
  } catch (error) {
    await mapper.stop();
    throw error;
  }
}

/** From the folder that its scripts are linked to: asking the server takes seconds. */
const serverVersion = (): string =>
  /rabbitmq_server-([\d.]+)/.exec(realpathSync(program()!))?.[1] ?? "unknown";

class RabbitmqClient implements PeerClient {
  readonly #connection: Connection;
  readonly #channel: Channel;
  readonly #lanes: number;

  constructor(connection: Connection, channel: Channel, lanes: number) {
    this.#connection = connection;
    this.#channel = channel;
    this.#lanes = lanes;
  }

  send(_sender: number, { partition, data }: PeerMessage): Promise<void> {
    const content = Buffer.from(JSON.stringify(data));
    return new Promise((resolve, reject) => {
      this.#channel.publish("", queueOf(partition), content, { persistent: true }, (error) => {
        if (error) reject(error);
        else resolve();
      });
    });
  }

  /** There are no batches: all are published, then all confirms are awaited. */
  async sendBatch(sender: number, messages: readonly PeerMessage[]): Promise<void> {
    await Promise.all(messages.map((message) => this.send(sender, message)));
  }

  async consume(_style: "drain" | "wait", sink: Sink): Promise<Consumption> {
    const channel = await this.#connection.createChannel();
    channel.on("error", (error) => sink.failed(error));
    await channel.prefetch(PREFETCH);
    const tags: string[] = [];
    for (let lane = 0; lane < this.#lanes; lane++) {
      const { consumerTag } = await channel.consume(queueOf(lane), (delivery) => {
        if (!delivery) return;
        sink.received([inLane(lane, JSON.parse(delivery.content.toString()) as Data)]);
        channel.ack(delivery);
        sink.done(1);
      });
      tags.push(consumerTag);
    }
    return {
      stop: async () => {
        for (const tag of tags) await channel.cancel(tag);
        await channel.close();
      },
    };
  }

  close(): Promise<void> {
    return this.#connection.close();
  }
}
