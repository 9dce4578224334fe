/** The interface, described by itself: the OpenAPI document, and the same as a page to read. */
import { json } from "./answers.ts";
import { type OpenApi, openApi } from "./openapi.ts";
import type { Answer, Route } from "./route.ts";

/** What the page shows of a JSON Schema. */
interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly additionalProperties?: Schema | boolean;
  readonly $ref?: string;
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: Content;
  readonly responses: Readonly<
    Record<
      string,
      Content & {
        readonly description: string;
        readonly headers?: Readonly<Record<string, { readonly description: string }>>;
      }
    >
  >;
  readonly "x-queen-access": string;
}

// Nothing is loaded from anywhere, and no script runs.
const PAGE_HEADERS = {
  "Content-Security-Policy":
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

export class Documentation {
  readonly #document: OpenApi;
  readonly #page: string;

  /** Of these routes, all of them. */
  constructor(routes: readonly Route[], version: string) {
    this.#document = openApi(routes, version);
    this.#page = page(this.#document, version);
  }

  document(): Answer {
    return json(200, this.#document);
  }

  page(): Answer {
    return html(this.#page);
  }
}

const html = (body: string): Answer => ({
  status: 200,
  body,
  isText: true,
  contentType: "text/html; charset=utf-8",
  headers: PAGE_HEADERS,
});

const head = (title: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escaped(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${STYLE}</style></head>`;

const STYLE = `
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent); --soft: color-mix(in srgb, currentColor 65%, transparent); }
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1rem 1rem 4rem }
h1 { margin-bottom: 0 } h2 { margin-top: 2.5rem } nav a { margin-right: 1rem }
code, pre { font: 13px/1.5 ui-monospace, monospace } pre { overflow-x: auto; margin: .3rem 0 .8rem }
details { border-top: 1px solid var(--line) } details[open] { padding-bottom: 1rem }
summary { cursor: pointer; padding: .5rem 0; display: flex; gap: .8rem; flex-wrap: wrap; align-items: baseline }
summary b { width: 4.5rem; font: 600 13px/1.5 ui-monospace, monospace }
summary span, .soft { color: var(--soft) }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0 }
td:first-child { white-space: nowrap }`;

function page(document: OpenApi, version: string): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, each]) => ({
      path,
      method: method.toUpperCase(),
      operation: each as unknown as Operation,
    })),
  );
  const tags = (document.tags as { name: string }[]).map(({ name }) => name);
  const anchor = (tag: string): string => tag.toLowerCase().replaceAll(" ", "-");
  const sections = tags.map((tag) => {
    const own = operations.filter(({ operation }) => operation.tags.includes(tag));
    return `<h2 id="${anchor(tag)}">${escaped(tag)}</h2>${own.map(showOperation).join("")}`;
  });
  return `${head(`Queen ${version}: HTTP interface`)}
<body><h1>Queen</h1><p class="soft">HTTP interface of version ${escaped(version)}, the same as <a href="openapi.json">openapi.json</a></p>
<nav aria-label="Sections">${tags.map((tag) => `<a href="#${anchor(tag)}">${escaped(tag)}</a>`).join("")}</nav>
<main>${sections.join("")}</main></body></html>
`;
}

function showOperation(each: { path: string; method: string; operation: Operation }): string {
  const { path, method, operation } = each;
  const { parameters, requestBody, responses } = operation;
  const rows = parameters.map(
    ({ name, in: place, description, schema }) =>
      `<tr><td><code>${escaped(name)}</code></td><td>${escaped(typeName(schema))}${
        schema.default === undefined ? "" : `, ${escaped(JSON.stringify(schema.default))} if absent`
      }</td><td>${escaped(description ?? `in the ${place}`)}</td></tr>`,
  );
  const answers = Object.entries(responses).map(([status, response]) => {
    const headers = Object.entries(response.headers ?? {}).map(
      ([name, { description }]) => `<br><code>${escaped(name)}</code> ${escaped(description)}`,
    );
    return `<p><b>${status === "default" ? "otherwise" : status}</b> ${escaped(response.description)}${headers.join("")}</p>${showContent(response)}`;
  });
  return `<details id="${operation.operationId}"><summary><b>${method}</b><code>${escaped(path)}</code><span>${escaped(operation.summary)}</span></summary>
<p class="soft">Access: ${escaped(operation["x-queen-access"])}</p>
${rows.length > 0 ? `<table>${rows.join("")}</table>` : ""}${requestBody ? `<p><b>Body</b></p>${showContent(requestBody)}` : ""}${answers.join("")}</details>`;
}

function showContent({ content }: Content): string {
  return Object.entries(content ?? {})
    .map(([type, { schema }]) =>
      type === "application/json"
        ? `<pre>${escaped(sketch(schema, ""))}</pre>`
        : `<p class="soft">${escaped(type)}</p>`,
    )
    .join("");
}

/** A shape as a person would write it down. */
function sketch(schema: Schema, indent: string): string {
  if (schema.anyOf) return schema.anyOf.map((each) => sketch(each, indent)).join(" | ");
  if (schema.type === "array" && schema.items) return `[ ${sketch(schema.items, indent)}, … ]`;
  const inner = `${indent}  `;
  if (schema.properties) {
    const lines = Object.entries(schema.properties).map(([name, field]) => {
      const optional = schema.required?.includes(name) ? "" : "?";
      const note = field.description ? `   // ${field.description}` : "";
      return `${inner}${name}${optional}: ${sketch(field, inner)}${note}`;
    });
    return `{\n${lines.join("\n")}\n${indent}}`;
  }
  if (schema.type === "object" && typeof schema.additionalProperties === "object") {
    return `{ <name>: ${sketch(schema.additionalProperties, inner)}, … }`;
  }
  return typeName(schema);
}

function typeName(schema: Schema): string {
  if (schema.$ref) return schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
  return schema.type ?? "any";
}

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (each) => ESCAPES[each]!);
