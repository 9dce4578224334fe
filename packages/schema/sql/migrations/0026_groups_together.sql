-- Brokers find groups together, by try_open_groups.

drop function if exists queen.try_open_group(text, text, text, timestamptz);
