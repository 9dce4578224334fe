/** A TCP connection to the broker that sends exactly these bytes, be they HTTP or not. */
import { connect, type Socket } from "node:net";

export interface Exchange {
  readonly received: string;
  readonly closed: boolean;
  /** The statuses of all answers, in their order. */
  readonly statuses: readonly number[];
}

export class RawSocket {
  readonly socket: Socket;
  #received = Buffer.alloc(0);
  #closed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk) => {
      this.#received = Buffer.concat([this.#received, chunk]);
    });
    socket.on("close", () => {
      this.#closed = true;
    });
    socket.on("error", () => {}); // a reset is an answer, too
  }

  static open(port: number): Promise<RawSocket> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new RawSocket(socket));
      });
    });
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  get received(): string {
    return this.#received.toString("latin1");
  }

  send(bytes: string | Buffer): void {
    if (!this.socket.destroyed) this.socket.write(bytes as Buffer);
  }

  /** Waits until so many answers came, or the other side closed, or time is over. */
  async answers(count: number, msMax: number): Promise<Exchange> {
    const until = performance.now() + msMax;
    while (!this.#closed && statusesIn(this.received).length < count && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return { received: this.received, closed: this.#closed, statuses: statusesIn(this.received) };
  }

  async waitForClose(msMax: number): Promise<boolean> {
    const until = performance.now() + msMax;
    while (!this.#closed && performance.now() < until)
      await new Promise((resolve) => setTimeout(resolve, 20));
    return this.#closed;
  }

  end(): void {
    this.socket.destroy();
  }
}

const statusesIn = (text: string): number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));

/** Sends bytes on a connection of their own, and shows what came back. */
export async function exchange(
  port: number,
  bytes: string | Buffer,
  count = 1,
  msMax = 5_000,
): Promise<Exchange> {
  const raw = await RawSocket.open(port);
  try {
    raw.send(bytes);
    return await raw.answers(count, msMax);
  } finally {
    raw.end();
  }
}
