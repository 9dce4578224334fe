/**
 * Every peer's adapter moves real messages through its real server, and the check finds what a client loses or
 * doubles. A peer whose server or client is not on this machine is left out.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Accountant } from "../accounting.ts";
import { isTimed, layoutOf, type PeerLoad, runShape, type Shape } from "../loads/peer.ts";
import { PEERS } from "../peers/index.ts";
import { versionOf } from "../peers/packages.ts";
import { inOneLane, type Peer, type PeerClient, type PeerMessage, type Sink } from "../peers/peer.ts";
import { temporaryFolder } from "../processes/children.ts";
import { type DatabaseServer, startDatabaseServer } from "../processes/database-server.ts";
import { shapesOf } from "../suites/peers.ts";

const url = process.env.QUEEN_TEST_DATABASE_URL;
let database: DatabaseServer;

before(async () => {
  assert.ok(url, "run it by scripts/test.mjs, which starts a database");
  database = await startDatabaseServer(url, () => undefined);
});
after(() => database.stop());

const loadOf = (shape: Shape): PeerLoad => ({
  kind: "peer",
  peer: "any",
  shape,
  senders: isTimed(shape) ? 1 : 4,
  batch: shape === "one" || shape === "lanes" || isTimed(shape) ? 1 : 50,
  messages: 500,
  messagesPerSecond: 50,
});

const contextOf = () => ({
  accountant: new Accountant({ brokerPids: [], postmasterPid: null, databaseUrl: null }),
  timing: { warmupSeconds: 0, seconds: 0.2 },
  padding: "random" as const,
  enterPhase: () => undefined,
});

function absence(peer: Peer): string | undefined {
  try {
    for (const name of peer.packages) versionOf(name);
  } catch {
    return "its client is not installed: npm ci in bench/peers";
  }
  return peer.missing() ?? undefined;
}

for (const peer of PEERS) {
  test(`${peer.title} delivers each message once, in every shape of load`, {
    skip: absence(peer) ?? false,
  }, async () => {
    const shapes = shapesOf(peer);
    for (const lanes of new Set(shapes.map((shape) => layoutOf(shape, peer).lanes))) {
      await withClient(peer, lanes, async (client) => {
        for (const shape of shapes.filter((each) => layoutOf(each, peer).lanes === lanes)) {
          const { errors, verdict } = await runShape(
            loadOf(shape),
            contextOf(),
            client,
            layoutOf(shape, peer),
          );
          assert.deepEqual(errors, {}, shape);
          assert.equal(verdict?.correct, true, `${shape}: ${JSON.stringify(verdict)}`);
          assert.ok(verdict.confirmed > 0, shape);
        }
      });
    }
  });
}

async function withClient(
  peer: Peer,
  lanes: number,
  use: (client: PeerClient) => Promise<void>,
): Promise<void> {
  const folder = temporaryFolder("test");
  const name = `bench_peer_${process.pid}`;
  const databaseUrl = peer.usesPostgres ? await database.createDatabase(name) : null;
  try {
    const server = await peer.startServer({ folder: folder.path, databaseUrl });
    try {
      const client = await peer.connect({ addresses: server.addresses, databaseUrl, lanes });
      await use(client).finally(() => client.close());
    } finally {
      await server.stop();
    }
  } finally {
    if (databaseUrl !== null) await database.dropDatabase(name);
    folder.remove();
  }
}

/** A queue in memory, which does with some messages what no queue should. */
class FaultyClient implements PeerClient {
  readonly #stored: PeerMessage[] = [];
  readonly #copies: (number: number) => number;

  readonly #isReversed: boolean;

  constructor(copies: (number: number) => number, isReversed = false) {
    this.#copies = copies;
    this.#isReversed = isReversed;
  }

  send(sender: number, message: PeerMessage): Promise<void> {
    return this.sendBatch(sender, [message]);
  }

  async sendBatch(_sender: number, messages: readonly PeerMessage[]): Promise<void> {
    for (const message of messages) {
      for (let copy = 0; copy < this.#copies(message.data.s); copy += 1) this.#stored.push(message);
    }
  }

  async consume(_style: "drain" | "wait", sink: Sink): Promise<{ stop(): Promise<void> }> {
    const stored = this.#isReversed ? this.#stored.toReversed() : this.#stored;
    sink.received(stored.map(({ data }) => inOneLane(data)));
    sink.done(this.#stored.length);
    return { stop: async () => undefined };
  }

  async close(): Promise<void> {}
}

test("a client that doubles a message is found out", async () => {
  const faulty = new FaultyClient((number) => (number === 7 ? 2 : 1));
  const { verdict } = await runShape(loadOf("consume"), contextOf(), faulty, { lanes: 1, isOrdered: false });
  assert.equal(verdict?.correct, false);
  assert.equal(verdict.duplicated, 1);
});

test("a client that loses a message is found out", async () => {
  const faulty = new FaultyClient((number) => (number === 7 ? 0 : 1));
  const { verdict } = await runShape(loadOf("consume"), contextOf(), faulty, { lanes: 1, isOrdered: false });
  assert.equal(verdict?.correct, false);
  assert.equal(verdict.missing, 1);
});

test("a client that turns a lane around is found out where order is promised", async () => {
  for (const isOrdered of [true, false]) {
    const faulty = new FaultyClient(() => 1, true);
    const load = { ...loadOf("consume"), senders: 1 };
    const { verdict } = await runShape(load, contextOf(), faulty, { lanes: 1, isOrdered });
    assert.equal(verdict?.correct, !isOrdered);
  }
});
