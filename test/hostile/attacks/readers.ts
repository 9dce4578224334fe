/** Attacks by not reading: large answers asked for, and left where they are. */
import type { Attack, Notes, Target } from "../attack.ts";
import { RawSocket } from "../raw-socket.ts";

const READERS = 50;
const MESSAGES = 20;
// A third more than the limit of an answer that makes no progress.
const CLOSED_MS_MAX = 60_000;

const readersOf = (share: number): number => Math.max(4, Math.round(READERS * share));

async function fill({ client, share }: Target): Promise<void> {
  const payload = "x".repeat(1024 ** 2);
  for (let index = 0; index < readersOf(share); index += 1) {
    for (let part = 0; part < 4; part += 1) {
      await client.push(
        Array.from({ length: MESSAGES / 4 }, () => ({
          queue: "read-slowly",
          partition: `p${index}`,
          payload,
        })),
      );
    }
  }
}

async function slowReaders({ port, client, share }: Target, notes: Notes): Promise<void> {
  const count = readersOf(share);
  const sockets = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const socket = await RawSocket.open(port);
      socket.socket.pause();
      socket.send(
        `GET /api/v1/pop/queue/read-slowly/partition/p${index}?batch=${MESSAGES} HTTP/1.1\r\nHost: q\r\n\r\n`,
      );
      return socket;
    }),
  );
  // In a short run they leave by themselves; in a whole one the broker has to end it.
  if (share < 1) {
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    for (const socket of sockets) socket.end();
  }
  const ends = performance.now() + CLOSED_MS_MAX;
  for (let index = 0; index < count; index += 1) {
    const { messages } = await client.pop("read-slowly", {
      partition: `p${index}`,
      batch: 1,
      wait: true,
      timeout: Math.max(1_000, Math.round(ends - performance.now())),
      autoAck: true,
    });
    notes.saw(
      "what a slow reader did not take",
      messages.length === 1 ? "cut, and delivered again" : "held",
      messages.length === 1,
    );
  }
  for (const socket of sockets) socket.end();
}

export const readerAttacks: readonly Attack[] = [
  {
    id: "B02",
    what: "clients that do not read the 20 MB that they asked for",
    prepare: fill,
    memoryMbMax: 200,
    run: slowReaders,
  },
];
