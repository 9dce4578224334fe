/** The client's own HTTP: answers in every shape and in pieces, and connections that are used again or not. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Abort } from "../src/transport/abort.ts";
import { AnswerReader } from "../src/transport/answer-reader.ts";
import { runtimeFetch } from "../src/transport/runtime-fetch.ts";
import { CERTIFICATE, KEY } from "./localhost-certificate.ts";

const concat = (parts: readonly Uint8Array[]) => Buffer.concat(parts);
const answer = (...lines: string[]): string => lines.join("\r\n");

interface Shape {
  readonly what: string;
  readonly bytes: string;
  readonly method?: string;
  readonly status?: number;
  readonly text: string;
  readonly isKept: boolean;
  /** It is whole only when the connection ends. */
  readonly ends?: boolean;
}

const SHAPES: readonly Shape[] = [
  {
    what: "a length",
    bytes: answer("HTTP/1.1 200 OK", "Content-Length: 8", "X-Other: a:b", "", "ü € 1"),
    text: "ü € 1",
    isKept: true,
  },
  { what: "nothing", bytes: answer("HTTP/1.1 200 OK", "content-length: 0", "", ""), text: "", isKept: true },
  {
    what: "a length that is said twice",
    bytes: answer("HTTP/1.1 200 OK", "content-length: 2", "content-length:2", "", "ok"),
    text: "ok",
    isKept: true,
  },
  {
    what: "no reason",
    bytes: answer("HTTP/1.1 503", "content-length: 1", "", "x"),
    status: 503,
    text: "x",
    isKept: true,
  },
  {
    what: "a last word",
    bytes: answer("HTTP/1.1 200 OK", "Connection: Close", "content-length: 2", "", "ok"),
    text: "ok",
    isKept: false,
  },
  {
    what: "an old server",
    bytes: answer("HTTP/1.0 200 OK", "content-length: 2", "", "ok"),
    text: "ok",
    isKept: false,
  },
  {
    what: "an old server that stays",
    bytes: answer("HTTP/1.0 200 OK", "connection: keep-alive", "content-length: 2", "", "ok"),
    text: "ok",
    isKept: true,
  },
  {
    what: "chunks",
    bytes: answer(
      "HTTP/1.1 200 OK",
      "Transfer-Encoding: chunked",
      "",
      "3",
      "abc",
      "C",
      "\r\n0\r\n\r\nü...",
      "0",
      "",
      "",
    ),
    text: "abc\r\n0\r\n\r\nü...",
    isKept: true,
  },
  {
    what: "chunks with an extension and a trailer",
    bytes: answer(
      "HTTP/1.1 200 OK",
      "transfer-encoding: Chunked",
      "",
      "2;a=b",
      "ok",
      "000",
      "x-sum: 1",
      "",
      "",
    ),
    text: "ok",
    isKept: true,
  },
  {
    what: "an answer before the answer",
    bytes: answer(
      "HTTP/1.1 100 Continue",
      "",
      "HTTP/1.1 103 Hints",
      "link: </a>",
      "",
      "HTTP/1.1 200 OK",
      "content-length: 2",
      "",
      "ok",
    ),
    text: "ok",
    isKept: true,
  },
  {
    what: "a HEAD, which has the length of what it leaves out",
    bytes: answer("HTTP/1.1 200 OK", "content-length: 70", "", ""),
    method: "HEAD",
    text: "",
    isKept: true,
  },
  {
    what: "no content",
    bytes: answer("HTTP/1.1 204 No Content", "", ""),
    status: 204,
    text: "",
    isKept: true,
  },
  {
    what: "whatever comes until the end",
    bytes: answer("HTTP/1.1 200 OK", "content-type: text/plain", "", "until here"),
    text: "until here",
    isKept: false,
    ends: true,
  },
  {
    what: "more than it says",
    bytes: answer("HTTP/1.1 200 OK", "content-length: 2", "", "ok!"),
    text: "ok",
    isKept: false,
  },
  {
    what: "more than its chunks",
    bytes: answer("HTTP/1.1 200 OK", "transfer-encoding: chunked", "", "2", "ok", "0", "", "!"),
    text: "ok",
    isKept: false,
  },
];

