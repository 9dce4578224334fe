/**
 * A pop race is one request for messages of several queues: the first of its pops that gets some wins, the others
 * are called off, and what they got is put back. Queues that come to match while it waits join it.
 */
import type { EmptyReason } from "../popping/empty-reason.ts";
import type { PopOutcome, PopRequest, Taken } from "../popping/pop.ts";
import type { PopHandle, Popper } from "../popping/popper.ts";
import type { Watch } from "../popping/queue-watch.ts";
import type { Request } from "./route.ts";

export interface PopRaceOptions {
  readonly popper: Popper;
  readonly giveBack: (taken: readonly Taken[], token: number) => void;
  /** What was finished at delivery, and is not delivered, is to be delivered again. */
  readonly unfinish: (taken: readonly Taken[]) => Promise<void>;
}

export interface Entrants {
  /** The most urgent first. */
  readonly queues: readonly string[];
  /** Where others may join: tells of them, and which of those found are for this request. */
  readonly joining?:
    | { readonly watch: Watch; choose(queues: readonly string[]): readonly string[] }
    | undefined;
  pop(queue: string, waitMs: number, hasJoined: boolean): PopRequest;
}

/** `leftMs`: until the request is to be answered; 0: at once. `reason`: why there would be nothing, without a queue. */
export async function racePops(
  options: PopRaceOptions,
  request: Request,
  entrants: Entrants,
  leftMs: () => number,
  reason: EmptyReason,
): Promise<PopOutcome> {
  const { queues, joining } = entrants;
  if (queues.length === 1 && !joining) return new PopRace(options, request, entrants).run(queues, leftMs());
  let outcome: PopOutcome = { status: "empty", reason };
  for (const queue of queues) {
    outcome = await new PopRace(options, request, entrants).run([queue], 0);
    if (outcome.status === "messages") return outcome;
  }
  const waitMs = leftMs();
  if (waitMs === 0 || reason === "paused" || (queues.length === 0 && !joining)) return outcome;
  return new PopRace(options, request, entrants).run(queues, waitMs);
}

class PopRace {
  readonly #options: PopRaceOptions;
  readonly #request: Request;
  readonly #entrants: Entrants;
  readonly #handles = new Map<string, PopHandle | undefined>();
  #open = 0;
  #isDecided = false;
  #deadline: NodeJS.Timeout | undefined;
  #resolve!: (outcome: PopOutcome) => void;
  #reject!: (error: Error) => void;

  constructor(options: PopRaceOptions, request: Request, entrants: Entrants) {
    this.#options = options;
    this.#request = request;
    this.#entrants = entrants;
  }

  run(queues: readonly string[], waitMs: number): Promise<PopOutcome> {
    const ended = new Promise<PopOutcome>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const endMs = performance.now() + waitMs;
    this.#request.onHangUp(() => {
      this.#decide({ status: "empty", reason: "timeout" }, (handle) => handle.hangUp());
    });
    const { joining } = this.#entrants;
    if (joining && waitMs > 0) {
      this.#deadline = setTimeout(() => this.#end("timeout"), waitMs);
      joining.watch.isAlone = queues.length === 0;
      joining.watch.listen({
        found: (found) => {
          for (const queue of joining.choose(found))
            if (!this.#isDecided && !this.#handles.has(queue))
              this.#start(queue, Math.max(1, endMs - performance.now()), true);
        },
        ended: (reason) => this.#end(reason),
      });
    }
    for (const queue of queues)
      if (!this.#isDecided && !this.#handles.has(queue)) this.#start(queue, waitMs, false);
    return ended;
  }

  #start(queue: string, waitMs: number, hasJoined: boolean): void {
    this.#open++;
    this.#handles.set(queue, undefined);
    const { watch } = this.#entrants.joining ?? {};
    if (watch) watch.isAlone = false;
    const request = this.#entrants.pop(queue, waitMs, hasJoined);
    this.#handles.set(
      queue,
      this.#options.popper.pop(request, (outcome) => this.#ended(request, outcome)),
    );
  }

  #ended(request: PopRequest, outcome: PopOutcome | Error): void {
    this.#open--;
    if (this.#isDecided) {
      if (!(outcome instanceof Error) && outcome.status === "messages") this.#putBack(request, outcome);
    } else if (outcome instanceof Error || outcome.status === "messages" || this.#open === 0)
      this.#decide(outcome, (handle) => handle.callOff());
  }

  #putBack({ autoAck }: PopRequest, { taken, token }: PopOutcome & { status: "messages" }): void {
    if (autoAck) void this.#options.unfinish(taken);
    else this.#options.giveBack(taken, token);
  }

  /** Without any pop of its own to say so. */
  #end(reason: EmptyReason): void {
    if (this.#open === 0) this.#decide({ status: "empty", reason }, () => undefined);
  }

  #decide(outcome: PopOutcome | Error, callOff: (handle: PopHandle) => void): void {
    if (this.#isDecided) return;
    this.#isDecided = true;
    clearTimeout(this.#deadline);
    if (outcome instanceof Error) this.#reject(outcome);
    else this.#resolve(outcome);
    if (this.#open === 0) return;
    // After this turn: the one that is being started now has no handle yet.
    setImmediate(() => {
      for (const handle of this.#handles.values()) if (handle) callOff(handle);
    });
  }
}
