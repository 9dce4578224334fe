-- Whose schema this is: the newest release that was started on the database.

create table queen.schema_version (
  is_only       bool primary key default true,
  version       text not null,               -- of the release
  oldest_broker text not null,               -- brokers from this version on work with it
  migrated_at   timestamptz not null default clock_timestamp(),
  constraint schema_version_once check (is_only)
);
