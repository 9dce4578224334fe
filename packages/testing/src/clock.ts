/**
 * Time, for tests. The database's clock decides about leases, delays and retries; a test does not wait for it,
 * it moves what is stored into the past. This writes to Queen's own tables behind the brokers' backs, which is
 * right in a test's database and nowhere else.
 */
import type { TestDatabase } from "./test-database.ts";

/** Every lease that is held runs out now; of one queue, if it is named. */
export function expireLeases(database: TestDatabase, queue: string | undefined): Promise<void> {
  const ofQueue = queue === undefined ? "" : `and q.name = ${literal(queue)}`;
  return database.run(
    `update queen.partition_consumers c set lease_expires_at = clock_timestamp() - interval '1 second'
       from queen.partitions p join queen.queues q on q.id = p.queue_id
      where p.id = c.partition_id and c.lease_token is not null ${ofQueue}`,
  );
}

/** Everything that has a time is so much older: delays, window buffers, retry delays, leases, times to live. */
export function jump(database: TestDatabase, seconds: number): Promise<void> {
  const by = `interval '${seconds} seconds'`;
  return database.run(
    `begin;
     update queen.segments set created_at = created_at - ${by};
     update queen.partitions set last_at = last_at - ${by}, created_at = created_at - ${by};
     update queen.partition_consumers
        set lease_expires_at = lease_expires_at - ${by}, lease_acquired_at = lease_acquired_at - ${by},
            not_before = not_before - ${by}, last_consumed_at = last_consumed_at - ${by};
     update queen.dead_letters set failed_at = failed_at - ${by}, created_at = created_at - ${by};
     commit`,
  );
}

const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;
