/** Spans, where a collector is configured. */
import type { Config } from "../config.ts";
import type { Log } from "../telemetry.ts";
import type { Tracing } from "../tracing.ts";

export interface TracingOptions {
  readonly config: Config;
  readonly log: Log;
  readonly workerIndex: number;
  readonly version: string;
}

/** The libraries are loaded only here: without a collector nothing of them is there. */
export async function tracingOf(options: TracingOptions): Promise<Tracing | undefined> {
  const { config, log, workerIndex, version } = options;
  const endpoint = config.otlpTracesEndpoint ?? config.otlpEndpoint;
  if (endpoint === undefined) return undefined;
  const { startTracing } = await import("../open-telemetry.ts");
  return startTracing({ collector: new URL(endpoint).host, version, workerIndex, log });
}