test("an answer is read in whatever pieces it comes", () => {
  for (const { what, bytes: text, method = "GET", status = 200, text: expected, isKept, ends } of SHAPES) {
    const bytes = Buffer.from(text);
    const cuts = [
      [bytes],
      [...bytes].map((byte) => Buffer.from([byte])),
      ...Array.from(bytes, (_, at) => [bytes.subarray(0, at), bytes.subarray(at)]),
    ];
    for (const pieces of cuts) {
      const reader = new AnswerReader(method, concat);
      for (const piece of pieces) {
        // Where more comes than belongs to it, it is whole before.
        if (isKept || ends) assert.ok(!reader.isWhole, what);
        reader.receive(piece);
      }
      if (ends) {
        assert.ok(!reader.isWhole, what);
        reader.end();
      }
      assert.ok(reader.isWhole, what);
      assert.deepEqual([reader.head.status, reader.text(), reader.isKept], [status, expected, isKept], what);
    }
  }
});

test("what is not an answer, or could be read in two ways, is an error", () => {
  const wrong: Record<string, string> = {
    "another protocol": "SSH-2.0-OpenSSH\r\n\r\n",
    "another version": answer("HTTP/2 200", "", ""),
    "a status of two digits": answer("HTTP/1.1 20 OK", "", ""),
    "a change of protocol": answer("HTTP/1.1 101 Switching", "upgrade: x", "", ""),
    "a length and chunks": answer(
      "HTTP/1.1 200 OK",
      "content-length: 2",
      "transfer-encoding: chunked",
      "",
      "",
    ),
    "two lengths": answer("HTTP/1.1 200 OK", "content-length: 2", "content-length: 3", "", ""),
    "a list of lengths": answer("HTTP/1.1 200 OK", "content-length: 2, 2", "", ""),
    "a negative length": answer("HTTP/1.1 200 OK", "content-length: -1", "", ""),
    "another encoding": answer("HTTP/1.1 200 OK", "transfer-encoding: gzip, chunked", "", ""),
    "a folded header": answer("HTTP/1.1 200 OK", "content-length: 2", " and: more", "", "ok"),
    "a header without a name": answer("HTTP/1.1 200 OK", ": 2", "", "ok"),
    "a line that is no header": answer("HTTP/1.1 200 OK", "content-length", "", "ok"),
    "a chunk of no size": answer("HTTP/1.1 200 OK", "transfer-encoding: chunked", "", "x", ""),
    "a chunk longer than it says": answer("HTTP/1.1 200 OK", "transfer-encoding: chunked", "", "1", "ab", ""),
    "a chunk with half a line end": answer("HTTP/1.1 200 OK", "transfer-encoding: chunked", "", "1\na", ""),
    "a head without end": `HTTP/1.1 200 OK\r\nx: ${"y".repeat(70_000)}`,
    "a long head": answer("HTTP/1.1 200 OK", `x: ${"y".repeat(70_000)}`, "", ""),
    "a chunk's head without end": answer(
      "HTTP/1.1 200 OK",
      "transfer-encoding: chunked",
      "",
      "1;".repeat(5_000),
    ),
  };
  for (const [what, text] of Object.entries(wrong))
    assert.throws(() => new AnswerReader("GET", concat).receive(Buffer.from(text)), Error, what);
});

interface Peer {
  readonly server: Server;
  readonly url: string;
  /** In the order of their arrival. */
  readonly sockets: Socket[];
}

const peers: Peer[] = [];
after(() => {
  for (const { server, sockets } of peers) {
    server.close();
    for (const socket of sockets) socket.destroy();
  }
});

/** Answers each piece that arrives on a connection, knowing how many arrived before it. */
async function startPeer(respond: (socket: Socket, request: string, count: number) => void): Promise<Peer> {
  const sockets: Socket[] = [];
  let count = 0;
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => respond(socket, bytes.toString(), count++));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const peer = { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets };
  peers.push(peer);
  return peer;
}

