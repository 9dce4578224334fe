-- A drain reads a lane's keys once, by spooled_keys, and not for every batch.

drop function if exists queen.find_spooled(int8[], int8[], int8[], bytea[]);
