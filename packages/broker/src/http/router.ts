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
  readonly #patterns: Compiled[] = [];
  readonly #methods = new Map<string, Set<string>>();

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      if (route.path.includes(":")) this.#patterns.push({ route, segments: route.path.split("/") });
      else this.#exact.set(`${route.method} ${route.path}`, route);
      const methods = this.#methods.get(route.path) ?? new Set();
      this.#methods.set(route.path, methods.add(route.method));
    }
  }

  /** Throws where there is none. */
  find(method: string, path: string): Found {
    const exact = this.#exact.get(`${method} ${path}`);
    if (exact) return { route: exact, params: {} };
    const parts = path.split("/");
    const allowed = new Set<string>(this.#methods.get(path) ?? []);
    for (const { route, segments } of this.#patterns) {
      const params = match(segments, parts);
      if (!params) continue;
      if (route.method === method) return { route, params };
      allowed.add(route.method);
    }
    if (allowed.size > 0) {
      throw new MethodNotAllowed(method, path, [...allowed]);
    }
    throw new BrokerError("NOT_FOUND", `There is no ${method} ${path}.`);
  }
}

function match(segments: readonly string[], parts: readonly string[]): Record<string, string> | undefined {
  if (segments.length !== parts.length) return undefined;
  const params: Record<string, string> = {};
  for (let index = 0; index < segments.length; index++) {
    const segment = segments[index]!;
    if (!segment.startsWith(":")) {
      if (segment !== parts[index]) return undefined;
      continue;
    }
    try {
      params[segment.slice(1)] = decodeURIComponent(parts[index]!);
    } catch {
      throw new BrokerError(
        "VALIDATION_FAILED",
        `${segment.slice(1)} in the path is not percent-encoded UTF-8.`,
      );
    }
  }
  return params;
}
