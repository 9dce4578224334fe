/**
 * Does work in the next turn of the event loop, so that whatever the present one brings goes along: also what programs
 * do that were just told an answer. It is Node's, Bun's and Deno's `setImmediate`; a timer of a browser is later than that.
 */
export const soon: (work: () => void) => void =
  (globalThis as { setImmediate?: (work: () => void) => void }).setImmediate ??
  ((work) => void setTimeout(work, 0));
