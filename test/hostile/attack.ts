/** What an attack is: something sent to a live broker, and what must come back. */
import type { HttpClient } from "../support/http.ts";
import type { System } from "../support/system.ts";
import type { Random } from "./random.ts";

export interface Target {
  readonly port: number;
  readonly client: HttpClient;
  readonly random: Random;
  /** From 0 to 1: how much of the programme is run; tests take a small part. */
  readonly share: number;
  /** The database behind the broker, and more brokers on it. */
  readonly system: System;
}

export interface Attack {
  /** As in the fault programme: B01 to B20. */
  readonly id: string;
  readonly what: string;
  /** What must be there before; memory is compared with what it was after this. */
  readonly prepare?: (target: Target) => Promise<void>;
  /** How much more memory the broker may take meanwhile, where what is sent is large. */
  readonly memoryMbMax?: number;
  readonly run: (target: Target, notes: Notes) => Promise<void>;
}

/** What was tried, what came back, and what should not have. */
export class Notes {
  readonly answers = new Map<string, number>();
  readonly problems: string[] = [];
  tried = 0;

  /** Notes an answer; one that was not expected is a problem. */
  saw(what: string, answer: string | number, expected: boolean): void {
    this.tried += 1;
    const key = String(answer);
    this.answers.set(key, (this.answers.get(key) ?? 0) + 1);
    if (!expected) this.problem(`${what}: ${answer}`);
  }

  problem(text: string): void {
    if (this.problems.length < 20) this.problems.push(text.slice(0, 300));
  }
}
