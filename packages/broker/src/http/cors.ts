/** Which pages of other origins may use the interface, told in headers. */
const ALLOWED = [
  "Access-Control-Allow-Methods",
  "GET, POST, PUT, DELETE, OPTIONS",
  "Access-Control-Allow-Headers",
  "Content-Type, Authorization",
];
const EXPOSED = [
  "Access-Control-Expose-Headers",
  "Queen-Empty-Reason, Queen-Lease-Expires-At, Queen-Next-Page, Queen-Total, Retry-After, X-Request-Id",
];

export class Cors {
  readonly #origins: ReadonlySet<string>;
  readonly #forAll: readonly string[] | undefined;

  /** `*`: any origin. */
  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins);
    this.#forAll = this.#origins.has("*") ? ["Access-Control-Allow-Origin", "*", ...ALLOWED] : undefined;
  }

  /** Names and values in turn, for a request with this Origin. */
  headers(origin: string | undefined): readonly string[] {
    if (this.#forAll) return origin === undefined ? this.#forAll : [...this.#forAll, ...EXPOSED];
    if (origin === undefined || !this.#origins.has(origin)) return [];
    return ["Access-Control-Allow-Origin", origin, "Vary", "Origin", ...ALLOWED, ...EXPOSED];
  }
}
