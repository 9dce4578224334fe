-- A pop has a limit in bytes, not only in messages; a broker that does not know it goes on calling take without.

drop function if exists queen.take(int4[], int4[], int8[], int4[], int8[], int4[], bool[], int4[], int4[], int4[], int4[],
                                   int8[], int8[]);
