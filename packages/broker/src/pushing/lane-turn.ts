/**
 * A lane's turn: whoever appends to a lane holds it, so that one worker has one append in flight per lane.
 * Whoever needs several turns takes them in the order of the lanes' ids, so that nobody waits in a circle.
 */
import type { Lane } from "../lanes/lane.ts";

/** Undefined: somebody else has it; `lane.turn` is when it ends. */
export function tryTakeTurn(lane: Lane): (() => void) | undefined {
  if (lane.turn) return undefined;
  let end = (): void => {};
  lane.turn = new Promise((resolve) => {
    end = () => {
      lane.turn = undefined;
      resolve();
    };
  });
  return end;
}

export async function takeTurn(lane: Lane): Promise<() => void> {
  for (;;) {
    const end = tryTakeTurn(lane);
    if (end) return end;
    await lane.turn;
  }
}

export async function takeTurns(lanes: readonly Lane[]): Promise<() => void> {
  const ends: (() => void)[] = [];
  for (const lane of [...new Set(lanes)].sort((a, b) => a.id - b.id)) ends.push(await takeTurn(lane));
  return () => {
    for (const end of ends) end();
  };
}
