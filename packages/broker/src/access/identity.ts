/** Who sends a request, and what he may do. */
import { BrokerError } from "@queen/protocol";
import { type Access, MAY, type Role } from "./roles.ts";

export interface IdentityFacts {
  /** Stamped on messages that he pushes; null: nobody in particular. */
  readonly subject: string | null;
  /** What the audit log calls him. */
  readonly name: string;
  readonly roles: readonly Role[];
  /** Patterns of queue names with `*` for anything; undefined: every queue. */
  readonly queues: readonly string[] | undefined;
}

export class Identity implements IdentityFacts {
  readonly subject: string | null;
  readonly name: string;
  readonly roles: readonly Role[];
  readonly queues: readonly string[] | undefined;
  readonly #accesses: ReadonlySet<Access>;

  constructor({ subject, name, roles, queues }: IdentityFacts) {
    this.subject = subject;
    this.name = name;
    this.roles = roles;
    this.queues = queues;
    this.#accesses = new Set(roles.flatMap((role) => MAY[role]));
  }

  /** Whether he has shown who he is. */
  get isKnown(): boolean {
    return this !== ANYBODY && this !== NOBODY;
  }

  /** Whether he may use only some queues. */
  get isLimited(): boolean {
    return this.queues !== undefined;
  }

  may(access: Access): boolean {
    return access === "open" || this.#accesses.has(access);
  }

  mayUse(queue: string): boolean {
    return this.queues === undefined || this.queues.some((pattern) => isMatch(pattern, queue));
  }

  check(access: Access): void {
    if (this.may(access)) return;
    throw new BrokerError("FORBIDDEN", "Insufficient permissions");
  }

  checkQueue(queue: string): void {
    if (this.mayUse(queue)) return;
    throw new BrokerError("FORBIDDEN", `Insufficient permissions: not for queue "${queue.slice(0, 80)}"`);
  }
}

/** Never looks back further than to the last star, so no pattern makes it slow. */
function isMatch(pattern: string, name: string): boolean {
  let [at, of] = [0, 0];
  let star = -1;
  let starAt = 0;
  while (at < name.length) {
    if (of < pattern.length && pattern[of] === "*") {
      star = of++;
      starAt = at;
    } else if (of < pattern.length && pattern[of] === name[at]) {
      of++;
      at++;
    } else if (star >= 0) {
      of = star + 1;
      at = ++starAt;
    } else return false;
  }
  while (pattern[of] === "*") of++;
  return of === pattern.length;
}

/** Everybody, where no authentication is configured. */
export const ANYBODY = new Identity({ subject: null, name: "anybody", roles: ["admin"], queues: undefined });

/** Who has shown nothing yet. */
export const NOBODY = new Identity({ subject: null, name: "nobody", roles: [], queues: undefined });
