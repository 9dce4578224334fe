-- take counts bytes itself.

drop function if exists queen.fitting(int8, int8, int8, int8, bool);
