/** Random requests over every route of the table: right and wrong methods, names, parameters and bodies. */
import { isStream, operationOf, table } from "../../support/agreement.ts";
import type { Attack, Notes, Target } from "../attack.ts";
import { NOT_JSON } from "../odd-json.ts";
import type { Random } from "../random.ts";

const ROUNDS = 20_000;
const AT_ONCE = 8;
const WORDS = [
  "",
  "fuzz",
  "fuzz-1",
  "Default",
  "__QUEUE_MODE__",
  "..",
  "%",
  "a b",
  "🎉",
  "0",
  "-1",
  "null",
  "x".repeat(300),
  "\u0001",
  "00000000-0001-8002-8000-000000000000",
  "2026-01-01T00:00:00Z",
  "true",
];
// What would end the run, or slow it down without telling anything.
const LEFT_OUT = ["/api/v1/system/maintenance", "/api/v1/system/maintenance/pop"];

function value(random: Random, depth = 0): unknown {
  switch (random.below(depth > 2 ? 6 : 8)) {
    case 0:
      return null;
    case 1:
      return random.chance(2);
    case 2:
      return random.pick([0, 1, -1, 1.5, 2 ** 31, 2 ** 53, 1e308]);
    case 3:
    case 4:
    case 5:
      return random.pick(WORDS);
    case 6:
      return Array.from({ length: random.below(4) }, () => value(random, depth + 1));
    default:
      return Object.fromEntries(
        Array.from({ length: random.below(5) }, () => [random.pick(WORDS), value(random, depth + 1)]),
      );
  }
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly type?: string;
}

/** A value that mostly follows the schema. */
function shaped(schema: Schema | undefined, random: Random, depth = 0): unknown {
  if (!schema || random.chance(8) || depth > 5) return value(random);
  if (schema.anyOf) return shaped(random.pick(schema.anyOf), random, depth + 1);
  if (schema.type === "array")
    return Array.from({ length: random.below(4) }, () => shaped(schema.items, random, depth + 1));
  if (schema.properties) {
    return Object.fromEntries(
      Object.entries(schema.properties)
        .filter(() => !random.chance(5))
        .map(([name, inner]) => [name, shaped(inner, random, depth + 1)]),
    );
  }
  return value(random);
}

async function fuzz({ client, random, share }: Target, notes: Notes): Promise<void> {
  const routes = table.filter((route) => !LEFT_OUT.includes(route.path) && !isStream(route));
  const one = async (): Promise<void> => {
    const route = random.pick(routes);
    const { parameters, requestBody } = operationOf(route);
    const path = route.path.replaceAll(/:(\w+)/g, () => encodeURIComponent(random.pick(WORDS)));
    const query = new URLSearchParams();
    for (const parameter of parameters) {
      if (parameter.in !== "query" || random.chance(2)) continue;
      if (parameter.name === "timeout") query.set("timeout", "10");
      else query.set(parameter.name, random.pick(WORDS));
    }
    const method = random.chance(20) ? random.pick(["GET", "POST", "PUT", "DELETE"]) : route.method;
    const schema = requestBody?.content?.["application/json"]?.schema as Schema | undefined;
    const body =
      method === "GET"
        ? undefined
        : random.chance(10)
          ? random.pick(NOT_JSON)
          : JSON.stringify(shaped(schema, random));
    const { status } = await client.request(method, `${path}?${query}`, body);
    notes.saw(`${method} ${path}?${query} ${String(body).slice(0, 200)}`, status, status < 500);
  };
  for (let round = 0; round < ROUNDS * share; round += AT_ONCE) {
    await Promise.all(
      Array.from({ length: AT_ONCE }, () => one().catch((error: Error) => notes.problem(error.message))),
    );
  }
}

export const fuzzAttacks: readonly Attack[] = [
  { id: "fuzz", what: "random requests over every route", run: fuzz },
];
