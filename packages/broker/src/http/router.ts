/** Finds the route of a request by its method and path. */
import { BrokerError } from "@queen/protocol";
import type { Route } from "./route.ts";

export interface Found {
  readonly route: Route;
  readonly params: Record<string, string>;
}

interface Compiled {
  readonly route: Route;
  readonly segments: readonly string[];
  /** Which of the segments are the same in every path of the route. */
  readonly fixed: readonly number[];
  readonly params: readonly { readonly name: string; readonly at: number }[];
}

export class MethodNotAllowed extends BrokerError {
  readonly allowed: readonly string[];

  constructor(method: string, path: string, allowed: readonly string[]) {
    super("METHOD_NOT_ALLOWED", `${path} takes ${allowed.join(", ")}, not ${method}.`);
    this.allowed = allowed;
  }
}

export class Router {
  readonly #exact = new Map<string, Route>();
  /** By the number of their segments. */
  readonly #patterns: Compiled[][] = [];
  readonly #methods = new Map<string, Set<string>>();

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      if (route.path.includes(":")) {
        const compiled = compile(route);
        this.#patterns[compiled.segments.length] ??= [];
        this.#patterns[compiled.segments.length]!.push(compiled);
      } else this.#exact.set(`${route.method} ${route.path}`, route);
      const methods = this.#methods.get(route.path) ?? new Set();
      this.#methods.set(route.path, methods.add(route.method));
    }
  }

  /** Throws where there is none. */
  find(method: string, path: string): Found {
    const exact = this.#exact.get(`${method} ${path}`);
    if (exact) return { route: exact, params: {} };
    const parts = path.split("/");
    const matching = (this.#patterns[parts.length] ?? []).filter(({ segments, fixed }) =>
      fixed.every((at) => segments[at] === parts[at]),
    );
    const found = matching.find(({ route }) => route.method === method);
    if (found) return { route: found.route, params: paramsOf(found, parts) };
    const allowed = new Set(this.#methods.get(path));
    for (const { route } of matching) allowed.add(route.method);
    if (allowed.size > 0) {
      throw new MethodNotAllowed(method, path, [...allowed]);
    }
    throw new BrokerError("NOT_FOUND", `There is no ${method} ${path}.`);
  }
}

function compile(route: Route): Compiled {
  const segments = route.path.split("/");
  const params = segments.flatMap((segment, at) =>
    segment.startsWith(":") ? [{ name: segment.slice(1), at }] : [],
  );
  return {
    route,
    segments,
    params,
    fixed: [...segments.keys()].filter((at) => !segments[at]!.startsWith(":")),
  };
}

function paramsOf({ params }: Compiled, parts: readonly string[]): Record<string, string> {
  const values: Record<string, string> = {};
  for (const { name, at } of params) {
    try {
      values[name] = decodeURIComponent(parts[at]!);
    } catch {
      throw new BrokerError("VALIDATION_FAILED", `${name} in the path is not percent-encoded UTF-8.`);
    }
  }
  return values;
}
