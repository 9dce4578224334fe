/** What runs in the worker thread: a renewer of its own, with a transport of its own. */
import { DataPlane } from "./data-plane.ts";
import { BoardWatch } from "./lease-board.ts";
import { type Lease, LeaseRenewer } from "./lease-renewer.ts";
import { runtimeFetch } from "./transport/runtime-fetch.ts";
import { Transport, type TransportOptions } from "./transport/transport.ts";

/** What a worker can be told: everything that can be copied. */
export type ToWorker =
  | { readonly kind: "start"; readonly options: Omit<TransportOptions, "fetch" | "token"> }
  | { readonly kind: "token"; readonly token: string | undefined }
  // Where memory can be shared.
  | { readonly kind: "board"; readonly sleep: SharedArrayBuffer }
  | { readonly kind: "slot"; readonly memory: SharedArrayBuffer }
  | { readonly kind: "wake" }
  // Where it cannot.
  | { readonly kind: "hold"; readonly lease: Lease }
  | { readonly kind: "release"; readonly leaseId: string };

export type FromWorker =
  | { readonly kind: "ready" }
  | { readonly kind: "lost"; readonly leaseId: string; readonly reason: string }
  | { readonly kind: "warning"; readonly message: string };

interface Port {
  postMessage(message: FromWorker): void;
  on?(event: "message", listener: (message: ToWorker) => void): void;
  onmessage?: ((event: { readonly data: ToWorker }) => void) | null;
}

let token: string | undefined;
let renewer: LeaseRenewer | undefined;
let watch: BoardWatch | undefined;
let port: Port | undefined;

function received(message: ToWorker): void {
  if (message.kind === "start") {
    const transport = new Transport({
      ...message.options,
      // A function, so that a new token holds for leases that are held already.
      token: () => token,
      fetch: runtimeFetch,
    });
    renewer = new LeaseRenewer(new DataPlane(transport), {
      lost: (leaseId, reason) => port?.postMessage({ kind: "lost", leaseId, reason }),
      warn: (text) => port?.postMessage({ kind: "warning", message: text }),
    });
  } else if (message.kind === "token") token = message.token;
  else if (message.kind === "board") watch = new BoardWatch(message.sleep, renewer!);
  else if (message.kind === "slot") watch?.hang(message.memory);
  else if (message.kind === "wake") watch?.wake();
  else if (message.kind === "hold") renewer?.hold(message.lease);
  else renewer?.release(message.leaseId);
}

// A browser's worker talks through its global scope, Node's through a port of a module.
const scope = globalThis as unknown as Port & { readonly WorkerGlobalScope?: unknown };
if (scope.WorkerGlobalScope !== undefined) {
  port = scope;
  scope.onmessage = ({ data }) => received(data);
} else {
  const module = "node:worker_threads"; // by name, so that bundlers for browsers do not look for it
  const { parentPort } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ module)) as {
    parentPort: Port | null;
  };
  port = parentPort ?? undefined;
  parentPort?.on?.("message", received);
}
port?.postMessage({ kind: "ready" });
