/** Clocks that jump: PostgreSQL's, which decides about leases, and the brokers', which decide about nothing. */
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FaultTest } from "../fault-test.ts";

const LIBRARY = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
// A jump back makes leases of that moment longer by it: the load must outlast that.
const JUMP_SECONDS = 20;

function faketime(): Record<string, string> {
  if (!existsSync(LIBRARY)) throw new Error("clocks need libfaketime: apt-get install libfaketime");
  return { LD_PRELOAD: LIBRARY, FAKETIME_DONT_FAKE_MONOTONIC: "1" };
}

const serverClock: FaultTest = {
  id: "F26",
  title: "PostgreSQL's clock jumps forth and back",
  async run(run) {
    const file = join(run.folder, "clock");
    const set = (seconds: number): void => writeFileSync(file, `${seconds < 0 ? "" : "+"}${seconds}s\n`);
    set(0);
    chmodSync(run.folder, 0o711); // the server may run as another user, who must get in
    const env = { ...faketime(), FAKETIME_TIMESTAMP_FILE: file, FAKETIME_CACHE_DURATION: "1" };
    await run.startPostgres({ env });
    await run.startBrokers(2);
    // A clock that jumps ahead ends leases early: the messages come again, to another consumer.
    run.tolerate("overlap", "redelivery budget");
    await run.underLoad({ leaseSeconds: 5 }, async () => {
      for (const seconds of [JUMP_SECONDS, 0, -JUMP_SECONDS, 0, 3_600]) {
        run.fault(`the clock is ${seconds} s off`);
        set(seconds);
        await run.pause(run.seconds * 150, run.seconds * 250);
      }
    });
    const [clock] = await run.query("select extract(epoch from clock_timestamp())::float8 as now");
    const aheadSeconds = Number(clock!.now) - Date.now() / 1000;
    run.expect(aheadSeconds > 3_000, `PostgreSQL's clock is only ${Math.round(aheadSeconds)} s ahead`);
  },
};

const brokerClocks: FaultTest = {
  id: "F27",
  title: "the clocks of two brokers are a day off, one each way",
  async run(run) {
    await run.startBrokers(1);
    for (const offset of ["+1d", "-1d"]) {
      run.fault(`a broker with a clock of ${offset}`);
      await run.startBrokers(1, { env: { ...faketime(), FAKETIME: offset } });
    }
    await run.underLoad({ leaseSeconds: 20, abandonedShare: 0, lateShare: 0 }, async () => undefined, {
      redeliveriesMax: 0,
    });
  },
};

export const CLOCK_TESTS: readonly FaultTest[] = [serverClock, brokerClocks];
