import assert from "node:assert/strict";
import { Socket } from "node:net";
import { test } from "node:test";
import { FormerHeads, readPlainRequest } from "../src/http/plain-request.ts";

const socket = new Socket();
const read = (text: string, bodyBytesMax = 1_000, formers = new FormerHeads()) =>
  readPlainRequest(Buffer.from(text, "latin1"), socket, bodyBytesMax, formers);

test("a plain request is read with its headers, its body, and what came behind it", () => {
  const request = read(
    'POST /api/v1/push?a=b HTTP/1.1\r\nHost: q\r\nContent-Length: 4\r\nAUTHORIZATION: \t Bearer x \r\n\r\n{"a"GET',
  )!;
  assert.equal(request.method, "POST");
  assert.equal(request.url, "/api/v1/push?a=b");
  assert.deepEqual(request.headers, { host: "q", "content-length": "4", authorization: "Bearer x" });
  assert.deepEqual(request.headersDistinct.authorization, ["Bearer x"]);
  assert.equal(request.rawHeaders.length, 6);
  assert.equal(request.body.toString(), '{"a"');
  assert.equal(request.rest!.toString(), "GET");
});

test("a request without a body has none", () => {
  const request = read("GET /api/v1/pop/queue/q HTTP/1.1\r\nHost: q\r\nConnection: Keep-Alive\r\n\r\n")!;
  assert.equal(request.body.length, 0);
  assert.equal(request.rest, undefined);
  assert.deepEqual(request.headersDistinct, {});
});

const POP = "GET /api/v1/pop/queue/q HTTP/1.1\r\nHost: q\r\n\r\n";
const ack = (body: string, length = String(body.length), tail = "X: 2"): string =>
  `POST /api/v1/ack HTTP/1.1\r\nHost: 22\r\nContent-Length: ${length}\r\n${tail}\r\n\r\n${body}`;

test("a head that a client repeats is the former one, also where it pops and acks by turns", () => {
  const formers = new FormerHeads();
  const pop = read(POP, 1_000, formers)!;
  const acked = read(ack("{}"), 1_000, formers)!;
  assert.equal(read(POP, 1_000, formers)!.head, pop.head);
  assert.equal(read(ack("[]"), 1_000, formers)!.head, acked.head);
});

test("where only the length is another, the line is the former one, and everything is read as by itself", () => {
  const formers = new FormerHeads();
  const first = read(ack("{}"), 1_000, formers)!;
  for (const text of [ack("x".repeat(22)), ack("x".repeat(222)), ack("2"), ack(""), ack("{}", "02")]) {
    const request = read(text, 1_000, formers)!;
    const alone = read(text)!;
    assert.equal(request.head.line, first.head.line);
    assert.deepEqual(request.head, alone.head);
    assert.deepEqual([request.body.toString(), request.rest], [alone.body.toString(), alone.rest]);
  }
});

test("where more than the length is another, it is read anew", () => {
  const others = [
    ack("{}", "2", "Authorization: 2"),
    ack("{}", "2\r\nY: 2"),
    ack("{}", "2\r\nExpect: 100-continue"),
    ack("{}", "2\r\nContent-Length: 3"),
    ack("{}", "+2"),
    ack("{}", " 2 "),
    ack("{}", ""),
    ack("{}", "2, 2"),
    ack("{}", "000000002"),
    ack("{}").replace("Host: 22", "Host: 2"),
    ack("{}").replace("Content-Length", "Content-length"),
    ack("{}").replace("X: 2\r\n", ""),
  ];
  for (const former of [ack("{}"), ack("x".repeat(100)), ...others]) {
    for (const text of others) {
      const formers = new FormerHeads();
      read(former, 1_000, formers);
      const request = read(text, 1_000, formers);
      const alone = read(text);
      assert.deepEqual(request?.head, alone?.head, `${JSON.stringify(text)} after ${JSON.stringify(former)}`);
    }
  }
});

const line = "POST /api/v1/push HTTP/1.1\r\n";
const NOT_PLAIN: Record<string, string> = {
  "a head that is not whole": `${line}Host: q\r\n`,
  "a body that is not whole": `${line}Host: q\r\nContent-Length: 3\r\n\r\n{}`,
  "another method": "DELETE /api/v1/ack HTTP/1.1\r\nHost: q\r\n\r\n",
  "another path": "GET /livez HTTP/1.1\r\nHost: q\r\n\r\n",
  "another version": "POST /api/v1/push HTTP/1.0\r\nHost: q\r\n\r\n",
  "a path with a space": "POST /api/v1/push x HTTP/1.1\r\nHost: q\r\n\r\n",
  "no Host": `${line}A: b\r\n\r\n`,
  "no header at all": `${line}\r\n`,
  "two Hosts": `${line}Host: q\r\nhost: r\r\n\r\n`,
  "two lengths": `${line}Host: q\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}`,
  "a length with a sign": `${line}Host: q\r\nContent-Length: +2\r\n\r\n{}`,
  "a length in hex": `${line}Host: q\r\nContent-Length: 0x2\r\n\r\n{}`,
  "an empty length": `${line}Host: q\r\nContent-Length:\r\n\r\n`,
  "a length of several": `${line}Host: q\r\nContent-Length: 2, 2\r\n\r\n{}`,
  "a coding": `${line}Host: q\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  "a coding beside a length": `${line}Host: q\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  "an expectation": `${line}Host: q\r\nExpect: 100-continue\r\n\r\n`,
  "an upgrade": `${line}Host: q\r\nUpgrade: websocket\r\n\r\n`,
  "a last request": `${line}Host: q\r\nConnection: close\r\n\r\n`,
  "several wishes for the connection": `${line}Host: q\r\nConnection: keep-alive, upgrade\r\n\r\n`,
  "a folded header": `${line}Host: q\r\nA: b\r\n c\r\n\r\n`,
  "a space before the colon": `${line}Host : q\r\n\r\n`,
  "no name": `${line}Host: q\r\n: b\r\n\r\n`,
  "no colon": `${line}Host: q\r\nA\r\n\r\n`,
  "a NUL": `${line}Host: q\r\nA: \0\r\n\r\n`,
  "a bare line feed": `${line}Host: q\nA: b\r\n\r\n`,
  "a bare carriage return": `${line}Host: q\rA: b\r\n\r\n`,
  "a byte that is no ASCII": `${line}Host: q\r\nA: \xe4\r\n\r\n`,
  "no HTTP": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
  "a head of more than 8 KB": `${line}Host: q\r\nA: ${"b".repeat(9_000)}\r\n\r\n`,
  "an empty line first": `\r\n${line}Host: q\r\n\r\n`,
};
for (const [what, text] of Object.entries(NOT_PLAIN)) {
  test(`${what} makes a request that is not plain`, () => assert.equal(read(text), undefined));
}

test("a body that is too large makes a request that is not plain", () => {
  const text = `${line}Host: q\r\nContent-Length: 11\r\n\r\n0123456789a`;
  assert.equal(read(text, 10), undefined);
  assert.equal(read(text, 11)!.body.length, 11);
});
