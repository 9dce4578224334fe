import { onAbort } from "./on-abort.ts";

/** Waits; an aborted signal ends the wait with its reason. */
export async function pause(millis: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      unlink();
      resolve();
    }, millis);
    const unlink = onAbort(signal, () => {
      clearTimeout(timer);
      reject(signal?.reason);
    });
  });
}
