/** The hostile programme, and how one attack of it is run: with a well-behaved client beside it. */
import { readFileSync } from "node:fs";
import type { BrokerProcess } from "../support/broker.ts";
import { HttpClient } from "../support/http.ts";
import { type Attack, Notes } from "./attack.ts";
import { ackAttacks } from "./attacks/acks.ts";
import { bodyAttacks } from "./attacks/bodies.ts";
import { connectionAttacks } from "./attacks/connections.ts";
import { fuzzAttacks } from "./attacks/fuzz.ts";
import { nameAttacks } from "./attacks/names.ts";
import { ControlClient } from "./control-client.ts";
import { Random } from "./random.ts";

export const PROGRAMME: readonly Attack[] = [
  ...connectionAttacks,
  ...bodyAttacks,
  ...nameAttacks,
  ...ackAttacks,
  ...fuzzAttacks,
].sort((a, b) => a.id.localeCompare(b.id));

export interface AttackResult {
  readonly attack: Attack;
  readonly notes: Notes;
  readonly controlRequests: number;
  readonly rssMb: number;
}

export async function runAttack(
  attack: Attack,
  broker: BrokerProcess,
  { seed, share }: { seed: number; share: number },
): Promise<AttackResult> {
  const notes = new Notes();
  const client = new HttpClient(broker.url);
  const control = new ControlClient(broker.url, `control-${attack.id}`);
  const workers = broker.workerPids();
  control.start();
  try {
    const port = Number(new URL(broker.url).port);
    await attack.run({ port, client, random: new Random(seed), share }, notes);
  } catch (error) {
    notes.problem(`the attack itself failed: ${(error as Error).stack}`);
  } finally {
    await control.stop();
    client.close();
  }
  for (const error of control.errors) notes.problem(`the well-behaved client: ${error}`);
  if (broker.workerPids().join() !== workers.join()) notes.problem("a worker ended");
  if (control.requests === 0) notes.problem("the well-behaved client was never served");
  return { attack, notes, controlRequests: control.requests, rssMb: rssMb(workers) };
}

function rssMb(pids: readonly number[]): number {
  const kb = pids.map((pid) => {
    try {
      return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
    } catch {
      return 0;
    }
  });
  return Math.round(kb.reduce((sum, each) => sum + each, 0) / 1024);
}
