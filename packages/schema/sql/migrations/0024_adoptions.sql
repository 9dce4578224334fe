-- Lanes that are brought over from the database of another Queen, and how far each one is.
create table queen.adoptions (
  source_id     uuid primary key,            -- the lane's id there, which was drawn at random
  partition_id  int8 not null unique references queen.partitions on delete cascade,
  messages      int8 not null default 0,     -- brought over; their offsets are 0 up to this
  last_at       timestamptz,                 -- where the last of them stands there: created_at and id
  last_id       uuid,
  letters       int8 not null default 0,     -- dead letters brought over
  letters_until timestamptz,                 -- when the last of them failed
  finished_at   timestamptz                  -- when cursors and dead letters were last brought over
);