const OK = answer("HTTP/1.1 200 OK", "content-length: 2", "", "ok");
const ABORT = new URL("../src/transport/abort.js", import.meta.url).href;

const get = async (url: string, abort = new Abort()): Promise<string> =>
  (await runtimeFetch(url, { method: "GET", headers: {}, abort })).text();

test("a connection is used again, the one that was used last first", async () => {
  const { url, sockets } = await startPeer((socket) => socket.write(OK));
  await Promise.all([get(url), get(url)]);
  assert.equal(sockets.length, 2);
  const used: number[] = [];
  for (const [index, socket] of sockets.entries()) socket.on("data", () => used.push(index));
  for (let count = 0; count < 5; count++) assert.equal(await get(`${url}/a`), "ok");
  assert.equal(sockets.length, 2);
  assert.equal(new Set(used).size, 1);
});

test("a connection is not used again when the server ends it, or says or sends what nobody asked for", async () => {
  const closings: Record<string, (socket: Socket) => void> = {
    "it says so": (socket) =>
      socket.write(answer("HTTP/1.1 200 OK", "connection: close", "content-length: 2", "", "ok")),
    "it ends it with the answer": (socket) => socket.end(OK),
    "it goes until the end": (socket) => socket.end(answer("HTTP/1.1 200 OK", "", "ok")),
    "it sends more": (socket) => socket.write(`${OK}more`),
    "it sends more later": (socket) =>
      socket.write(OK, () => setImmediate(() => socket.write("HTTP/1.1 408 Timeout\r\n\r\n"))),
  };
  for (const [what, respond] of Object.entries(closings)) {
    const { url, sockets } = await startPeer(respond);
    assert.equal(await get(url), "ok", what);
    await once(sockets[0]!, "close");
    assert.equal(await get(url), "ok", what);
    assert.equal(sockets.length, 2, what);
  }
});

test("a connection that is idle is given up after a while, one that waits for its answer is not", async () => {
  let answerLate: () => void = () => undefined;
  const { url, sockets } = await startPeer((socket, request) => {
    if (request.startsWith("GET /late")) answerLate = () => void socket.write(OK);
    else socket.write(OK);
  });
  const late = get(`${url}/late`);
  assert.equal(await get(url), "ok");
  const [waits, idle] = sockets as [Socket, Socket];
  await once(idle, "close");
  assert.ok(!waits.destroyed);
  answerLate();
  assert.equal(await late, "ok");
  await once(waits, "close");
  assert.equal(await get(url), "ok");
  assert.equal(sockets.length, 3);
});

test("an answer that comes before the whole request was read is an answer, and ends the connection", async () => {
  const early = answer("HTTP/1.1 413 Too Large", "content-length: 2", "", "no");
  const { url, sockets } = await startPeer((socket, _request, count) => {
    if (count === 0) socket.pause().write(early);
    else socket.write(OK);
  });
  const body = "x".repeat(32 * 1024 * 1024);
  const abort = new Abort();
  const answered = await runtimeFetch(url, { method: "POST", headers: {}, body, abort });
  assert.equal(answered.status, 413);
  assert.equal(await get(url), "ok");
  assert.equal(sockets.length, 2);
});

test("whoever aborts a request closes its connection, and no other", async () => {
  const { url, sockets } = await startPeer((socket, request) => {
    if (!request.startsWith("GET /silent")) socket.write(OK);
  });
  const abort = new Abort();
  const silent = get(`${url}/silent`, abort);
  const failed = assert.rejects(silent, TypeError);
  assert.equal(await get(url), "ok");
  const closed = once(sockets[0]!, "close");
  abort.abort(new Error("no longer wanted"));
  await Promise.all([failed, closed]);
  assert.equal(await get(url), "ok");
  assert.equal(sockets.length, 2);
  await assert.rejects(get(url, abort), TypeError);
  assert.equal(await get(url), "ok");
  assert.equal(sockets.length, 2);
});

