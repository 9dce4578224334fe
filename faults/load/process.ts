/**
 * A process of load clients: all producers, all consumers, or all pipes. It gets its job from the rig, tells
 * twice a second how far it is, and ends when the rig says that it is over.
 */
import { setMaxListeners } from "node:events";
import { consume } from "./consumer.ts";
import { pipe } from "./pipe.ts";
import { produce } from "./producer.ts";
import { type LoadShape, QUEUE, SOURCE } from "./shape.ts";

export type Role = "producers" | "consumers" | "pipes";

export interface Job {
  readonly role: Role;
  readonly shape: LoadShape;
  readonly urls: readonly string[];
  readonly seed: number;
  readonly historyFolder: string;
}

export interface Figures {
  stored: number;
  delivered: number;
  acked: number;
}

export type ToClients =
  | { readonly kind: "job"; readonly job: Job }
  | { readonly kind: "enough" }
  | { readonly kind: "over" };
export type FromClients = { readonly kind: "figures"; readonly figures: Figures };

const TELL_EVERY_MS = 200;

const enough = new AbortController();
const over = new AbortController();
let isDone = false;
setMaxListeners(0, over.signal); // many consumers may wait for it at once

async function work(job: Job): Promise<void> {
  const { role, shape } = job;
  const figures: Figures = { stored: 0, delivered: 0, acked: 0 };
  const own = { ...job, enough: enough.signal, over: over.signal, figures };
  const tell = (): boolean => process.send!({ kind: "figures", figures } satisfies FromClients);
  const telling = setInterval(tell, TELL_EVERY_MS);
  const clients: Promise<void>[] = [];
  if (role === "producers") {
    for (let index = 0; index < shape.producers; index++)
      clients.push(produce(QUEUE, `producer-${index}`, index, own));
    if (shape.pipes > 0) clients.push(produce(SOURCE, "pipe-producer", shape.producers, own));
  } else if (role === "consumers") {
    for (const [place, group] of shape.groups.entries())
      for (let index = 0; index < shape.consumersPerGroup; index++)
        clients.push(consume(group, place * shape.consumersPerGroup + index, own));
  } else for (let index = 0; index < shape.pipes; index++) clients.push(pipe(index, own));
  await Promise.all(clients);
  clearInterval(telling);
  tell();
}

process.on("message", (message: ToClients) => {
  if (message.kind === "enough") enough.abort();
  else if (message.kind === "over") {
    enough.abort();
    over.abort();
  } else
    work(message.job).then(
      () => {
        isDone = true;
        process.disconnect();
      },
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
});
// The rig is gone: nobody will read what would be written.
process.on("disconnect", () => {
  if (!isDone) process.exit(1);
});
