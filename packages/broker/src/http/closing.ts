/**
 * Closing a server breaks no request: what is under way is answered, and a client that is about to send its next
 * request on a connection that it keeps has a moment to do so. Answers meanwhile say "Connection: close".
 *
 *   no new connections ──▶ requests answered ──▶ idle connections linger ──▶ the last requests answered ──▶ closed
 */
import { Server as NetServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

// Longer than a client that works takes between an answer and its next request.
const LINGER_MS = 1_000;
// For bytes of answers that are still on their way.
const GRACE_MS = 500;

/** Knows of open connections. */
interface ConnectionKeeper {
  closeIdleConnections(): void;
  closeAllConnections(): void;
}

/** `keepers` have its connections; `answered` resolves when no request is under way. */
export async function closeServer(
  server: NetServer,
  keepers: readonly ConnectionKeeper[],
  answered: () => Promise<void>,
  timeoutMs: number,
): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  const ended = new AbortController();
  // Not the method of HTTP servers: that one would close idle connections at once.
  const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  const within = async (ms: number, moment: Promise<void>): Promise<void> => {
    const { signal } = ended;
    await Promise.race([moment, sleep(Math.max(0, ms), undefined, { signal, ref: false }).catch(() => {})]);
  };
  const closeIdle = (): void => {
    for (const keeper of keepers) keeper.closeIdleConnections();
  };
  await within(timeoutMs, answered());
  await within(Math.min(LINGER_MS, endMs - performance.now()), closed);
  closeIdle();
  await within(endMs - performance.now(), answered());
  closeIdle();
  await within(GRACE_MS, closed);
  for (const keeper of keepers) keeper.closeAllConnections();
  await closed;
  ended.abort();
}
