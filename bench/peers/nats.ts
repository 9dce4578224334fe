/** NATS JetStream: a stream in a file, with acknowledged publishes and a durable pull consumer. */
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import type { Address } from "../http-connection.ts";
import type { Data } from "../messages.ts";
import { freePort } from "../processes/children.ts";
import { startLoopbackServer } from "./loopback-server.ts";
import { findProgram, load, versionOf } from "./packages.ts";
import {
  type Consumption,
  inOneLane,
  type Peer,
  type PeerClient,
  type PeerMessage,
  type Sink,
} from "./peer.ts";

const STREAM = "bench";
const CONSUMER = "bench";
const SUBJECT = "bench.messages";
const MESSAGES_AHEAD = 500;
const ACKS_PENDING_MAX = 10_000;
const ACK_WAIT_NS = 300 * 1_000_000_000;

interface Connection {
  close(): Promise<void>;
}

interface JetStream {
  publish(subject: string, payload: string): Promise<{ seq: number }>;
  readonly consumers: { get(stream: string, consumer: string): Promise<Consumer> };
}

interface Consumer {
  consume(options: {
    max_messages: number;
    callback: (message: Message) => void;
  }): Promise<{ close(): Promise<unknown> }>;
}

interface Message {
  json(): unknown;
  ack(): void;
}

interface Manager {
  readonly streams: { add(options: object): Promise<unknown> };
  readonly consumers: { add(stream: string, options: object): Promise<unknown> };
}

interface Transport {
  connect(options: { servers: string }): Promise<Connection>;
}

interface Module {
  jetstream(connection: Connection): JetStream;
  jetstreamManager(connection: Connection): Promise<Manager>;
}

export const nats: Peer = {
  name: "nats",
  title: "NATS JetStream",
  packages: ["@nats-io/jetstream", "@nats-io/transport-node"],
  usesPostgres: false,
  isOrdered: false,
  offers: { lanes: "no", groups: "yes", replay: "yes", acks: "not awaited" },
  missing: () => (findProgram("nats-server") ? null : "nats-server is missing: apt-get install nats-server"),
  startServer: async ({ folder }) => {
    const program = findProgram("nats-server")!;
    const address = { host: "127.0.0.1", port: await freePort() };
    const file = `${folder}/nats.conf`;
    const answersAfterFsync = configure(program, file, address, folder);
    const { child, stop } = await startLoopbackServer(program, ["-c", file], { folder, address });
    const version = /v([\d.]+)/.exec(execFileSync(program, ["--version"], { encoding: "utf8" }))?.[1];
    return {
      addresses: [address],
      pids: [child.pid!],
      version: `${version}, client ${versionOf("@nats-io/jetstream")}`,
      settings: answersAfterFsync
        ? "sync_interval always"
        : "knows no sync_interval: writes to the disk later",
      answersAfterFsync,
      stop,
    };
  },
  connect: async ({ addresses }) => {
    const { host, port } = addresses[0]!;
    const connection = await load<Transport>("@nats-io/transport-node").connect({
      servers: `${host}:${port}`,
    });
    const module = load<Module>("@nats-io/jetstream");
    const manager = await module.jetstreamManager(connection);
    await manager.streams.add({ name: STREAM, subjects: ["bench.>"], storage: "file" });
    await manager.consumers.add(STREAM, {
      durable_name: CONSUMER,
      ack_policy: "explicit",
      ack_wait: ACK_WAIT_NS,
      max_ack_pending: ACKS_PENDING_MAX,
    });
    return new NatsClient(connection, module.jetstream(connection));
  },
};

/** Writes a configuration that the server takes, and returns whether it syncs each message: 2.9 cannot. */
function configure(program: string, file: string, address: Address, folder: string): boolean {
  const text = (sync: string): string =>
    `listen: "${address.host}:${address.port}"\njetstream {\n  store_dir: "${folder}/jetstream"\n${sync}}\n`;
  writeFileSync(file, text("  sync_interval: always\n"));
  if (spawnSync(program, ["-t", "-c", file]).status === 0) return true;
  writeFileSync(file, text(""));
  return false;
}

class NatsClient implements PeerClient {
  readonly #connection: Connection;
  readonly #jetStream: JetStream;

  constructor(connection: Connection, jetStream: JetStream) {
    this.#connection = connection;
    this.#jetStream = jetStream;
  }

  async send(_sender: number, { data }: PeerMessage): Promise<void> {
    await this.#jetStream.publish(SUBJECT, JSON.stringify(data));
  }

  /** There are no batches: all are published, then all answers are awaited. */
  async sendBatch(sender: number, messages: readonly PeerMessage[]): Promise<void> {
    await Promise.all(messages.map((message) => this.send(sender, message)));
  }

  async consume(_style: "drain" | "wait", sink: Sink): Promise<Consumption> {
    const consumer = await this.#jetStream.consumers.get(STREAM, CONSUMER);
    const callback = (message: Message): void => {
      sink.received([inOneLane(message.json() as Data)]);
      message.ack();
      sink.done(1);
    };
    const messages = await consumer.consume({ max_messages: MESSAGES_AHEAD, callback });
    return {
      stop: async () => {
        await messages.close();
      },
    };
  }

  close(): Promise<void> {
    return this.#connection.close();
  }
}
