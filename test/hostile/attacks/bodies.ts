/** Attacks with bodies: too large, too deep, no JSON, odd JSON, wrong types, wrong counts. */
import type { Attack, Notes, Target } from "../attack.ts";
import { NOT_JSON, ODD_PAYLOADS } from "../odd-json.ts";
import { exchange, RawSocket } from "../raw-socket.ts";

const BODY_ROUTES = [
  "/api/v1/push",
  "/api/v1/ack",
  "/api/v1/ack/batch",
  "/api/v1/transaction",
  "/api/v1/configure",
  "/api/v1/dlq/requeue",
  "/api/v1/dlq/purge",
];

// Linux lets the buffers of a fast connection grow to some 40 MB.
const KERNEL_BYTES_MAX = 64 * 1024 ** 2;

async function malformed({ client, random, share }: Target, notes: Notes): Promise<void> {
  for (const path of BODY_ROUTES) {
    for (const text of NOT_JSON) {
      const { status, json } = await client.request("POST", path, text);
      notes.saw(
        `${path} with ${JSON.stringify(String(text)).slice(0, 60)}`,
        status,
        status === 400 &&
          /byte \d+|Empty|UTF-8|byte order mark|required|must|may|Say which/.test(json?.error),
      );
    }
  }
  const good = '{"items":[{"queue":"mutated","partition":"p","payload":{"a":[1,"two",null,true,-3.5e2]}}]}';
  for (let round = 0; round < 500 * share; round += 1) {
    const at = random.below(good.length);
    const cut = random.below(3);
    const put = String.fromCharCode(random.below(0x80));
    const text = good.slice(0, at) + (cut === 0 ? "" : put) + good.slice(at + (cut === 2 ? 0 : 1));
    let isJson = true;
    try {
      JSON.parse(text);
    } catch {
      isJson = false;
    }
    const { status } = await client.request("POST", "/api/v1/push", text);
    notes.saw(text, status, isJson ? status === 201 || status === 400 : status === 400);
  }
}

async function deep({ client }: Target, notes: Notes): Promise<void> {
  const nested = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;
  for (const depth of [511, 512, 513, 5_000, 1_000_000]) {
    const body = `{"items":[{"queue":"deep","payload":${nested(depth)}}]}`;
    const { status } = await client.request("POST", "/api/v1/push", body);
    notes.saw(`depth ${depth}`, status, status === (depth <= 512 ? 201 : 400));
  }
  for (const path of BODY_ROUTES.slice(1)) {
    const { status } = await client.request("POST", path, `{"a":${nested(1_000_000)}}`);
    notes.saw(`${path} deep`, status, status === 400);
  }
}

