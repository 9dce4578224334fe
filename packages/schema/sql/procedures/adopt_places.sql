-- adopt_places: brings the places of groups in a lane over, and its dead letters, when its messages are there.
--
-- in   p_source        the lane, by its id in the other database
--      p_groups        groups, and in p_after how many messages each has not finished there
--      p_letters       [{"group", "after", "transactionId", "error", "retries", "failedAt"}], `after` being how many
--                      messages stand behind the letter's in the lane
-- out  one row per group: its name, and how many of the messages that came over it has not finished here
--
-- Counted from the lane's end: what retention removes there between two runs is at its beginning. A place that a
-- consumer has moved on from here stays; a place moves only forward. Letters that failed up to the last one of an
-- earlier run are passed over: they may have been requeued since. Locks, waiting: the lane's row in adoptions, then
-- cursors by group, then letters.
create or replace function queen.adopt_places(p_source uuid, p_groups text[], p_after int8[], p_letters jsonb)
returns table (consumer_group text, unfinished int8)
language plpgsql
set search_path = queen, pg_temp
as $$
#variable_conflict use_column
declare
  v_lane    record;
  v_letters int8;
  v_others  int8;
begin
  select a.partition_id, a.messages, a.letters_until, p.queue_id, p.name, p.start_offset into v_lane
    from queen.adoptions a join queen.partitions p on p.id = a.partition_id
   where a.source_id = p_source
     for update of a;
  if not found then
    raise exception 'the lane was deleted while it was brought over' using errcode = 'QN409';
  end if;

  insert into queen.partition_consumers as c (partition_id, group_id, committed)
  select v_lane.partition_id, g.id, greatest(v_lane.start_offset, v_lane.messages - w.after)
    from unnest(p_groups, p_after) as w (name, after)
    join queen.consumer_groups g on g.queue_id = v_lane.queue_id and g.name = w.name
   order by g.id
  on conflict (partition_id, group_id) do update set committed = excluded.committed
   where excluded.committed > c.committed and c.lease_token is null and c.acked is null and c.failures is null;

  with letters as (
    select g.id as group_id, l.*, v_lane.messages - 1 - l.after as at_offset
      from jsonb_to_recordset(p_letters) as l ("group" text, after int8, "transactionId" text, error text, retries int4,
                                               "failedAt" timestamptz)
      join queen.consumer_groups g on g.queue_id = v_lane.queue_id and g.name = l."group"
     where v_lane.letters_until is null or l."failedAt" > v_lane.letters_until),
  found as (
    select l.*, s.created_at, queen.fragment_at(s.ends, s.body, (l.at_offset - s.first_offset)::int4) as fragment,
           substring(s.keys from (l.at_offset - s.first_offset)::int4 * 8 + 1 for 8)
             = int8send(hashtextextended(l."transactionId", 0)) as is_same
      from letters l
      left join lateral (select * from queen.segments s
                          where s.partition_id = v_lane.partition_id and s.first_offset <= l.at_offset
                          order by s.first_offset desc limit 1) s on true),
  brought as (
    insert into queen.dead_letters (queue_id, partition_id, partition_name, group_id, consumer_group, message_offset,
                                    transaction_id, fragment, error_message, retry_count, created_at, failed_at)
    select v_lane.queue_id, v_lane.partition_id, v_lane.name, f.group_id, f."group", f.at_offset,
           f."transactionId", f.fragment, f.error, f.retries, f.created_at, f."failedAt"
      from found f where f.is_same order by f."failedAt", f.at_offset
    on conflict do nothing)
  select count(*) filter (where f.is_same), count(*) filter (where f.is_same is not true) into v_letters, v_others
    from found f;
  if v_others > 0 then
    raise exception '% dead letters do not belong to the messages at their places: the source was changed meanwhile', v_others
      using errcode = 'QN409';
  end if;

  update queen.adoptions a
     set finished_at = clock_timestamp(), letters = a.letters + v_letters,
         letters_until = greatest(a.letters_until, (select max(l."failedAt")
                                                      from jsonb_to_recordset(p_letters) as l ("failedAt" timestamptz)))
   where a.source_id = p_source;
  insert into queen.hints (partition_ids) values (array[v_lane.partition_id]);

  return query
  select w.name, greatest(0, v_lane.messages - c.committed)
    from unnest(p_groups) with ordinality as w (name, place)
    join queen.consumer_groups g on g.queue_id = v_lane.queue_id and g.name = w.name
    join queen.partition_consumers c on c.partition_id = v_lane.partition_id and c.group_id = g.id
   order by w.place;
end
$$;
