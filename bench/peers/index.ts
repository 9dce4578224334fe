/** The peers, the broker first. */
import { bullmq } from "./bullmq.ts";
import { graphileWorker } from "./graphile-worker.ts";
import { nats } from "./nats.ts";
import type { Peer } from "./peer.ts";
import { pgBoss } from "./pg-boss.ts";
import { pgmq } from "./pgmq.ts";
import { queen } from "./queen.ts";
import { queenClient } from "./queen-client.ts";
import { rabbitmq } from "./rabbitmq.ts";

export const PEERS: readonly Peer[] = [
  queen,
  queenClient,
  pgmq,
  pgBoss,
  graphileWorker,
  bullmq,
  nats,
  rabbitmq,
];

/** Whether it is the broker, by whichever client. */
export const isQueen = (peer: Peer): boolean => peer === queen || peer === queenClient;

export function peerNamed(name: string): Peer {
  const peer = PEERS.find((candidate) => candidate.name === name);
  if (!peer) throw new Error(`there is no peer "${name}": ${PEERS.map((known) => known.name).join(", ")}`);
  return peer;
}
