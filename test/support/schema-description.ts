/**
 * The schema `queen` as a text made from the catalogue: the same on every version of PostgreSQL, one line
 * per fact, in an order that does not depend on when things were made.
 */
import type { TestDatabase } from "./database.ts";

/** Each query gives lines in column `line`; columns are sorted where their order has no meaning. */
const SECTIONS: readonly (readonly [string, string])[] = [
  [
    "Tables, with storage parameters",
    `select format('%s%s', c.relname, case when c.reloptions is not null then ' (' || (
              select string_agg(o, ', ' order by o) from unnest(c.reloptions) as o) || ')' end) as line
       from pg_class c where c.relnamespace = 'queen'::regnamespace and c.relkind in ('r', 'p')
      order by c.relname`,
  ],
  [
    "Columns, in their order",
    `select format('%s.%s %s%s%s%s%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
              case when a.attnotnull then ' not null' end,
              case when a.attidentity = 'a' then ' generated always as identity' end,
              ' default ' || pg_get_expr(d.adbin, d.adrelid),
              case when a.attstorage <> t.typstorage then ' storage ' || a.attstorage::text end) as line
       from pg_class c
       join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       join pg_type t on t.oid = a.atttypid
       left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
      where c.relnamespace = 'queen'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
      order by c.relname, a.attnum`,
  ],
  [
    // Version 18 lists "not null" as constraints too; the columns above say it on every version.
    "Constraints",
    `select format('%s: %s %s', r.relname, c.conname, pg_get_constraintdef(c.oid)) as line
       from pg_constraint c join pg_class r on r.oid = c.conrelid
      where c.connamespace = 'queen'::regnamespace and c.contype <> 'n'
      order by r.relname, c.conname`,
  ],
  [
    "Indexes",
    `select indexdef as line from pg_indexes where schemaname = 'queen' order by tablename, indexname`,
  ],
  [
    "Functions",
    `select format('%s(%s) returns %s, %s, %s%s%s%s%s', p.proname, pg_get_function_identity_arguments(p.oid),
              pg_get_function_result(p.oid), l.lanname,
              case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end,
              case when p.proisstrict then ', strict' end,
              case when p.proparallel = 's' then ', parallel safe' end,
              case when p.prosecdef then ', security definer' end,
              ', set ' || array_to_string(p.proconfig, ', set ')) as line
       from pg_proc p join pg_language l on l.oid = p.prolang
      where p.pronamespace = 'queen'::regnamespace
      order by p.proname, pg_get_function_identity_arguments(p.oid)`,
  ],
  [
    "Triggers",
    `select pg_get_triggerdef(t.oid) as line from pg_trigger t join pg_class r on r.oid = t.tgrelid
      where r.relnamespace = 'queen'::regnamespace and not t.tgisinternal order by r.relname, t.tgname`,
  ],
  [
    "Views",
    `select c.relname as line from pg_class c
      where c.relnamespace = 'queen'::regnamespace and c.relkind in ('v', 'm') order by c.relname`,
  ],
];

export async function describeSchema(database: TestDatabase): Promise<string> {
  const parts: string[] = [];
  for (const [title, query] of SECTIONS) {
    const rows = await database.query(query);
    parts.push(`# ${title}\n\n${rows.map((row) => `${row.line}\n`).join("")}`);
  }
  return parts.join("\n");
}
