/** A target is what a request's method and URL lead to: a route, what the path names, and what the query says. */
import { readQuery } from "./parameters.ts";
import type { Route } from "./route.ts";
import type { Router } from "./router.ts";

export class Target {
  readonly path: string;
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
  readonly #search: string;
  #query: ReturnType<typeof readQuery> | undefined;

  /** Throws where there is no such route. */
  constructor(router: Router, method: string, url: string) {
    const mark = url.indexOf("?");
    this.path = mark < 0 ? url : url.slice(0, mark);
    this.#search = mark < 0 ? "" : url.slice(mark + 1);
    // Only what changes nothing is answered to HEAD: a pop would take messages that nobody sees.
    const isLook = method === "HEAD" && !this.path.startsWith("/api/");
    const { route, params } = router.find(isLook ? "GET" : method, this.path);
    this.route = route;
    this.params = params;
  }

  /** The values of its parameters; throws where they are not as the route wants them. */
  get query(): ReturnType<typeof readQuery> {
    this.#query ??= readQuery(this.route.query, new URLSearchParams(this.#search));
    return this.#query;
  }
}