test("a request is as HTTP wants it, and nothing can be written into its head", async () => {
  let seen = "";
  const { url } = await startPeer((socket, request) => {
    seen = request;
    socket.write(OK);
  });
  const abort = new Abort();
  await runtimeFetch(`${url}/a/../b?c=d`, { method: "POST", headers: { "x-a": "b" }, body: "ü", abort });
  const { host } = new URL(url);
  assert.equal(
    seen,
    answer("POST /a/../b?c=d HTTP/1.1", `host: ${host}`, "x-a: b", "content-length: 2", "", "ü"),
  );
  await runtimeFetch(`${url}/ü b`, { method: "PUT", headers: {}, abort });
  assert.equal(seen, answer("PUT /%C3%BC%20b HTTP/1.1", `host: ${host}`, "content-length: 0", "", ""));
  const odd = {
    "X-A": "b",
    "Transfer-Encoding": "chunked",
    "Content-Length": "9",
    "x-a": "c",
    Host: "other",
  };
  await runtimeFetch(url, { method: "GET", headers: odd, abort });
  assert.equal(seen, answer("GET / HTTP/1.1", "host: other", "x-a: c", "", ""));
  seen = "";
  for (const headers of [{ "x-a": "b\r\nx-c: d" }, { "x a": "b" }, { "x-a": "€" }, { "": "b" }])
    await assert.rejects(runtimeFetch(url, { method: "GET", headers, abort }), TypeError);
  assert.equal(seen, "");
});

test("a connection that is idle does not keep a program running", () => {
  const client = new URL("../src/transport/runtime-fetch.js", import.meta.url).href;
  const program = `
    const { runtimeFetch } = await import(${JSON.stringify(client)});
    const { Abort } = await import(${JSON.stringify(ABORT)});
    const { createServer } = await import("node:net");
    let isOpen = false;
    const server = createServer((socket) => {
      isOpen = true;
      socket.unref();
      socket.on("close", () => { isOpen = false; });
      socket.on("data", () => socket.write(${JSON.stringify(OK)}));
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    server.unref();
    const url = "http://127.0.0.1:" + server.address().port;
    await runtimeFetch(url, { method: "GET", headers: {}, abort: new Abort() });
    process.on("exit", () => console.log("ended while it is", isOpen ? "open" : "closed"));`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    encoding: "utf8",
  });
  assert.equal(stdout.trim(), "ended while it is open", stderr);
});

test("over TLS a server is asked for its certificate, by name and by address", async () => {
  const server = createSecureServer({ cert: CERTIFICATE, key: KEY }, (_request, response) =>
    response.end("ok"),
  );
  const folder = mkdtempSync(join(tmpdir(), "queen-client-"));
  try {
    server.listen(0);
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const trusted = join(folder, "trusted.pem");
    writeFileSync(trusted, CERTIFICATE);
    const ask = async (host: string, environment: Record<string, string>): Promise<string> => {
      const client = new URL("../src/transport/runtime-fetch.js", import.meta.url).href;
      const program = `
        const { runtimeFetch } = await import(${JSON.stringify(client)});
        const { Abort } = await import(${JSON.stringify(ABORT)});
        const init = { method: "GET", headers: {}, abort: new Abort() };
        const fetchTwice = async () => {
          await (await runtimeFetch("https://${host}:${port}/", init)).text();
          return (await runtimeFetch("https://${host}:${port}/", init)).text();
        };
        console.log(await fetchTwice().catch((error) => error.cause.code));`;
      const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
        env: { ...process.env, ...environment },
      });
      let output = "";
      child.stdout.on("data", (bytes) => {
        output += bytes;
      });
      await once(child, "close");
      return output.trim();
    };
    const trust = { NODE_EXTRA_CA_CERTS: trusted };
    const asked = [
      ask("localhost", trust),
      ask("127.0.0.1", trust),
      ask("127.0.0.2", trust),
      ask("localhost", {}),
    ];
    assert.deepEqual(await Promise.all(asked), [
      "ok",
      "ok",
      "ERR_TLS_CERT_ALTNAME_INVALID",
      "DEPTH_ZERO_SELF_SIGNED_CERT",
    ]);
  } finally {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  }
});
