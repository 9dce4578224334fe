import assert from "node:assert/strict";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import type { PlainAnswer } from "../src/http/plain-answer.ts";
import { PlainConnections, type PlainConnectionsOptions } from "../src/http/plain-connections.ts";
import type { PlainRequest } from "../src/http/plain-request.ts";
import { until } from "./until.ts";

interface Served {
  readonly request: PlainRequest;
  readonly answer: PlainAnswer;
}

/** A server whose requests the test answers. */
async function start(context: TestContext, options: Partial<PlainConnectionsOptions> = {}) {
  const served: Served[] = [];
  const handedOver: Socket[] = [];
  let bytesHandedOver = "";
  const connections = new PlainConnections({
    bodyBytesMax: 1_000,
    keepAliveMs: 60_000,
    firstRequestMs: 60_000,
    reasons: { 200: "OK" },
    receive: (request, answer) => served.push({ request, answer }),
    handOver: (socket) => {
      handedOver.push(socket);
      socket.on("data", (bytes) => {
        bytesHandedOver += bytes.toString("latin1");
      });
    },
    ...options,
  });
  const server = createServer({ allowHalfOpen: true }, (socket) => connections.accept(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  let received = "";
  let isClosed = false;
  client.on("data", (bytes) => {
    received += bytes.toString("latin1");
  });
  client.on("close", () => {
    isClosed = true;
  });
  client.on("error", () => undefined);
  context.after(() => {
    client.destroy();
    connections.closeAllConnections();
    for (const socket of handedOver) socket.destroy();
    server.close();
  });
  return {
    connections,
    served,
    handedOver,
    client,
    received: () => received,
    bytesHandedOver: () => bytesHandedOver,
    isClosed: () => isClosed,
  };
}

const POP = "GET /api/v1/pop HTTP/1.1\r\nHost: q\r\n\r\n";
const answer = ({ answer }: Served, body: string, headers: string[] = []): void => {
  answer.writeHead(200, [...headers, "Content-Length", String(body.length)]);
  answer.end(body);
};

test("an answer that could not be written ends with its connection, not as if it had left", async (context) => {
  const { served, client } = await start(context);
  client.write(POP);
  await until("the request is served", () => served.length === 1);
  const { request } = served[0]!;
  request.socket.pause(); // so that the write is the first to see it
  let wasBroken: boolean | undefined;
  served[0]!.answer.once("close", () => {
    wasBroken = request.socket.destroyed;
  });
  client.resetAndDestroy();
  await until("the answer is over", () => {
    if (wasBroken === undefined) answer(served[0]!, "x");
    return wasBroken !== undefined;
  });
  assert.equal(wasBroken, true);
});

test("requests that came together are served one after the other", async (context) => {
  const { served, client, received } = await start(context);
  client.write(POP + POP);
  await until("the request is served", () => served.length === 1);
  client.write(POP);
  await until("the third has come", () => served[0]!.request.socket.isPaused());
  assert.equal(served.length, 1);
  for (const index of [0, 1, 2]) {
    await until("the request is served", () => served.length === index + 1);
    answer(served[index]!, `body ${index}`);
  }
  await until("all are answered", () => received().includes("body 2"));
  assert.deepEqual(received().match(/body \d/g), ["body 0", "body 1", "body 2"]);
});

test("a connection goes over with all bytes that were not served, and is not known here any more", async (context) => {
  const { connections, served, handedOver, client, bytesHandedOver } = await start(context);
  client.write(`${POP}GET /livez HTTP/1.1\r\nHo`);
  await until("the request is served", () => served.length === 1);
  assert.equal(handedOver.length, 0);
  answer(served[0]!, "x");
  await until("it goes over", () => handedOver.length === 1);
  client.write("st: q\r\n\r\n");
  await until("all bytes are there", () => bytesHandedOver().endsWith("\r\n\r\n"));
  assert.equal(bytesHandedOver(), "GET /livez HTTP/1.1\r\nHost: q\r\n\r\n");
  connections.closeAllConnections();
  assert.equal(handedOver[0]!.destroyed, false);
});

test("idle connections are closed when asked to, one that is served is not, and a last answer closes its own", async (context) => {
  const one = await start(context);
  one.client.write(POP);
  await until("the request is served", () => one.served.length === 1);
  one.connections.closeIdleConnections();
  answer(one.served[0]!, "last", ["Connection", "close"]);
  await until("it is closed", one.isClosed);
  assert.match(one.received(), /Connection: close\r\n[\s\S]*last$/);
  assert.doesNotMatch(one.received(), /keep-alive/i);
  const two = await start(context);
  two.client.write(POP);
  await until("the request is served", () => two.served.length === 1);
  answer(two.served[0]!, "first");
  await until("it is answered", () => two.received().endsWith("first"));
  two.connections.closeIdleConnections();
  await until("it is closed", two.isClosed);
});

test("a connection without a request is closed after a while, one that is being served is not", async (context) => {
  const silent = await start(context, { firstRequestMs: 20 });
  await until("it is closed", silent.isClosed);
  const used = await start(context);
  used.client.write(POP);
  await until("the request is served", () => used.served.length === 1);
  assert.equal(used.served[0]!.request.socket.timeout, 61_000, "as long as it says, and a second");
  used.served[0]!.request.socket.emit("timeout");
  answer(used.served[0]!, "x");
  await until("it is answered", () => used.received().endsWith("x"));
  used.served[0]!.request.socket.emit("timeout");
  await until("it is closed", used.isClosed);
});

test("what comes behind a last answer is not served", async (context) => {
  const { served, client, isClosed } = await start(context);
  client.write(POP);
  await until("the request is served", () => served.length === 1);
  const { socket } = served[0]!.request;
  served[0]!.answer.once("close", () => process.nextTick(() => socket.emit("data", Buffer.from(POP))));
  answer(served[0]!, "last", ["Connection", "close"]);
  await until("it is closed", isClosed);
  assert.equal(served.length, 1);
});
