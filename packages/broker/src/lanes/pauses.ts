/**
 * The pauses of a queue: what operators have stopped of it. A pause is for all lanes or for one, and for all
 * groups or for one; a group gets nothing of a lane that any of them covers.
 */
export interface Pause {
  /** Null: all lanes. */
  readonly lane: number | null;
  /** Null: all groups. */
  readonly group: number | null;
}

export class Pauses {
  readonly #everything: boolean;
  readonly #groups = new Set<number>();
  readonly #lanes = new Set<number>();
  readonly #groupLanes = new Map<number, Set<number>>();

  constructor(pauses: readonly Pause[]) {
    let everything = false;
    for (const { lane, group } of pauses) {
      if (lane === null && group === null) everything = true;
      else if (lane === null) this.#groups.add(group!);
      else if (group === null) this.#lanes.add(lane);
      else this.#groupLanes.set(group, (this.#groupLanes.get(group) ?? new Set()).add(lane));
    }
    this.#everything = everything;
  }

  /** Whether the group gets nothing of any lane. */
  stopGroup(group: number): boolean {
    return this.#everything || this.#groups.has(group);
  }

  /** Whether the group gets nothing of this lane. */
  stopLane(lane: number, group: number): boolean {
    return (
      this.#everything ||
      this.#groups.has(group) ||
      this.#lanes.has(lane) ||
      (this.#groupLanes.get(group)?.has(lane) ?? false)
    );
  }
}
