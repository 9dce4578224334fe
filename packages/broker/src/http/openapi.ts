/** Prints the table of routes as an OpenAPI 3.1 document. */
import { z } from "zod";
import { type AnswerShape, type Route, TAGS } from "./route.ts";
import { errorShape } from "./routes/shapes.ts";

type Json = Readonly<Record<string, unknown>>;

export interface OpenApi extends Json {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>;
}

const JSON_TYPE = "application/json";
const ERROR = { $ref: "#/components/schemas/Error" };

export function openApi(routes: readonly Route[], version: string): OpenApi {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = operation(route);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Queen",
      version,
      summary: "A partitioned message queue on PostgreSQL",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    tags: TAGS.filter((tag) => routes.some((route) => route.tag === tag)).map((name) => ({ name })),
    paths,
    components: { schemas: { Error: schemaOf(errorShape, "output") } },
  };
}

function operation(route: Route): Json {
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const inQuery = Object.entries(route.query).map(([name, { summary, schema }]) => ({
    name,
    in: "query",
    required: false,
    description: summary,
    schema,
  }));
  return {
    operationId: operationId(route),
    tags: [route.tag],
    summary: route.summary,
    "x-queen-access": route.access,
    parameters: [...inPath, ...inQuery],
    ...(route.body ? { requestBody: requestBody(route.body.shape) } : {}),
    responses: {
      ...Object.fromEntries(
        Object.entries(route.answers).map(([status, shape]) => [status, response(shape)]),
      ),
      default: { description: "What went wrong", content: { [JSON_TYPE]: { schema: ERROR } } },
    },
  };
}

/** `GET /api/v1/messages/:partitionId/:transactionId` is `getMessagesByPartitionIdByTransactionId`. */
function operationId({ method, path }: Route): string {
  const words = path
    .replace(/^\/api\/v1/, "")
    .split(/[/.-]/)
    .filter((word) => word !== "")
    .map((word) => (word.startsWith(":") ? `By${capital(word.slice(1))}` : capital(word)));
  return method.toLowerCase() + (words.join("") || "Home");
}

const capital = (word: string): string => word.slice(0, 1).toUpperCase() + word.slice(1);

function requestBody(shape: z.ZodType): Json {
  return {
    required: !shape.safeParse({}).success,
    content: { [JSON_TYPE]: { schema: schemaOf(shape, "input") } },
  };
}

function response({ summary, shape, headers }: AnswerShape): Json {
  return {
    description: summary,
    ...(headers
      ? {
          headers: Object.fromEntries(
            Object.entries(headers).map(([name, description]) => [
              name,
              { description, schema: { type: "string" } },
            ]),
          ),
        }
      : {}),
    ...(shape === undefined
      ? {}
      : {
          content:
            typeof shape === "string"
              ? { [shape]: { schema: { type: "string" } } }
              : { [JSON_TYPE]: { schema: schemaOf(shape, "output") } },
        }),
  };
}

function schemaOf(shape: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _, ...schema } = z.toJSONSchema(shape, { io, target: "draft-2020-12" });
  return schema;
}
