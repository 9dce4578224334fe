/** Which pages of other origins may use the interface, told in headers. */
const METHODS = ["Access-Control-Allow-Methods", "GET, POST, PUT, DELETE, OPTIONS"];
const HEADERS = ["Access-Control-Allow-Headers", "Content-Type, Authorization"];
// What only pages need to know.
const PAGE_HEADERS = [
  "Access-Control-Allow-Headers",
  "Content-Type, Authorization, traceparent, X-Request-Id",
  "Access-Control-Expose-Headers",
  "Queen-Empty-Reason, Queen-Lease-Expires-At, Queen-Next-Page, Queen-Total, Retry-After, X-Request-Id",
];

export class Cors {
  readonly #origins: ReadonlySet<string>;
  readonly #isForAll: boolean;
  readonly #forAll = ["Access-Control-Allow-Origin", "*", ...METHODS, ...HEADERS];

  /** `*`: any origin. */
  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins);
    this.#isForAll = this.#origins.has("*");
  }

  /** What the answer to a preflight says beside: for how long it counts. */
  preflightHeaders(origin: string | undefined): Readonly<Record<string, string>> {
    const isAllowed = this.#isForAll || (origin !== undefined && this.#origins.has(origin));
    return isAllowed ? { "Access-Control-Max-Age": "86400" } : {};
  }

  /** Names and values in turn, for a request with this Origin. */
  headers(origin: string | undefined): readonly string[] {
    if (origin === undefined) return this.#isForAll ? this.#forAll : [];
    if (this.#isForAll) return ["Access-Control-Allow-Origin", "*", ...METHODS, ...PAGE_HEADERS];
    if (!this.#origins.has(origin)) return this.#origins.size > 0 ? ["Vary", "Origin"] : [];
    return ["Access-Control-Allow-Origin", origin, "Vary", "Origin", ...METHODS, ...PAGE_HEADERS];
  }
}
