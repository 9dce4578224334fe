/**
 * The web page as the build left it: one document, and files whose names change with their content, so that browsers
 * keep them for ever. Everything is read at the first request and held in memory.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname } from "node:path";
import { gzipSync } from "node:zlib";
import { BrokerError } from "@queen/protocol";
import type { Answer, Request } from "./route.ts";

interface PageFile {
  readonly contentType: string;
  readonly etag: string;
  /** One character per byte. */
  readonly body: string;
  readonly zipped: string;
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

const SECURITY = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};
const FOR_EVER = "public, max-age=31536000, immutable";

export class Page {
  readonly #folder: URL;
  #files: ReadonlyMap<string, PageFile> | undefined;

  constructor(folder: URL) {
    this.#folder = folder;
  }

  home(request: Request): Answer {
    return this.#answer(request, "index.html", { ...SECURITY, "Cache-Control": "no-cache" });
  }

  asset(request: Request): Answer {
    return this.#answer(request, `assets/${request.params.file}`, {
      "X-Content-Type-Options": "nosniff",
      "Cache-Control": FOR_EVER,
    });
  }

  #answer(request: Request, name: string, more: Readonly<Record<string, string>>): Answer {
    this.#files ??= read(this.#folder);
    const file = this.#files.get(name);
    if (!file) {
      const isBuilt = this.#files.size > 0;
      throw new BrokerError(
        "NOT_FOUND",
        isBuilt ? `There is no GET ${request.path}.` : "The web page is not built: run `npm run build`.",
      );
    }
    const { contentType, etag, body, zipped } = file;
    const headers = { ...more, ETag: etag, Vary: "Accept-Encoding" };
    if (request.headers["if-none-match"] === etag) return { status: 304, headers };
    const isZipped = /\bgzip\b/.test(String(request.headers["accept-encoding"] ?? ""));
    return {
      status: 200,
      contentType,
      body: isZipped ? zipped : body,
      headers: isZipped ? { ...headers, "Content-Encoding": "gzip" } : headers,
    };
  }
}

function read(folder: URL): Map<string, PageFile> {
  let names: string[];
  try {
    names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  } catch {
    return new Map(); // never built
  }
  return new Map(
    names.flatMap((name) => {
      const contentType = CONTENT_TYPES[extname(name)];
      if (contentType === undefined) return [];
      const bytes = readFileSync(new URL(name, folder));
      const file: PageFile = {
        contentType,
        etag: `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 16)}"`,
        body: bytes.toString("latin1"),
        zipped: gzipSync(bytes, { level: 9 }).toString("latin1"),
      };
      return [[name.replaceAll("\\", "/"), file] as const];
    }),
  );
}
