-- A hint that tells of nothing but an append: a group that has got what its lane held then need not look. Null: there may be
-- more to it.
alter table queen.hints add column appended bool;
