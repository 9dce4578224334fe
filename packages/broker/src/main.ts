#!/usr/bin/env node
/**
 * The broker's process: the primary, or a worker that the primary has forked. Each loads only what it needs: loading
 * is most of the time that a start takes.
 */
import cluster from "node:cluster";

if (cluster.isPrimary) {
  const { runPrimary } = await import("./primary.ts");
  process.exit(await runPrimary(process.argv.slice(2), process.env));
} else {
  const { runWorker } = await import("./worker.ts");
  runWorker();
}
