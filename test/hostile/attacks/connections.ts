/** Attacks on the connection: slow clients, request smuggling, pipelining, odd methods, many long polls. */
import type { Attack, Notes, Target } from "../attack.ts";
import { exchange, RawSocket } from "../raw-socket.ts";

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

// A third more than the limits are: a busy machine may be late.
const HEADERS_MS_MAX = 20_000;
const BODY_MS_MAX = 40_000;

async function slow({ port, share }: Target, notes: Notes): Promise<void> {
  const count = Math.max(20, Math.round(1_000 * share));
  const sockets = await Promise.all(Array.from({ length: count }, () => RawSocket.open(port)));
  const isHeader = (index: number): boolean => index % 2 === 0;
  for (const [index, socket] of sockets.entries()) {
    socket.send(
      isHeader(index)
        ? "GET /api/v1/pop/queue/slow HTTP/1.1\r\nHost: q\r\nX-A: "
        : "POST /api/v1/push HTTP/1.1\r\nHost: q\r\nContent-Length: 1000\r\n\r\n{",
    );
  }
  const drip = setInterval(() => {
    for (const [index, socket] of sockets.entries()) {
      if (!socket.isClosed && !(isHeader(index) && drips % 10 > 0)) socket.send("a");
    }
    drips += 1;
  }, 1_000);
  let drips = 0;
  const closed = await Promise.all(
    sockets.map((socket, index) => socket.waitForClose(isHeader(index) ? HEADERS_MS_MAX : BODY_MS_MAX)),
  );
  clearInterval(drip);
  for (const [index, isClosed] of closed.entries()) {
    const what = isHeader(index) ? "headers" : "a body";
    notes.saw(`slow ${what}`, `${what} ${isClosed ? "closed" : "still open"}`, isClosed);
  }
  for (const socket of sockets) socket.end();
}

const SMUGGLED = "GET /api/v1/smuggled HTTP/1.1\r\nHost: q\r\n\r\n";

async function smuggling({ port }: Target, notes: Notes): Promise<void> {
  const head = "POST /api/v1/push HTTP/1.1\r\nHost: q\r\n";
  const chunked = `0\r\n\r\n${SMUGGLED}`;
  const cases: Record<string, string> = {
    "length and chunked": `${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`,
    "chunked twice": `${head}Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n${chunked}`,
    "no real coding": `${head}Transfer-Encoding: xchunked\r\n\r\n${chunked}`,
    "length with a sign": `${head}Content-Length: +5\r\n\r\n{}   ${SMUGGLED}`,
    "length in hex": `${head}Content-Length: 0x5\r\n\r\n{}   ${SMUGGLED}`,
    "two lengths": `${head}Content-Length: 2\r\nContent-Length: 5\r\n\r\n{}   ${SMUGGLED}`,
    "folded header": `${head}X-A: b\r\n Content-Length: 5\r\n\r\n${SMUGGLED}`,
    "space before the colon": `${head}Content-Length : 2\r\n\r\n{}${SMUGGLED}`,
    "NUL in a header": `${head}X-A: a\0b\r\n\r\n${SMUGGLED}`,
    "17 KB of header": `GET / HTTP/1.1\r\nHost: q\r\nX-A: ${"a".repeat(17_000)}\r\n\r\n`,
    "2,000 headers": `GET /nothing HTTP/1.1\r\nHost: q\r\n${"X-A: b\r\n".repeat(2_000)}\r\n`,
    "no HTTP at all": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a bare line feed": `${head}X-A: b\nContent-Length: 5\r\n\r\n{}   ${SMUGGLED}`,
  };
  for (const [what, bytes] of Object.entries(cases)) {
    const { statuses, received, closed } = await exchange(port, Buffer.from(bytes, "latin1"), 2, 1_000);
    const wasRead = received.includes("/api/v1/smuggled");
    const refused = statuses.length === 0 ? closed : statuses[0]! >= 400 && statuses[0]! < 500;
    notes.saw(what, wasRead ? "a smuggled request" : statuses.join(" ") || "closed", refused && !wasRead);
  }
}

