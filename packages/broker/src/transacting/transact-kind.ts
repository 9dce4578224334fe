/**
 * Transact as a kind of batched operation. Convoys of plain transactions share calls; a transaction that is not plain is a
 * call of its own.
 */
import type { BatchKind } from "../batching/batcher.ts";
import type { Session } from "../postgres/session.ts";
import { type TransactResult, transact, transactMany } from "../postgres/statements.ts";
import { appendParameters, sealedLanes } from "../pushing/append-kind.ts";
import type { OperationSpan } from "../tracing.ts";
import { Convoy, type Member, type PlainResult } from "./convoy.ts";

export interface LoneTransaction {
  readonly parameters: readonly unknown[];
  readonly span: OperationSpan | undefined;
}

export type TransactOperation = Convoy | LoneTransaction;
export type TransactOutcome = PlainResult[] | TransactResult;

export const transactKind: BatchKind<TransactOperation, TransactOutcome> = {
  name: "transaction",
  repeatable: false,
  traced: {
    procedure: "transact",
    spans: (operation) =>
      operation instanceof Convoy ? operation.members.map((member) => member.span) : [operation.span],
  },
  weight: (operation) => (operation instanceof Convoy ? operation.weight : Infinity),
  async run(session: Session, operations: readonly TransactOperation[]) {
    const [lone] = operations;
    if (!(lone instanceof Convoy)) return session.run(transact, lone!.parameters);
    const convoys = operations.filter((operation) => operation instanceof Convoy);
    for (const convoy of convoys) convoy.depart();
    const results = await runTogether(
      session,
      convoys.flatMap((convoy) => convoy.members),
    );
    return convoys.map(({ members }) => results.splice(0, members.length));
  },
};

async function runTogether(session: Session, members: readonly Member[]): Promise<PlainResult[]> {
  const lanes = members.flatMap(({ batches }, of) => batches.map((batch, at) => ({ batch, of, at })));
  const ranges = members.flatMap(({ finished }, of) => finished.map((range, at) => ({ range, of, at })));
  const batches = lanes.map(({ batch }) => batch);
  const [partitions, known, counts, ...segments] = appendParameters(batches);
  const rows = await session.run(transactMany, [
    members.length,
    lanes.map(({ of }) => of + 1),
    partitions,
    known,
    counts,
    sealedLanes(batches),
    ...segments,
    ranges.map(({ of }) => of + 1),
    ranges.map(({ range }) => range.delivered.lane.id),
    ranges.map(({ range }) => range.delivered.groupId),
    ranges.map(({ range }) => range.delivered.token),
    ranges.map(({ range }) => range.from),
    ranges.map(({ range }) => range.to),
  ]);
  const results = members.map((): Filling | undefined => undefined);
  for (const row of rows) {
    const { of, at } = row.lane === null ? ranges[row.lease!]! : lanes[row.lane]!;
    results[of] ??= { appended: [], settled: [] };
    const { appended, settled } = results[of];
    if (row.lane === null) settled[at] = { committed: row.committed!, released: row.released! };
    else appended[at] = { atOffset: row.atOffset!, createdAtUs: row.createdAtUs! };
  }
  return results;
}

/** A result whose parts are told in any order. */
interface Filling {
  readonly appended: { atOffset: number; createdAtUs: number }[];
  readonly settled: { committed: number; released: boolean }[];
}
