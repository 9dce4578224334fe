/**
 * Staggered attempts: the first begins at once, each other one when the one before it has failed or has not answered
 * for a while. So the order counts where everybody answers, and one that swallows everything delays little.
 */
export interface StaggeredOptions<Result> {
  readonly headStartMs: number;
  /** For results that come after the first. */
  readonly discard: (result: Result) => void;
}

/** The first result; rejects with an AggregateError of all failures. */
export function staggered<Result>(
  attempts: readonly (() => Promise<Result>)[],
  { headStartMs, discard }: StaggeredOptions<Result>,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const failures: unknown[] = [];
    let begun = 0;
    let isDecided = false;
    let headStart: NodeJS.Timeout | undefined;
    const beginNext = (): void => {
      clearTimeout(headStart);
      const attempt = attempts[begun];
      if (isDecided || !attempt) return;
      begun++;
      headStart = setTimeout(beginNext, headStartMs);
      attempt().then(
        (result) => {
          if (isDecided) discard(result);
          isDecided = true;
          clearTimeout(headStart);
          resolve(result);
        },
        (error: unknown) => {
          failures.push(error);
          if (failures.length === attempts.length) {
            clearTimeout(headStart);
            reject(new AggregateError(failures));
          } else beginNext();
        },
      );
    };
    if (attempts.length === 0) reject(new AggregateError(failures));
    else beginNext();
  });
}
