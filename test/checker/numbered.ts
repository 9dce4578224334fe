/** A numbered value says whose message it is, and which of those that this source pushed to its lane. */
export interface Numbered {
  readonly source: string;
  readonly number: number;
}

export function numberedOf(value: string): Numbered {
  const colon = value.lastIndexOf(":");
  return { source: value.slice(0, colon), number: Number(value.slice(colon + 1)) };
}

/** What a source has pushed to a lane: numbers below were sent, and answered. */
export interface Pushed {
  sent: number;
  answered: number;
}
