/** Attacks with names and paths: odd Unicode, SQL, file names. */
import { isStream, operationOf, table } from "../../support/agreement.ts";
import type { Attack, Notes, Target } from "../attack.ts";
import { exchange } from "../raw-socket.ts";

const GOOD = [
  "🎉",
  "עברית",
  "e\u0301",
  "\u00e9",
  "a b",
  "..",
  "a/b",
  "a%2Fb",
  "*",
  "a'b",
  'a"b',
  "x".repeat(255),
  "🎉".repeat(255),
];
const BAD = ["x".repeat(256), "🎉".repeat(256), "a\u0000b", "a\nb", "\u0007", "a\u007fb", "\ud800"];

const INJECTIONS = [
  "' or '1'='1",
  "'; drop table queen.queues; --",
  '"; drop schema queen cascade; --',
  "$$; delete from queen.partitions; $$",
  "\\'; select pg_sleep(60); --",
  "1); truncate queen.segments; --",
  "%27%20or%201=1",
  "' union select hash from queen.api_keys --",
  "E'\\x00'",
  "{a,b}",
  "array[1]",
  "null",
  "#{7*7}",
  "{{7*7}}",
  "`id`",
  "$(id)",
  "|| pg_terminate_backend(pg_backend_pid())",
  "/*",
  "--",
  ";",
];

async function odd({ client }: Target, notes: Notes): Promise<void> {
  for (const name of GOOD) {
    const [pushed] = await client.push([
      { queue: name, partition: name, transactionId: name, payload: name },
    ]);
    const [queue, partition] = [encodeURIComponent(name), encodeURIComponent(name)];
    const byPath = `/api/v1/pop/queue/${queue}/partition/${partition}?consumerGroup=${queue}`;
    const byQuery = `/api/v1/pop?queue=${queue}&partition=${partition}&consumerGroup=${queue}`;
    // A path with dots is shortened by whoever sends it.
    const popped = await client.request("GET", name === ".." ? byQuery : byPath);
    const isSame = pushed!.queueName === name && popped.json?.messages[0].data === name;
    notes.saw(JSON.stringify(name), isSame ? "round trip" : popped.status, isSame);
  }
  const different = await client.pop("e\u0301", { partition: "\u00e9" });
  notes.saw("NFC is not NFD", different.status, different.status === 204);
  for (const name of BAD) {
    const settings = encodeURIComponent(name === "\ud800" ? "\u0000" : name);
    const grouped = await client.request("GET", `/api/v1/pop/queue/odd?consumerGroup=${settings}`);
    notes.saw(`group ${JSON.stringify(name).slice(0, 40)}`, grouped.status, grouped.status === 400);
    for (const field of ["queue", "partition", "transactionId"]) {
      const item = { queue: "odd", payload: 1, [field]: name };
      const { status } = await client.request("POST", "/api/v1/push", { items: [item] });
      notes.saw(`${field} ${JSON.stringify(name).slice(0, 40)}`, status, status === 400);
    }
    const encoded = name === "\ud800" ? "%ED%A0%80" : encodeURIComponent(name);
    const { status } = await client.request("GET", `/api/v1/pop/queue/${encoded}`);
    notes.saw(`pop ${JSON.stringify(name).slice(0, 40)}`, status, status === 400);
  }
}

/** Two hundred texts: each of the above as it is, and in what others may forget to take off. */
const WRAPPED = INJECTIONS.flatMap((text) => [
  text,
  `x${text}`,
  `${text}x`,
  `'${text}'`,
  `"${text}"`,
  `(${text})`,
  `\\${text}`,
  `${text};`,
  `${text} /*`,
  `\u0027${text}`,
]);

/** What no attack may change: the schema, and rows that the well-behaved client does not touch. */
async function checksum({ system }: Target): Promise<string> {
  const [row] = await system.database.query(
    `select md5(concat(
       (select string_agg(format('%s %s', c.relname, c.relkind), ',' order by c.relname)
          from pg_class c where c.relnamespace = 'queen'::regnamespace),
       (select string_agg(md5(p.prosrc), ',' order by p.oid)
          from pg_proc p where p.pronamespace = 'queen'::regnamespace),
       (select string_agg(q::text, ',' order by q.id) from queen.queues q where q.name = 'kept'),
       (select string_agg(m::text, ',' order by m.id)
          from queen.messages m join queen.partitions p on p.id = m.partition_id
          join queen.queues q on q.id = p.queue_id where q.name = 'kept'),
       (select count(*) from queen.api_keys))) as sum`,
  );
  return row!.sum as string;
}

const isPop = (path: string): boolean => path.includes("/pop");

async function injections(target: Target, notes: Notes): Promise<void> {
  const { client, port, share } = target;
  await client.push([{ queue: "kept", transactionId: "kept", payload: { kept: true } }]);
  const before = await checksum(target);
  const chosen = WRAPPED.filter((_, index) => share === 1 || index % Math.ceil(1 / share) === 0);
  for (const text of chosen) {
    const encoded = encodeURIComponent(text);
    const pushed = await client.request("POST", "/api/v1/push", {
      items: [{ queue: text, partition: text, transactionId: text, payload: text }],
    });
    notes.saw(`push ${text}`, pushed.status, pushed.status === 201);
    const popped = await client.pop(text, { partition: text, consumerGroup: text });
    notes.saw(`pop ${text}`, popped.messages.length, popped.messages[0]?.data === text);
    const from = `/api/v1/pop/queue/q?subscriptionFrom=${encoded}&consumerGroup=g`;
    const subscribed = await client.request("GET", from);
    notes.saw(`subscriptionFrom ${text}`, subscribed.status, subscribed.status === 400);
    for (const route of table) {
      if (route.method !== "GET" || isPop(route.path)) continue;
      const path = route.path.replaceAll(/:\w+/g, encoded);
      const query = operationOf(route).parameters.filter((each) => each.in === "query");
      const all = query.map(({ name }) => `${name}=${encoded}`).join("&");
      const url = `${path}?${all}`;
      const status = isStream(route)
        ? (await exchange(port, `GET ${url} HTTP/1.1\r\nHost: q\r\n\r\n`)).statuses[0]!
        : (await client.request("GET", url)).status;
      notes.saw(`${route.path} with ${text}`, status, status < 500);
    }
  }
  const isSame = (await checksum(target)) === before;
  notes.saw("tables", isSame ? "tables unchanged" : "tables changed", isSame);
}

async function traversal({ port }: Target, notes: Notes): Promise<void> {
  for (const path of [
    "/../../../../etc/passwd",
    "/%2e%2e%2f%2e%2e%2fetc/passwd",
    "/..%5c..%5cetc/passwd",
    "/assets/..;/..;/etc/passwd",
    "/assets/../../package.json",
    "/assets/%2e%2e/%2e%2e/package.json",
    "/docs/../../package.json",
    "/assets/%00",
    "//etc/passwd",
    "/./././etc/passwd",
    "/assets-secret/x",
  ]) {
    const { statuses, received } = await exchange(port, `GET ${path} HTTP/1.1\r\nHost: q\r\n\r\n`);
    const status = statuses[0] ?? 0;
    const leaked = received.includes("root:") || received.includes('"workspaces"');
    notes.saw(path, leaked ? "a file" : status, !leaked && status >= 400 && status < 500);
  }
}

export const nameAttacks: readonly Attack[] = [
  { id: "B11", what: "odd names round-trip, bad ones are refused", run: odd },
  { id: "B12", what: "SQL and other languages in every name and parameter", run: injections },
  { id: "B13", what: "paths that point at files", run: traversal },
];
