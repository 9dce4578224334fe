/**
 * The HTTP floor is a server that reads a push and answers a fixed body of the right shape, and does nothing else.
 * What a broker in one `node:http` process can reach at most is what this reaches. Its argument is the number of
 * messages in a push.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const batch = Number(process.argv[2]);
const ANSWER = Buffer.from(
  JSON.stringify(
    Array.from({ length: batch }, (_, index) => ({
      index,
      status: "queued",
      transaction_id: "00000000-0000-7000-8000-000000000000",
      message_id: "00000000-0000-8001-8000-000000000000",
      partition_id: "00000000-0000-8002-8000-000000000000",
      trace_id: null,
      queueName: "bench",
    })),
  ),
);

const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on("data", (part: Buffer) => parts.push(part));
  request.on("end", () => {
    if (parts.length > 1) Buffer.concat(parts);
    response.writeHead(201, { "Content-Type": "application/json", "Content-Length": ANSWER.length });
    response.end(ANSWER);
  });
});

server.listen(0, "127.0.0.1", () => {
  process.send?.({ port: (server.address() as AddressInfo).port });
});
// The parent's end, however it came, is this server's end.
process.once("disconnect", () => process.exit(0));
process.once("SIGTERM", () => process.exit(0));
process.on("SIGINT", () => undefined);
