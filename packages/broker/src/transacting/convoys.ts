/**
 * Plain transactions, which only push and finish messages, go together: many in one call and one commit, each of them whole
 * or not at all. Those that push to one and the same lane form a convoy: while its first waits for a connection, others
 * join, and their messages follow each other. Where one turns out not to be plain, nothing of it was done, and it has to
 * go alone.
 *
 *   go ──▶ a convoy waits at the lane ──▶ join it ─────────────────────────┐
 *     └──▶ take the lane's turn ──▶ prepare the messages ──▶ a new convoy ─┴─▶ one call with other convoys ──▶ turn ends
 */
import type { Batcher } from "../batching/batcher.ts";
import type { Lane, PendingMessage } from "../lanes/lane.ts";
import type { WindowStore } from "../lanes/window-store.ts";
import type { Keyring } from "../operations/encryption.ts";
import { ConnectionLostError, PostgresError } from "../postgres/errors.ts";
import { isSuspect, type LaneBatch, makeLaneBatch } from "../pushing/lane-batch.ts";
import { takeTurns, tryTakeTurn } from "../pushing/lane-turn.ts";
import { prepareMessages } from "../pushing/pusher.ts";
import type { OperationSpan } from "../tracing.ts";
import { Convoy, type FinishedRange, type PlainResult } from "./convoy.ts";
import type { TransactOperation, TransactOutcome } from "./transact-kind.ts";

export interface PlainTransaction {
  readonly messages: ReadonlyMap<Lane, readonly PendingMessage[]>;
  readonly finished: readonly FinishedRange[];
  readonly span: OperationSpan | undefined;
  /** It is committed. The lanes are still its own. */
  readonly committed: (batches: readonly LaneBatch[], result: NonNullable<PlainResult>) => void;
}

export interface ConvoysOptions {
  readonly windows: WindowStore;
  readonly keyring: Keyring;
  readonly transactions: Batcher<TransactOperation, TransactOutcome>;
}

export class Convoys {
  readonly #options: ConvoysOptions;
  /** Those that others may join. */
  readonly #waiting = new Map<Lane, Convoy>();

  constructor(options: ConvoysOptions) {
    this.#options = options;
  }

  /** Whether it was committed; if not, nothing of it was done. */
  async go(transaction: PlainTransaction): Promise<boolean> {
    const lanes = [...transaction.messages.keys()];
    if (lanes.length !== 1) return this.#lead(transaction, await takeTurns(lanes));
    const [lane] = lanes as [Lane];
    for (;;) {
      const joined = this.#join(transaction, lane);
      if (joined) return joined;
      const endTurn = tryTakeTurn(lane);
      if (endTurn) return this.#lead(transaction, endTurn, lane);
      await lane.turn;
    }
  }

  /** Undefined: no convoy waits there, or it has no room, or a message may be in the lane already. */
  #join(transaction: PlainTransaction, lane: Lane): Promise<boolean> | undefined {
    const convoy = this.#waiting.get(lane);
    if (!convoy || lane.alone > 0) return undefined;
    const messages = transaction.messages.get(lane)!;
    this.#seal(lane, messages);
    if (!convoy.hasRoomFor(messages)) return undefined;
    if (messages.some((message) => lane.window!.maybeHas(message.keyLow))) return undefined;
    return this.#board(convoy, transaction, [makeLaneBatch(lane, messages)]);
  }

  async #lead(transaction: PlainTransaction, endTurns: () => void, joinable?: Lane): Promise<boolean> {
    const batches: LaneBatch[] = [];
    try {
      for (const [lane, messages] of transaction.messages) {
        this.#seal(lane, messages);
        // Without a pause where none is needed: whoever waited for the turn, too, finds the convoy then.
        const left = isPrepared(lane, messages)
          ? messages
          : await prepareMessages(lane, messages, this.#options.windows);
        const batch = lane.gone ? undefined : makeLaneBatch(lane, left);
        if (batch) batches.push(batch);
        if (!batch || batch.messages.length + batch.twins.size < messages.length) {
          this.#withdraw(batches);
          return false;
        }
      }
      const convoy = new Convoy(() => joinable && this.#waiting.delete(joinable));
      const outcome = this.#board(convoy, transaction, batches);
      if (joinable) this.#waiting.set(joinable, convoy);
      await this.#send(convoy);
      return await outcome;
    } catch (error) {
      this.#withdraw(batches);
      throw error;
    } finally {
      endTurns();
    }
  }

  async #send(convoy: Convoy): Promise<void> {
    try {
      const results = (await this.#options.transactions.submit(convoy)) as PlainResult[];
      convoy.members.forEach((member, index) => {
        member.decided(results[index]);
      });
    } catch (error) {
      for (const member of convoy.members) member.failed(error as Error);
    } finally {
      convoy.depart();
    }
  }

  #board(
    convoy: Convoy,
    { finished, span, committed }: PlainTransaction,
    batches: readonly LaneBatch[],
  ): Promise<boolean> {
    const known = batches.map(({ lane }) => lane.window!.completeTo);
    return new Promise((resolve, reject) => {
      convoy.add({
        batches,
        finished,
        span,
        decided: (result) => {
          if (result) committed(batches, result);
          else this.#withdraw(batches);
          resolve(result !== undefined);
        },
        failed: (error) => {
          this.#withdraw(batches);
          if (error instanceof ConnectionLostError) {
            batches.forEach(({ messages }, index) => {
              for (const message of messages) message.doubtFrom = Math.min(message.doubtFrom, known[index]!);
            });
          }
          // What the database does not take may be the fault of any of the convoy: alone it is told why.
          if (error instanceof PostgresError) resolve(false);
          else reject(error);
        },
      });
    });
  }

  #seal(lane: Lane, messages: readonly PendingMessage[]): void {
    for (const message of messages) message.sealFor(lane, this.#options.keyring);
  }

  /** The messages are not stored, but their keys are in the windows. */
  #withdraw(batches: readonly LaneBatch[]): void {
    for (const { lane, messages } of batches) {
      this.#options.windows.drop(lane);
      for (const message of messages) message.inWindow = false;
    }
  }
}

const isPrepared = (lane: Lane, messages: readonly PendingMessage[]): boolean =>
  lane.window !== undefined && !messages.some((message) => isSuspect(lane, message));
