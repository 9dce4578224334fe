-- People who sign in to the page by name and password, and the sessions that they have.

create table queen.users (
  id                  int8 generated always as identity primary key,
  name                text not null unique,
  password            text not null,          -- a hash with its parameters: $scrypt$ln=15,r=8,p=3$salt$hash
  role                text not null,
  queues              text[],                 -- patterns; null: every queue
  created_at          timestamptz not null default clock_timestamp(),
  created_by          text not null,
  expires_at          timestamptz,
  password_changed_at timestamptz not null default clock_timestamp(),
  constraint user_name_length check (char_length(name) between 1 and 255),
  constraint user_role_known check (role in ('admin', 'read-write', 'read-only', 'produce', 'consume'))
);

-- They end with their user, and when the password is changed.
create table queen.user_sessions (
  id         int8 generated always as identity primary key,
  user_id    int8 not null references queen.users on delete cascade,
  hash       bytea not null,                  -- SHA-256 of the secret, which only the browser has
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null
);

create index user_sessions_by_user on queen.user_sessions (user_id, id);
create index user_sessions_by_expiry on queen.user_sessions (expires_at);
