-- open_lanes makes cursors, too, and says which lanes are new.

drop function if exists queen.open_lanes(text[], text[], bool);
