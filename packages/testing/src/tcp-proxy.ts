/**
 * A TCP proxy stands between a client and a server and does what networks do: it passes bytes, delays them,
 * holds them back without a word, loses them, resets connections or closes one half of them; each direction
 * by itself.
 */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * `hold`: nothing arrives until it passes again, as when packets are lost and sent anew. `drop`: bytes are
 * gone; a connection that lost some is reset when it passes again.
 */
export type Way =
  | { readonly kind: "pass" }
  | { readonly kind: "delay"; readonly ms: number; readonly jitterMs: number }
  | { readonly kind: "hold" }
  | { readonly kind: "drop" };

export type Direction = "to server" | "to client";

/** What an observer may do to one connection. */
export interface Connection {
  /** Since the start, from 1. */
  readonly number: number;
  /** Both ends get a reset. */
  reset(): void;
  /** Both ends get an orderly end. */
  end(): void;
}

export interface Observer {
  /** Sees bytes before they are passed on; true: they are not passed on. */
  readonly seen?: (direction: Direction, bytes: Buffer, connection: Connection) => boolean | undefined;
}

export interface TcpProxy {
  readonly port: number;
  /** The URL of a server, through the proxy. */
  urlOf(url: string): string;
  /** Connections accepted since the start, and those open now. */
  readonly accepted: number;
  readonly open: number;
  set(way: Way, direction?: Direction): void;
  /** Ends all connections: by a reset, or by closing one half and leaving the other open. */
  cut(how: "reset" | "half-close"): number;
  close(): Promise<void>;
}

const PASS: Way = { kind: "pass" };

export async function startTcpProxy(
  target: { readonly host: string; readonly port: number },
  observe: (connection: Connection) => Observer = () => ({}),
  random: () => number = Math.random,
): Promise<TcpProxy> {
  const ways: Record<Direction, Way> = { "to server": PASS, "to client": PASS };
  const links = new Set<Link>();
  let accepted = 0;
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
    const upstream = connect({ ...target, noDelay: true, allowHalfOpen: true });
    accepted++;
    const link = new Link(accepted, client, upstream, ways, random, observe);
    links.add(link);
    link.onClose = () => links.delete(link);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;

  return {
    port,
    urlOf: (url) => {
      const through = new URL(url);
      through.hostname = "127.0.0.1";
      through.port = String(port);
      return through.href;
    },
    get accepted() {
      return accepted;
    },
    get open() {
      return links.size;
    },
    set: (way, direction) => {
      for (const each of ["to server", "to client"] as const)
        if (direction === undefined || direction === each) ways[each] = way;
      for (const link of [...links]) link.changed();
    },
    cut: (how) => {
      const cut = [...links];
      for (const link of cut) {
        if (how === "reset") link.reset();
        else link.halfClose();
      }
      return cut.length;
    },
    close: async () => {
      for (const link of [...links]) link.end();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** One connection: two sockets, and in each direction the chunks that are on their way. */
class Link implements Connection {
  readonly number: number;
  onClose: () => void = () => undefined;
  readonly #sockets: Readonly<Record<Direction, { from: Socket; to: Socket }>>;
  readonly #ways: Readonly<Record<Direction, Way>>;
  readonly #random: () => number;
  readonly #held: Record<Direction, Buffer[]> = { "to server": [], "to client": [] };
  readonly #delayed: Record<Direction, { bytes: Buffer; atMs: number }[]> = {
    "to server": [],
    "to client": [],
  };
  #hasLost = false;
  #isOver = false;

  constructor(
    number: number,
    client: Socket,
    upstream: Socket,
    ways: Readonly<Record<Direction, Way>>,
    random: () => number,
    observe: (connection: Connection) => Observer,
  ) {
    this.number = number;
    this.#ways = ways;
    this.#random = random;
    this.#sockets = {
      "to server": { from: client, to: upstream },
      "to client": { from: upstream, to: client },
    };
    const { seen } = observe(this);
    for (const direction of ["to server", "to client"] as const) {
      const { from, to } = this.#sockets[direction];
      from.on("data", (bytes: Buffer) => {
        if (!seen?.(direction, bytes, this)) this.#pass(direction, bytes);
      });
      from.on("end", () => to.end());
      from.on("error", () => this.reset());
      from.on("close", () => this.#closed(from, to));
    }
  }

  reset(): void {
    this.#isOver = true;
    for (const { from } of Object.values(this.#sockets)) from.resetAndDestroy();
  }

  end(): void {
    this.#isOver = true;
    for (const { from } of Object.values(this.#sockets)) from.destroy();
  }

  /** The client hears that the server is done, and the server hears nothing. */
  halfClose(): void {
    this.#sockets["to client"].to.end();
  }

  /** The way of a direction is another one now. */
  changed(): void {
    const isPassing = Object.values(this.#ways).every((way) => way.kind !== "drop");
    if (this.#hasLost && isPassing) {
      this.reset();
      return;
    }
    for (const direction of ["to server", "to client"] as const) {
      if (this.#ways[direction].kind === "hold") continue;
      for (const bytes of this.#held[direction].splice(0)) this.#pass(direction, bytes);
    }
  }

  #pass(direction: Direction, bytes: Buffer): void {
    const way = this.#ways[direction];
    const { to } = this.#sockets[direction];
    if (way.kind === "hold") this.#held[direction].push(bytes);
    else if (way.kind === "drop") this.#hasLost = true;
    else if (way.kind === "delay" || this.#delayed[direction].length > 0) {
      const delayMs = way.kind === "delay" ? way.ms + this.#random() * way.jitterMs : 0;
      const queue = this.#delayed[direction];
      queue.push({ bytes, atMs: performance.now() + delayMs });
      if (queue.length === 1) this.#release(direction);
    } else if (to.writable) to.write(bytes);
  }

  /** Bytes never overtake each other: the first one's time decides. */
  #release(direction: Direction): void {
    const queue = this.#delayed[direction];
    const { to } = this.#sockets[direction];
    for (let first = queue[0]; first; first = queue[0]) {
      const leftMs = first.atMs - performance.now();
      if (leftMs > 0) {
        setTimeout(() => this.#release(direction), leftMs);
        return;
      }
      queue.shift();
      if (to.writable) to.write(first.bytes);
    }
  }

  #closed(from: Socket, to: Socket): void {
    if (!this.#isOver && !from.readableEnded) to.resetAndDestroy();
    if (from.destroyed && to.destroyed) this.onClose();
  }
}
