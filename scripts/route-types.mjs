/**
 * Prints the control plane's routes as TypeScript types for the client: what each takes as query and body, and
 * what it answers, from the same shapes that the broker checks and describes itself with.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { openApi } from "@queen/broker";

const HEADER = `/** Written by scripts/generate-docs.mjs from the broker's table of routes; edit that table. */\n`;
const JSON_TYPE = "application/json";
const BIOME = fileURLToPath(new URL("../node_modules/.bin/biome", import.meta.url));

export function routeTypes(routes) {
  const described = openApi(routes, "").paths;
  const control = routes
    .filter(({ tag }) => tag !== "Data plane")
    .map((route) => ({ route, ...facts(described, route) }))
    .filter(({ answer }) => answer !== undefined);
  const table = (name, comment, pick) =>
    `/** ${comment} */\nexport interface ${name} {\n${control
      .flatMap((each) => {
        const type = pick(each);
        const { method, path, summary } = each.route;
        return type === undefined ? [] : [`/** ${summary}. */\n"${method} ${path}": ${type};\n`];
      })
      .join("")}}\n`;
  return formatted(
    [
      HEADER,
      table("Queries", "What routes take as query parameters.", ({ query }) => query),
      table("Bodies", "What routes take as JSON.", ({ body }) => body),
      table("Answers", "What routes answer.", ({ answer }) => answer),
    ].join("\n"),
  );
}

function facts(paths, { method, path }) {
  const operation = paths[path.replaceAll(/:(\w+)/g, "{$1}")][method.toLowerCase()];
  const inQuery = operation.parameters.filter((parameter) => parameter.in === "query");
  const good = Object.entries(operation.responses).filter(([status]) => /^2/.test(status));
  const types = good.map(([, response]) => {
    const schema = response.content?.[JSON_TYPE]?.schema;
    return schema && typeOf(schema);
  });
  const body = operation.requestBody?.content[JSON_TYPE].schema;
  return {
    query: inQuery.length === 0 ? undefined : objectOf(inQuery.map(queryField)),
    body: body && typeOf(body),
    answer: types.length > 0 && types.every((type) => type !== undefined) ? union(types) : undefined,
  };
}

const queryField = ({ name, description, schema }) => ({
  name,
  description,
  type: typeOf(schema),
  optional: true,
});

function typeOf(schema) {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return union(schema.enum.map((value) => JSON.stringify(value)));
  if (schema.anyOf ?? schema.oneOf) return union((schema.anyOf ?? schema.oneOf).map(typeOf));
  if (Array.isArray(schema.type)) return union(schema.type.map((type) => typeOf({ ...schema, type })));
  if (schema.type === "array") return `readonly (${typeOf(schema.items ?? {})})[]`;
  if (schema.type === "integer" || schema.type === "number") return "number";
  if (schema.type === "object") return objectType(schema);
  if (["string", "boolean", "null"].includes(schema.type)) return schema.type;
  if (Object.keys(schema).every((key) => ["description", "default"].includes(key))) return "unknown";
  throw new Error(`scripts/route-types.mjs has no type for ${JSON.stringify(schema)}`);
}

function objectType({ properties, required = [], additionalProperties }) {
  if (properties === undefined || Object.keys(properties).length === 0)
    return `Readonly<Record<string, ${typeOf(typeof additionalProperties === "object" ? additionalProperties : {})}>>`;
  return objectOf(
    Object.entries(properties).map(([name, schema]) => ({
      name,
      description: schema.description,
      type: typeOf(schema),
      optional: !required.includes(name),
    })),
  );
}

function objectOf(fields) {
  const lines = fields.map(
    ({ name, description, type, optional }) =>
      `${description ? `/** ${description}. */\n` : ""}readonly ${JSON.stringify(name)}${optional ? "?" : ""}: ${type}${
        optional ? " | undefined" : ""
      };\n`,
  );
  return `{\n${lines.join("")}}`;
}

const union = (types) => [...new Set(types)].join(" | ");

function formatted(text) {
  const biome = spawnSync(BIOME, ["format", "--stdin-file-path=packages/client/src/admin/routes.ts"], {
    input: text,
    encoding: "utf8",
    cwd: fileURLToPath(new URL("../", import.meta.url)),
  });
  if (biome.status !== 0) throw new Error(`biome cannot format the types of routes: ${biome.stderr}`);
  return biome.stdout;
}
