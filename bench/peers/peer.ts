/**
 * A peer is a queue that users would pick instead, measured by its own client with the payload, the durability and
 * the shapes of load that the broker is measured with. The broker itself is one of them.
 *
 * A peer's server is started for each run by the orchestrator, and its client runs in the generator.
 */
import type { ReceivedMessage } from "../check.ts";
import type { Address } from "../http-connection.ts";
import type { Data } from "../messages.ts";

export interface Peer {
  readonly name: string;
  readonly title: string;
  /** The packages of its client, as in package.json; the broker is spoken to by plain HTTP. */
  readonly packages: readonly string[];
  /** Whether it stores in PostgreSQL; it then gets a fresh database for each run. */
  readonly usesPostgres: boolean;
  /** Whether it keeps the order of a lane in every shape of load, and has many lanes in all but one of them. */
  readonly isOrdered: boolean;
  /** What it offers beside the shapes of load. */
  readonly offers: Offers;
  /** Why it cannot be measured on this machine, and what to do; null if it can. */
  missing(): string | null;
  startServer(place: ServerPlace): Promise<PeerServer>;
  connect(place: ClientPlace): Promise<PeerClient>;
}

/** In a few words each: yes, no, or by which means. Who has lanes is also measured with them. */
export interface Offers {
  readonly lanes: string;
  readonly groups: string;
  readonly replay: string;
  readonly acks: string;
}

export interface ServerPlace {
  /** A fresh folder on a disk, removed after the run. */
  readonly folder: string;
  readonly databaseUrl: string | null;
}

export interface ClientPlace {
  readonly addresses: readonly Address[];
  readonly databaseUrl: string | null;
  /** How many ordered lanes the messages go to; 1: they are one queue. */
  readonly lanes: number;
}

export interface PeerServer {
  readonly addresses: readonly Address[];
  /** Empty where PostgreSQL is the server. */
  readonly pids: readonly number[];
  readonly version: string;
  readonly settings: string;
  /** Whether a message is on the disk when its sender is told so. */
  readonly answersAfterFsync: boolean;
  stop(): Promise<void>;
}

export interface PeerMessage {
  readonly partition: number;
  readonly data: Data;
}

export interface PeerClient {
  /** Resolves when the server has said that the message is stored. A sender has one call in flight. */
  send(sender: number, message: PeerMessage): Promise<void>;
  sendBatch(sender: number, messages: readonly PeerMessage[]): Promise<void>;
  /** Delivers until it is stopped: as much as it can, or one message as soon as it can. */
  consume(style: "drain" | "wait", sink: Sink): Promise<Consumption>;
  close(): Promise<void>;
}

export interface Sink {
  received(messages: readonly ReceivedMessage[]): void;
  /** The messages are acknowledged, or have been given to a client that acknowledges without waiting. */
  done(count: number): void;
  failed(error: unknown): void;
}

export interface Consumption {
  stop(): Promise<void>;
}

export const hasLanes = ({ offers }: Peer): boolean => offers.lanes !== "no";

/** How a message is noted, where there is only one lane, and where there are some. */
export const inOneLane = (data: Data): ReceivedMessage => inLane(0, data);
export const inLane = (lane: number, data: Data): ReceivedMessage => ({ partition: `p${lane}`, data });

/** Runs some loops side by side until they are stopped; a loop that throws is reported and ends. */
export function loops(count: number, sink: Sink, turn: () => Promise<void>): Consumption {
  let isOver = false;
  const loop = async (): Promise<void> => {
    try {
      while (!isOver) await turn();
    } catch (error) {
      if (!isOver) sink.failed(error);
    }
  };
  const running = Array.from({ length: count }, loop);
  return {
    stop: async () => {
      isOver = true;
      await Promise.all(running);
    },
  };
}

/** For peers that have no server but the PostgreSQL of the run. */
export const onPostgres = async (version: string, settings: string): Promise<PeerServer> => ({
  addresses: [],
  pids: [],
  version,
  settings,
  answersAfterFsync: true,
  stop: async () => undefined,
});
