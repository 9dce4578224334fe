/**
 * The board is memory that the client shares with the thread that renews its leases. The client writes down which leases
 * are in hand, the other thread looks now and then: neither wakes the other, because that costs more than most messages
 * take to handle. A lease that is let go between two looks is never heard of there.
 *
 *   slot   [ version ][ length ][ text … ]   the version is odd while the slot is written; without a text it is free
 *
 * Every access is atomic, so what a look reads between two equal, even versions is whole. After some looks at an empty board
 * the other thread says that it sleeps; who writes then wakes it.
 */
import type { Lease } from "./lease-renewer.ts";

const LOOK_MILLIS = 100;
const EMPTY_LOOKS_MAX = 100;
// Of UTF-16 code units. Most leases need one step.
const TEXT_STEP = 256;
const VERSION = 0;
const LENGTH = 1;
const HEAD_BYTES = 8;

class Slot {
  readonly head: Int32Array;
  readonly text: Uint16Array;

  constructor(memory: SharedArrayBuffer) {
    this.head = new Int32Array(memory, 0, 2);
    this.text = new Uint16Array(memory, HEAD_BYTES);
  }

  write(text: string): void {
    Atomics.add(this.head, VERSION, 1);
    Atomics.store(this.head, LENGTH, text.length);
    for (let at = 0; at < text.length; at++) Atomics.store(this.text, at, text.charCodeAt(at));
    Atomics.add(this.head, VERSION, 1);
  }

  get version(): number {
    return Atomics.load(this.head, VERSION);
  }

  read(): string {
    let text = "";
    const length = Atomics.load(this.head, LENGTH);
    for (let at = 0; at < length; at++) text += String.fromCharCode(Atomics.load(this.text, at));
    return text;
  }
}

/** Pages that are not isolated have no memory to share. */
export const canShare = (): boolean => typeof SharedArrayBuffer === "function";

/** The client's side. */
export class LeaseBoard {
  /** 1: the other side does not look. */
  readonly sleep = new SharedArrayBuffer(4);
  readonly #sleep = new Int32Array(this.sleep);
  readonly #free: Slot[] = [];
  readonly #hang: (memory: SharedArrayBuffer) => void;
  readonly #wake: () => void;

  /** `hang` gives the other side one more slot, `wake` tells it to look. */
  constructor(hang: (memory: SharedArrayBuffer) => void, wake: () => void) {
    this.#hang = hang;
    this.#wake = wake;
  }

  /** Returns what lets the lease go. */
  hold(lease: Lease): () => void {
    const text = JSON.stringify(lease);
    const slot = this.#slotFor(text.length);
    slot.write(text);
    if (Atomics.load(this.#sleep, 0) === 1) this.#wake();
    return () => {
      slot.write("");
      this.#free.push(slot);
    };
  }

  #slotFor(length: number): Slot {
    for (let at = this.#free.length - 1; at >= 0; at--)
      if (this.#free[at]!.text.length >= length) return this.#free.splice(at, 1)[0]!;
    const room = Math.ceil(length / TEXT_STEP) * TEXT_STEP;
    const memory = new SharedArrayBuffer(HEAD_BYTES + room * Uint16Array.BYTES_PER_ELEMENT);
    this.#hang(memory);
    return new Slot(memory);
  }
}

interface Renewer {
  hold(lease: Lease): void;
  release(leaseId: string): void;
}

interface Watched {
  readonly slot: Slot;
  /** When it was read last. */
  version: number;
  leaseId: string | undefined;
}

/** The other side. */
export class BoardWatch {
  readonly #sleep: Int32Array;
  readonly #renewer: Renewer;
  readonly #watched: Watched[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #emptyLooks = 0;

  constructor(sleep: SharedArrayBuffer, renewer: Renewer) {
    this.#sleep = new Int32Array(sleep);
    this.#renewer = renewer;
    this.wake();
  }

  hang(memory: SharedArrayBuffer): void {
    this.#watched.push({ slot: new Slot(memory), version: 0, leaseId: undefined });
    this.wake();
  }

  wake(): void {
    Atomics.store(this.#sleep, 0, 0);
    this.#emptyLooks = 0;
    this.#timer ??= setTimeout(() => this.#turn(), LOOK_MILLIS);
    this.#look();
  }

  #turn(): void {
    this.#timer = undefined;
    this.#emptyLooks = this.#look() ? 0 : this.#emptyLooks + 1;
    if (this.#emptyLooks < EMPTY_LOOKS_MAX) {
      this.#timer = setTimeout(() => this.#turn(), LOOK_MILLIS);
      return;
    }
    Atomics.store(this.#sleep, 0, 1);
    // Who wrote before that was said will not wake us.
    if (this.#look()) this.wake();
  }

  /** Whether any lease is in hand. */
  #look(): boolean {
    let isAny = false;
    for (const watched of this.#watched) {
      this.#lookAt(watched);
      isAny ||= watched.leaseId !== undefined;
    }
    return isAny;
  }

  #lookAt(watched: Watched): void {
    const { slot, leaseId } = watched;
    const { version } = slot;
    if (version === watched.version || version % 2 !== 0) return;
    const text = slot.read();
    if (slot.version !== version) return; // the next look will do
    watched.version = version;
    if (leaseId !== undefined) this.#renewer.release(leaseId);
    const lease = text === "" ? undefined : (JSON.parse(text) as Lease);
    watched.leaseId = lease?.leaseId;
    if (lease) this.#renewer.hold(lease);
  }
}