async function pipelining({ port, client }: Target, notes: Notes): Promise<void> {
  const { statuses } = await exchange(
    port,
    "GET /livez HTTP/1.1\r\nHost: q\r\n\r\n".repeat(1_000),
    1_000,
    20_000,
  );
  notes.saw(
    "1,000 requests in one write",
    statuses.length,
    statuses.length === 1_000 && statuses.every((each) => each === 200),
  );
  for (const method of ["TRACE", "CONNECT", "PATCH", "PROPFIND", "BREW", "get"]) {
    const { statuses: answered, closed } = await exchange(
      port,
      `${method} /api/v1/push HTTP/1.1\r\nHost: q\r\n\r\n`,
      1,
      2_000,
    );
    notes.saw(method, answered[0] ?? "closed", closed || (answered[0]! >= 400 && answered[0]! < 500));
  }
  const absolute = await exchange(port, "GET http://elsewhere/livez HTTP/1.1\r\nHost: q\r\n\r\n");
  notes.saw(
    "absolute form",
    absolute.statuses[0] ?? "closed",
    absolute.statuses[0] === 404 || absolute.statuses[0] === 200,
  );
  const old = await exchange(port, "GET /livez HTTP/1.0\r\n\r\n");
  notes.saw("HTTP/1.0", old.statuses[0] ?? "closed", old.statuses[0] === 200);
  const upgrade = await exchange(
    port,
    "GET /livez HTTP/1.1\r\nHost: q\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    1,
    2_000,
  );
  notes.saw("upgrade", upgrade.statuses[0] ?? "closed", upgrade.statuses[0] !== 101);
  for (let round = 0; round < 50; round += 1) {
    const socket = await RawSocket.open(port);
    socket.send('POST /api/v1/push HTTP/1.1\r\nHost: q\r\nContent-Length: 500\r\n\r\n{"items":[');
    await pause(2);
    socket.end();
  }
  const head = await client.request("HEAD", "/health");
  notes.saw("HEAD /health", head.status, head.status === 200 && head.text === "");
  const pop = await client.request("HEAD", "/api/v1/pop/queue/q");
  notes.saw("HEAD of a pop", pop.status, pop.status === 405);
}

async function longPolls({ port, client, share }: Target, notes: Notes): Promise<void> {
  const count = Math.max(50, Math.round(5_000 * share));
  const sockets: RawSocket[] = [];
  for (let index = 0; index < count; index += 1) {
    const socket = await RawSocket.open(port);
    socket.send(
      `GET /api/v1/pop/queue/cut-${index % 50}?wait=true&timeout=60000 HTTP/1.1\r\nHost: q\r\n\r\n`,
    );
    sockets.push(socket);
  }
  const parkedAre = async (isRight: (parked: number) => boolean): Promise<number> => {
    for (let round = 0; ; round += 1) {
      const { json } = await client.request("GET", "/metrics");
      if (isRight(json.pops.parked) || round > 300) return json.pops.parked;
      await pause(100);
    }
  };
  const parked = await parkedAre((each) => each >= count);
  notes.saw("parked", parked >= count ? "all" : parked, parked >= count);
  for (const socket of sockets) socket.end();
  const left = await parkedAre((each) => each === 0);
  notes.saw("after they were cut", left === 0 ? "none parked" : left, left === 0);
  await client.push(Array.from({ length: 50 }, (_, index) => ({ queue: `cut-${index}`, payload: index })));
  for (let index = 0; index < 50; index += 1) {
    const { messages } = await client.pop(`cut-${index}`, { wait: true, timeout: 5_000, autoAck: true });
    notes.saw("a message for a queue whose pops were cut", messages.length, messages[0]?.data === index);
  }
}

export const connectionAttacks: readonly Attack[] = [
  { id: "B01", what: "clients that send a byte now and then", run: slow },
  { id: "B18", what: "two requests in one, told by a header", run: smuggling },
  { id: "B19", what: "pipelining, odd methods, requests cut in the middle", run: pipelining },
  { id: "B20", what: "thousands of long polls, cut at once", run: longPolls },
];
