/**
 * A balancer stands before brokers, as people put one there: it hands each connection to the next broker that is
 * ready, by asking /readyz, and passes bytes on. It knows nothing of HTTP else and repeats nothing.
 */
import { get } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface Balancer {
  readonly url: string;
  /** Connections that each broker got, in the order of the brokers. */
  readonly connections: readonly number[];
  close(): Promise<void>;
}

const ASK_EVERY_MS = 50;

export async function startBalancer(urls: readonly string[]): Promise<Balancer> {
  const backends = urls.map((url) => ({ url: new URL(url), isReady: true, connections: 0 }));
  const sockets = new Set<Socket>();
  let turn = 0;

  const own = (socket: Socket): void => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
  };
  /** The next one that is ready; one that does not take the connection is passed over. */
  const connectTo = (client: Socket, tries: number): void => {
    const ready = backends.filter(({ isReady }) => isReady);
    const backend = ready[turn++ % ready.length];
    if (!backend || tries === 0) {
      client.destroy();
      return;
    }
    const upstream = connect({ host: backend.url.hostname, port: Number(backend.url.port), noDelay: true });
    const onError = (): void => connectTo(client, tries - 1);
    upstream.once("error", onError);
    upstream.once("connect", () => {
      upstream.off("error", onError);
      backend.connections++;
      own(upstream);
      client.pipe(upstream);
      upstream.pipe(client);
      client.once("close", () => upstream.destroy());
      upstream.once("close", () => client.destroy());
    });
  };
  const server = createServer({ noDelay: true }, (client) => {
    own(client);
    connectTo(client, backends.length);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));

  const asking = setInterval(() => {
    for (const backend of backends) {
      const request = get(new URL("/readyz", backend.url), { agent: false, timeout: 2_000 }, (response) => {
        response.resume();
        backend.isReady = response.statusCode === 200;
      });
      request.once("timeout", () => request.destroy());
      request.once("error", () => {
        backend.isReady = false;
      });
    }
  }, ASK_EVERY_MS);

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get connections() {
      return backends.map(({ connections }) => connections);
    },
    async close() {
      clearInterval(asking);
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
