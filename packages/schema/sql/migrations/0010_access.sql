-- Who may use the broker by key, and what was changed by whom.

create table queen.api_keys (
  id         int8 generated always as identity primary key,
  name       text not null,
  hash       bytea not null,                 -- SHA-256 of the secret, which is stored nowhere
  role       text not null,
  queues     text[],                         -- patterns; null: every queue
  created_at timestamptz not null default clock_timestamp(),
  created_by text not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  constraint key_name_length check (char_length(name) between 1 and 255),
  constraint key_role_known check (role in ('admin', 'read-write', 'read-only', 'produce', 'consume'))
);

create table queen.audit_log (
  id      int8 generated always as identity primary key,
  at      timestamptz not null default clock_timestamp(),
  actor   text not null,
  address text not null,
  action  text not null,                     -- method and route
  target  text not null,                     -- what was meant, by name
  status  int4 not null,
  times   int4 not null default 1            -- refusals that repeat are counted
);

create index audit_log_by_time on queen.audit_log (at, id);
