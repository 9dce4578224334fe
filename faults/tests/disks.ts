/** Disks that are full, fail, or can only be read: PostgreSQL's and the spool's. */
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { PushResult } from "@queen/test/support/http";
import type { FaultRun } from "../fault-run.ts";
import type { FaultTest } from "../fault-test.ts";
import { InstalledServer, installedPrograms } from "../rig/postgres.ts";
import { expectBuffered } from "./postgres.ts";
import { drained, QUEUE, spool, startAndStopPostgres } from "./spools.ts";

/** A file system in memory of so many megabytes, which is full soon. */
function mountSmall(run: FaultRun, folder: string, megabytes: number): void {
  mkdirSync(folder, { recursive: true });
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=0777`, "tmpfs", folder]);
  run.onEnd(() => {
    execFileSync("umount", ["-l", folder]);
  });
}

const postgresFull: FaultTest = {
  id: "F19",
  title: "PostgreSQL's disk is full",
  async run(run) {
    const programs = installedPrograms();
    if (programs === undefined) throw new Error("a small disk needs Debian's postgresql");
    const folder = join(run.folder, "disk");
    mountSmall(run, folder, 400);
    chmodSync(run.folder, 0o711);
    const server = await InstalledServer.create(
      programs,
      { settings: { max_wal_size: "64MB" } },
      undefined,
      folder,
    );
    await run.useServer(server);
    await run.startBrokers(1);
    await run.underLoad({}, async () => {
      run.fault("the disk is full");
      const ballast = join(folder, "ballast");
      try {
        execFileSync("dd", ["if=/dev/zero", `of=${ballast}`, "bs=1M", "count=500"], { stdio: "ignore" });
      } catch {} // it ends when the disk is full
      await sleep(Math.max(5_000, run.seconds * 500));
      rmSync(ballast);
      // A server that could not write its log has ended.
      await run.postgres.stop("immediate");
      await run.postgres.start();
      await run.progressBy(50);
    });
    expectBuffered(run);
  },
};

const spoolFull: FaultTest = {
  id: "F20",
  title: "the spool's disk is full",
  async run(run) {
    await run.startPostgres();
    mountSmall(run, join(run.folder, "broker-0", "spool"), 2);
    await startAndStopPostgres(run);
    const client = run.client();
    const payload = "x".repeat(50_000);
    const buffered: string[] = [];
    let refused = 0;
    run.fault("more is pushed than fits");
    for (let n = 0; n < 100; n++) {
      const items = [{ queue: QUEUE, transactionId: `big${n}`, payload: `${n} ${payload}` }];
      const { status, json } = await client.request("POST", "/api/v1/push", { items });
      if (status === 201 && (json as PushResult[])[0]!.status === "buffered")
        buffered.push(`${n} ${payload}`);
      else if (status === 503) refused++;
      else run.problem(`a push on a full disk was answered ${status}`);
    }
    run.expect(refused > 0, "nothing was refused");
    run.expect(buffered.length > 0, "nothing was buffered");
    await run.postgres.start();
    const stored = new Set(await drained(run));
    const lost = buffered.filter((value) => !stored.has(value)).length;
    run.expect(lost === 0, `${lost} buffered messages are lost`);
    run.count({ load: "pushes of 50 KB", pushed: buffered.length, delivered: stored.size });
  },
};

const spoolReadOnly: FaultTest = {
  id: "F21",
  title: "the spool's folder can only be read",
  async run(run) {
    await run.startPostgres();
    const folder = join(run.folder, "broker-0", "spool");
    await startAndStopPostgres(run);
    const buffered = await spool(run, 20);
    run.expect(buffered.length === 20, `${buffered.length} of 20 pushes were buffered`);
    await run.brokers[0]!.kill();
    run.fault("read-only");
    execFileSync("mount", ["-t", "tmpfs", "-o", "ro", "tmpfs", folder]); // hides what is there
    await run.postgres.start();
    await run.brokers[0]!.start();
    await run.postgres.stop("fast");
    await sleep(3_000); // longer than a broker waits before it would spool
    const refused = await run.client().request("POST", "/api/v1/push", {
      items: [{ queue: QUEUE, transactionId: "refused", payload: "refused" }],
    });
    run.expect(refused.status === 503, `a push was answered ${refused.status} ${refused.text}`);
    await run.brokers[0]!.kill();
    execFileSync("umount", [folder]);
    await run.postgres.start();
    await run.brokers[0]!.start();
    const stored = new Set(await drained(run));
    const lost = buffered.filter((value) => !stored.has(value));
    run.expect(lost.length === 0, `buffered and lost: ${lost.join(", ")}`);
    run.count({ load: "single pushes", pushed: buffered.length, delivered: stored.size });
  },
};

// Interposed by the dynamic linker: while the file that QUEEN_FAIL_SYNC names is there, the disk takes no sync.
const FAILING_SYNC = `#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/syscall.h>
static int fails(void) { const char *flag = getenv("QUEEN_FAIL_SYNC"); return flag && access(flag, F_OK) == 0; }
int fdatasync(int fd) { if (fails()) { errno = EIO; return -1; } return syscall(SYS_fdatasync, fd); }
int fsync(int fd) { if (fails()) { errno = EIO; return -1; } return syscall(SYS_fsync, fd); }
`;

function buildFailingSync(run: FaultRun): string {
  if (!existsSync("/usr/bin/cc"))
    throw new Error("a disk that fails needs a C compiler: apt-get install gcc libc6-dev");
  const library = join(run.folder, "failing-sync.so");
  const source = join(run.folder, "failing-sync.c");
  writeFileSync(source, FAILING_SYNC);
  execFileSync("cc", ["-shared", "-fPIC", "-O", "-o", library, source]);
  return library;
}

const spoolFails: FaultTest = {
  id: "F21b",
  title: "the spool's disk fails to sync (EIO)",
  async run(run) {
    const flag = join(run.folder, "fail");
    const env = { LD_PRELOAD: buildFailingSync(run), QUEEN_FAIL_SYNC: flag };
    await startAndStopPostgres(run, env);
    const before = await spool(run, 20);
    run.expect(before.length === 20, `${before.length} of 20 pushes were buffered`);
    run.fault("no sync succeeds");
    writeFileSync(flag, "");
    const during = await spool(run, 10, 100);
    run.expect(during.length === 0, `${during.length} pushes were answered buffered, and not synced`);
    rmSync(flag);
    await sleep(1_500); // after a failure the broker waits a second
    const after = await spool(run, 20, 200);
    run.expect(after.length > 0, "no push was buffered once the disk was well again");
    // What is not on the disk is lost now.
    await run.brokers[0]!.kill();
    await run.postgres.start();
    await run.brokers[0]!.start();
    const stored = new Set(await drained(run));
    const lost = [...before, ...after].filter((value) => !stored.has(value));
    run.expect(lost.length === 0, `buffered and lost: ${lost.join(", ")}`);
    run.count({ load: "single pushes", pushed: before.length + after.length, delivered: stored.size });
  },
};

export const DISK_TESTS: readonly FaultTest[] = [postgresFull, spoolFull, spoolReadOnly, spoolFails];
