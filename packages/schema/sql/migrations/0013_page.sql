-- Lanes can be listed by trouble, dead letters chosen by their error: these functions take or return more now.
drop function if exists queen.list_lanes(int8, text, text, int4, int8);
drop function if exists queen.dead_letters_matching(
  text, text, text, timestamptz, timestamptz, timestamptz, int8, int8, int8);
drop function if exists queen.count_dead_letters(text, text, text, timestamptz, timestamptz);
