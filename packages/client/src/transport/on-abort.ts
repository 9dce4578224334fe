/**
 * Calls a listener when a signal is aborted, at once if it is already, until the returned function is called. A
 * signal gets one listener of its own, however many wait for it: Node takes more than ten for a leak.
 */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (signal === undefined) return () => undefined;
  if (signal.aborted) {
    listener();
    return () => undefined;
  }
  const all = waiting.get(signal) ?? new Set();
  if (!waiting.has(signal)) {
    waiting.set(signal, all);
    const tellAll = (): void => {
      for (const each of [...all]) each();
    };
    signal.addEventListener("abort", tellAll, { once: true });
  }
  all.add(listener);
  return () => void all.delete(listener);
}
