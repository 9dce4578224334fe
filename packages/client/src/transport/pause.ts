import { Abort } from "./abort.ts";

/** Waits; the first signal that is aborted ends the wait with its reason. */
export async function pause(millis: number, ...signals: readonly AbortSignal[]): Promise<void> {
  const abort = new Abort();
  const unlink = abort.follow(signals);
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    await new Promise<void>((resolve) => {
      timer = setTimeout(resolve, millis);
      abort.listen(resolve);
    });
    abort.throwIfAborted();
  } finally {
    clearTimeout(timer);
    unlink();
  }
}
