/** The peers, each in the shapes of load that it knows: who has no ordered lanes is not measured with them. */
import { isTimed, layoutOf, type PeerLoad, type Shape } from "../loads/peer.ts";
import { PEERS } from "../peers/index.ts";
import { hasLanes, type Peer } from "../peers/peer.ts";
import { type Scenario, SLOW_RATE, type Suite } from "./scenario.ts";
import { FLOORS } from "./scenarios.ts";

export const SHAPES: readonly Shape[] = ["one", "lanes", "batch", "consume", "latency", "rare"];

const ASKS: Readonly<Record<Shape, string>> = {
  one: "How fast do 64 senders send one by one to one lane or queue",
  lanes: "How fast do 64 senders send one by one to 100 lanes that each keep their order",
  batch: "How fast do 64 senders send batches of 100",
  consume: "How fast are 100,000 messages received and acknowledged",
  latency: "How long is a message on its way at 50 a second to one consumer that waits",
  rare: "How long is a message on its way at 1 a second to one consumer that waits",
};

export const shapesOf = (peer: Peer): Shape[] =>
  SHAPES.filter((shape) => shape !== "lanes" || hasLanes(peer));

export const PEER_RUNS: Suite = {
  name: "peers",
  scenarios: [
    FLOORS.find(({ id }) => id === "FSYNC")!,
    ...PEERS.flatMap((peer) => shapesOf(peer).map((shape) => run(peer, shape))),
  ],
};

function run(peer: Peer, shape: Shape): Scenario {
  return {
    id: `${peer.name}-${shape}`,
    family: peer.name,
    asks: `${ASKS[shape]} (${peer.title})?`,
    correct: layoutOf(shape, peer).isOrdered
      ? "each message once, in order per partition"
      : "each message once",
    load: { kind: "peer", peer: peer.name, shape, ...sizes(shape) },
    compares: isTimed(shape) ? "p50" : "rate",
    goal: peer.name === "queen" ? "ahead of every durable peer" : "",
    against: ["FSYNC", ...(peer.name === "queen" ? [] : [`queen-${shape}`])],
    ...(isTimed(shape) && SLOW_RATE),
  };
}

function sizes(shape: Shape): Pick<PeerLoad, "senders" | "batch" | "messages" | "messagesPerSecond"> {
  switch (shape) {
    case "one":
    case "lanes":
      return { senders: 64, batch: 1 };
    case "batch":
      return { senders: 64, batch: 100 };
    case "consume":
      return { senders: 8, batch: 100, messages: 100_000 };
    case "latency":
      return { senders: 1, batch: 1, messagesPerSecond: 50 };
    case "rare":
      return { senders: 1, batch: 1, messagesPerSecond: 1 };
  }
}
