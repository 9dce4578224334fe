/** The hostile programme, and how one attack of it is run: with a well-behaved client beside it. */
import { setTimeout as sleep } from "node:timers/promises";
import { HttpClient } from "../support/http.ts";
import type { System } from "../support/system.ts";
import { type Attack, Notes, type Target } from "./attack.ts";
import { ackAttacks } from "./attacks/acks.ts";
import { bodyAttacks } from "./attacks/bodies.ts";
import { connectionAttacks } from "./attacks/connections.ts";
import { fuzzAttacks } from "./attacks/fuzz.ts";
import { nameAttacks } from "./attacks/names.ts";
import { readerAttacks } from "./attacks/readers.ts";
import { tokenAttacks } from "./attacks/tokens.ts";
import { ControlClient } from "./control-client.ts";
import { openHandles, rssMb, watchMemory } from "./process-figures.ts";
import { Random } from "./random.ts";

const CALM_MS = 20_000;

/** No attack: what the others are compared with. */
const calm: Attack = {
  id: "B00",
  what: "nothing",
  run: async ({ share }, notes) => {
    await sleep(CALM_MS * share);
    notes.saw("nothing", "nothing", true);
  },
};

export const PROGRAMME: readonly Attack[] = [
  calm,
  ...connectionAttacks,
  ...readerAttacks,
  ...bodyAttacks,
  ...nameAttacks,
  ...ackAttacks,
  ...tokenAttacks,
  ...fuzzAttacks,
].sort((a, b) => a.id.localeCompare(b.id));

export interface AttackResult {
  readonly attack: Attack;
  readonly notes: Notes;
  readonly control: ControlClient;
  /** Memory of the workers before, and at most meanwhile. */
  readonly rssMb: readonly [number, number];
}

// What a worker's caches and its share of bodies and answers come to, and what garbage collection leaves lying about.
const MEMORY_MB_MAX = 150;
const HANDLES_MORE_MAX = 5;
const HANDLES_PATIENCE_MS = 10_000;

export async function runAttack(
  attack: Attack,
  system: System,
  { seed, share }: { seed: number; share: number },
): Promise<AttackResult> {
  const notes = new Notes();
  const { broker } = system;
  const client = new HttpClient(broker.url);
  const control = new ControlClient(broker.url, `control-${attack.id}`);
  const port = Number(new URL(broker.url).port);
  const target: Target = { port, client, random: new Random(seed), share, system };
  await attack.prepare?.(target);
  const workers = broker.workerPids();
  const [memory, handles] = [rssMb(workers), openHandles(workers)];
  const memoryMost = watchMemory(workers);
  control.start();
  try {
    await attack.run(target, notes);
  } catch (error) {
    notes.problem(`the attack itself failed: ${(error as Error).stack}`);
  } finally {
    await control.stop();
    client.close();
  }
  const most = memoryMost();
  for (const error of control.errors) notes.problem(`the well-behaved client: ${error}`);
  if (broker.workerPids().join() !== workers.join()) notes.problem("a worker ended");
  if (control.requests === 0) notes.problem("the well-behaved client was never served");
  if (most - memory > (attack.memoryMbMax ?? MEMORY_MB_MAX))
    notes.problem(`memory grew from ${memory} to ${most} MB`);
  const left = await handlesLeft(workers, handles);
  if (left > 0) notes.problem(`${left} more files or connections are open than before`);
  return { attack, notes, control, rssMb: [memory, most] };
}

/** How many more handles there are than before, after a while; a few come and go with connections to the database. */
async function handlesLeft(workers: readonly number[], before: number): Promise<number> {
  const until = performance.now() + HANDLES_PATIENCE_MS;
  for (;;) {
    const more = openHandles(workers) - before;
    if (more <= HANDLES_MORE_MAX) return 0;
    if (performance.now() > until) return more;
    await sleep(100);
  }
}
