/** The proxy does to connections what tests ask of it, and nothing else. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "./moments.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

/** It answers every chunk with the same. */
let echo: Server;
let proxy: TcpProxy;
const peers = new Set<Socket>();

before(async () => {
  echo = createServer({ allowHalfOpen: true }, (socket) => {
    peers.add(socket);
    socket.on("error", () => undefined).on("close", () => peers.delete(socket));
    socket.on("data", (bytes) => socket.write(bytes)).on("end", () => socket.end());
  }).listen(0, "127.0.0.1");
  await once(echo, "listening");
  proxy = await startTcpProxy({ host: "127.0.0.1", port: (echo.address() as AddressInfo).port });
});

after(async () => {
  await proxy.close();
  echo.close();
});

interface TestClient {
  readonly socket: Socket;
  received: string;
  error: NodeJS.ErrnoException | undefined;
  isEnded: boolean;
}

async function connected(): Promise<TestClient> {
  const socket = connect({ port: proxy.port, host: "127.0.0.1", allowHalfOpen: true });
  const client: TestClient = { socket, received: "", error: undefined, isEnded: false };
  socket.setEncoding("utf8").on("data", (text: string) => {
    client.received += text;
  });
  socket.on("error", (error) => {
    client.error = error;
  });
  socket.on("end", () => {
    client.isEnded = true;
  });
  await once(socket, "connect");
  return client;
}

test("bytes pass both ways, and an end passes too", async () => {
  const client = await connected();
  client.socket.end("hello");
  await until("it came back", () => client.received === "hello" && client.isEnded);
  await until("the connection is forgotten", () => proxy.open === 0);
});

test("delayed bytes come in their order", async () => {
  const client = await connected();
  proxy.set({ kind: "delay", ms: 5, jitterMs: 50 }, "to client");
  for (const letter of "abcdefgh") {
    client.socket.write(letter);
    await sleep(2);
  }
  proxy.set({ kind: "pass" });
  client.socket.write("i");
  await until("all came back in order", () => client.received === "abcdefghi");
  client.socket.destroy();
});

test("what is held back comes when it passes again", async () => {
  const client = await connected();
  proxy.set({ kind: "hold" }, "to server");
  client.socket.write("held");
  await sleep(50);
  assert.equal(client.received, "");
  proxy.set({ kind: "pass" });
  await until("it came", () => client.received === "held");
  client.socket.destroy();
});

test("a connection that lost bytes is reset when it passes again, another is not", async () => {
  const [lossy, lucky] = [await connected(), await connected()];
  proxy.set({ kind: "drop" }, "to client");
  lossy.socket.write("lost");
  await sleep(50);
  proxy.set({ kind: "pass" });
  await until("it was reset", () => lossy.error?.code === "ECONNRESET");
  lucky.socket.write("there");
  await until("the other goes on", () => lucky.received === "there");
  lucky.socket.destroy();
});

test("a reset reaches both ends; a half-close only the client", async () => {
  await until("nobody is left", () => peers.size === 0);
  const halved = await connected();
  halved.socket.write("x");
  await until("it came back", () => halved.received === "x");
  proxy.cut("half-close");
  await until("the client heard the end", () => halved.isEnded);
  assert.equal(peers.size, 1);
  assert.equal(proxy.cut("reset"), 1);
  await until("the server lost it too", () => peers.size === 0);
});
