/** A server that answers as a test says, and remembers what it was asked. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
}

export type Respond = (asked: Asked, response: ServerResponse) => void;

export interface FakeBroker {
  readonly url: string;
  readonly asked: Asked[];
  respond: Respond;
  stop(): Promise<void>;
}

export const json = (response: ServerResponse, status: number, body: unknown, headers = {}): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
};

export async function startFakeBroker(respond: Respond): Promise<FakeBroker> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const asked = {
      method: request.method!,
      path: request.url!,
      headers: request.headers,
      body: text === "" ? null : JSON.parse(text),
    };
    broker.asked.push(asked);
    broker.respond(asked, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const broker: FakeBroker = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: [],
    respond,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return broker;
}
