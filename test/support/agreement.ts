/**
 * Agreement of the broker with its own description: every answer that a test gets is compared with what the
 * OpenAPI document says about its route. A field, a status or a type that is not described is a complaint.
 */
import { MAY, openApi, type Route, readConfig, routeTable } from "@queen/broker";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { HttpAnswer } from "./http.ts";

const { popTimeoutMsDefault, popBatchSizeDefault } = readConfig({}, 1).config;
export const table: readonly Route[] = routeTable({
  timeoutMs: popTimeoutMsDefault,
  batch: popBatchSizeDefault,
});
export const document = openApi(table, "");

/** Whether a good answer of the route has no end. */
export const isStream = (route: Route): boolean => route.answers[200]?.shape === "text/event-stream";

/** What each role may do. */
export const ACCESS_BY_ROLE: Readonly<Record<string, readonly string[]>> = MAY;

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: object }>>;
}

export interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: object }[];
  readonly requestBody?: Content & { readonly required: boolean };
  readonly responses: Readonly<Record<string, Content>>;
}

const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
ajv.addSchema(document, "document");
const validators = new Map<object, ValidateFunction>();

/** Complaints about a value, where there are any. */
export function complaints(schema: object, value: unknown): string | undefined {
  // A reference inside of a schema is meant from the top of the document.
  const validate =
    validators.get(schema) ??
    ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')) as object);
  validators.set(schema, validate);
  return validate(value) ? undefined : ajv.errorsText(validate.errors);
}

export function operationOf(route: Route): Operation {
  const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
  return document.paths[path]![route.method.toLowerCase()] as unknown as Operation;
}

/** The route that serves a path: one without parameters before one with. */
export function routeOf(method: string, path: string): Route | undefined {
  const parts = path.split("?", 1)[0]!.split("/");
  const fits = (route: Route): boolean => {
    const segments = route.path.split("/");
    return (
      segments.length === parts.length &&
      segments.every((segment, index) => segment.startsWith(":") || segment === parts[index])
    );
  };
  const found = table.filter((route) => route.method === method && fits(route));
  return found.sort((a, b) => a.path.split(":").length - b.path.split(":").length)[0];
}

/** Throws where the answer is not as the document says. */
export function checkAnswer(method: string, path: string, answer: HttpAnswer): void {
  const route = routeOf(method, path);
  if (!route) return;
  const { responses } = operationOf(route);
  const { status, headers, text, json } = answer;
  const described = responses[String(status)];
  if (!described && status < 400) throw disagreement(method, route, `status ${status} is not described`);
  const content = Object.entries((described ?? responses.default!).content ?? {});
  if (content.length === 0) {
    if (text !== "") throw disagreement(method, route, `status ${status} has a body: ${text.slice(0, 100)}`);
    return;
  }
  const [type, { schema }] = content[0]!;
  const sent = String(headers["content-type"]).split(";", 1)[0];
  if (sent !== type && type !== "*/*")
    throw disagreement(method, route, `status ${status} is ${sent}, described as ${type}`);
  if (type !== "application/json") return;
  const wrong = complaints(schema, json);
  if (wrong) throw disagreement(method, route, `status ${status}: ${wrong} in ${text.slice(0, 1000)}`);
}

const disagreement = (method: string, { path }: Route, what: string): Error =>
  new Error(`${method} ${path} is not as openapi.json says: ${what}`);