async function sizes({ client, port }: Target, notes: Notes): Promise<void> {
  const limit = 64 * 1024 ** 2;
  const declared = await exchange(
    port,
    `POST /api/v1/push HTTP/1.1\r\nHost: q\r\nContent-Length: ${limit + 1}\r\n\r\n{`,
  );
  notes.saw("one byte over the limit", declared.statuses[0] ?? "closed", declared.statuses[0] === 413);
  const chunked = await RawSocket.open(port);
  chunked.send("POST /api/v1/push HTTP/1.1\r\nHost: q\r\nTransfer-Encoding: chunked\r\n\r\n");
  const chunk = `100000\r\n${" ".repeat(0x100000)}\r\n`;
  for (let sent = 0; sent < 1024 && !chunked.isClosed; sent += 1) {
    chunked.send(chunk);
    while (chunked.socket.writableLength > 0x200000 && !chunked.isClosed)
      await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const { statuses } = await chunked.answers(1, 10_000);
  notes.saw("chunks without end", statuses[0] ?? "closed", statuses[0] === 413);
  const read = chunked.socket.bytesWritten - chunked.socket.writableLength;
  // Beside the limit, what the operating system holds on both sides.
  notes.saw(
    "read of it",
    read < limit + KERNEL_BYTES_MAX ? "the limit" : `${read} bytes`,
    read < limit + KERNEL_BYTES_MAX,
  );
  chunked.end();
  for (const header of ["Content-Length: -1", "Content-Length: abc", "Content-Length: 5, 6"]) {
    const { statuses: answered, closed } = await exchange(
      port,
      `POST /api/v1/push HTTP/1.1\r\nHost: q\r\n${header}\r\n\r\n{}`,
    );
    notes.saw(header, answered[0] ?? "closed", closed || answered[0] === 400);
  }
  const zipped = await client.request("POST", "/api/v1/push", Buffer.from("1f8b080000", "hex"), {
    headers: { "content-encoding": "gzip" },
  });
  notes.saw("gzip", zipped.status, zipped.status === 415);
}

async function counts({ client }: Target, notes: Notes): Promise<void> {
  const items = (count: number): unknown => ({
    items: Array.from({ length: count }, (_, payload) => ({ queue: "counts", payload })),
  });
  for (const [count, expected] of [
    [0, 201],
    [1, 201],
    [10_000, 201],
    [10_001, 400],
  ] as const) {
    const { status } = await client.request("POST", "/api/v1/push", items(count));
    notes.saw(`${count} items`, status, status === expected);
  }
  for (const value of ["-5", "0", "1000000000", "abc", "1e3", "", "9".repeat(30)]) {
    for (const name of ["batch", "partitions", "timeout"]) {
      const { status } = await client.request("GET", `/api/v1/pop/queue/none?${name}=${value}`);
      const isNumber = /^[+-]?\d{0,15}$/.test(value);
      notes.saw(`${name}=${value}`, status, status === (isNumber ? 204 : 400));
    }
  }
}

async function fidelity({ client }: Target, notes: Notes): Promise<void> {
  const queue = "fidelity-under-attack";
  for (const [index, payload] of ODD_PAYLOADS.entries()) {
    const partition = `p${index}`;
    const body = `{"items":[{"queue":"${queue}","partition":"${partition}","payload":${payload}}]}`;
    const { status } = await client.request("POST", "/api/v1/push", body);
    const popped = await client.pop(queue, { partition, autoAck: true });
    const isSame = popped.text.includes(`"data":${payload},"`);
    notes.saw(payload.slice(0, 60), isSame ? "same bytes" : `changed (${status})`, status === 201 && isSame);
  }
  notes.saw("prototype", "polluted" in {} ? "polluted" : "clean", !("polluted" in {}));
}

async function wrongTypes({ client, random, share }: Target, notes: Notes): Promise<void> {
  const values = [null, true, false, 0, -1, 1.5, "", "x", [], {}, [[]], { a: 1 }, "x".repeat(300), "\u0001"];
  const bodies: Record<string, () => unknown> = {
    "/api/v1/push": () => ({
      items: [
        {
          queue: "typed",
          partition: random.pick(values),
          transactionId: random.pick(values),
          traceId: random.pick(values),
          payload: 1,
        },
      ],
    }),
    "/api/v1/ack": () => ({
      transactionId: random.pick(values),
      partitionId: random.pick(values),
      status: random.pick(values),
      leaseId: random.pick(values),
      consumerGroup: random.pick(values),
      error: random.pick(values),
    }),
    "/api/v1/ack/batch": () => ({
      acknowledgments: random.pick([...values, [random.pick(values)]]),
      consumerGroup: random.pick(values),
    }),
    "/api/v1/transaction": () => ({
      operations: [
        {
          type: random.pick(["push", "ack", ...values]),
          items: [{ queue: random.pick(values) }],
          transactionId: random.pick(values),
          partitionId: random.pick(values),
        },
      ],
      requiredLeases: random.pick(values),
    }),
    "/api/v1/configure": () => ({
      queue: random.pick(values),
      namespace: random.pick(values),
      options: random.pick([
        ...values,
        { leaseTime: random.pick(values), retryLimit: random.pick(values), ttl: random.pick(values) },
      ]),
      mode: random.pick(values),
    }),
    "/api/v1/dlq/requeue": () => ({
      ids: random.pick(values),
      limit: random.pick(values),
      queue: random.pick(values),
      from: random.pick(values),
    }),
  };
  for (let round = 0; round < 2_000 * share; round += 1) {
    const path = random.pick(Object.keys(bodies));
    const body = bodies[path]!();
    const { status, text } = await client.request("POST", path, body);
    notes.saw(`${path} ${JSON.stringify(body)}`, status, status < 500 && !text.includes('"buffered"'));
  }
}

async function poisonAmongGood({ client, share }: Target, notes: Notes): Promise<void> {
  for (let round = 0; round < 100 * share; round += 1) {
    const poison = client.request(
      "POST",
      "/api/v1/push",
      '{"items":[{"queue":"merged","traceId":7,"payload":1}]}',
    );
    const good = Array.from({ length: 99 }, (_, index) =>
      client.request("POST", "/api/v1/push", {
        items: [{ queue: "merged", partition: `p${index}`, payload: round }],
      }),
    );
    const bad = await poison;
    notes.saw("the poison", bad.status, bad.status === 400);
    for (const { status } of await Promise.all(good)) notes.saw("beside the poison", status, status === 201);
  }
}

export const bodyAttacks: readonly Attack[] = [
  { id: "B03", what: "bodies over the limit, without end, of no length, compressed", run: sizes },
  { id: "B04", what: "texts that are nearly JSON", run: malformed },
  { id: "B05", what: "JSON nested too deep", run: deep },
  { id: "B06", what: "batches and numbers at and beyond their limits", run: counts },
  { id: "B07-B10", what: "odd JSON comes back byte for byte", run: fidelity },
  { id: "B14", what: "one bad push among a hundred that are merged", run: poisonAmongGood },
  { id: "B15", what: "wrong types in every field", run: wrongTypes },
];
