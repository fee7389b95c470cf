import { createOutput } from "../../src/cli/report/output.ts";
import { createSession } from "../../src/cli/session/session.ts";
import { eachSource } from "../../src/cli/session/sources.ts";
import { readConfig } from "../../src/config/config.ts";
import { runInline } from "../../src/pipeline/extract/run-inline.ts";
import { planSource } from "../../src/pipeline/sync/plan.ts";
import { answer, takeTask } from "./child.ts";
import { dayOf, type Shape } from "./shapes.ts";

/**
 * The measured process: what `usage-etl backfill --inline --reprocess all` does, from the first request to the last
 * commit. A process for each load, so that the peak is its own, and so that each pays for a cold start of V8.
 */

export interface LoaderTask {
  readonly shape: Shape;
  readonly databaseUrl: string;
  readonly platformUrl: string;
}
export interface LoaderAnswer {
  readonly ms: number;
  /** User and system time of this process, from the first request on. */
  readonly cpuMs: number;
  readonly tasks: number;
  readonly inserted: number;
  readonly unchanged: number;
  readonly traces: number;
  readonly idleMb: number;
  readonly peakMb: number;
}

const { shape, databaseUrl, platformUrl } = await takeTask<LoaderTask>();
const closers: (() => Promise<void>)[] = [];
const session = createSession({
  config: readConfig({
    DATABASE_URL: databaseUrl,
    USAGE_BASE_URL: platformUrl,
    USAGE_API_KEY: "bench-key",
    USAGE_RATE_LIMIT: "1000000",
  }),
  output: createOutput({ json: true }),
  signal: new AbortController().signal,
  onClose: (close) => void closers.push(close),
});
await eachSource(session, async (source) => {
  const tasks = await planSource(source, {
    wanted: [{ stride: "day", range: { start: dayOf(0), end: dayOf(shape.days) } }],
    groupings: ["user"],
    reprocess: "all",
  });
  const idleMb = process.memoryUsage.rss() / 1e6;
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  const { counts, failures } = await runInline(source, tasks);
  const ms = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpu);
  if (failures[0] !== undefined) throw new Error(failures[0].message);
  const rows = counts.find((count) => count.groupBy === "user" && count.stride === "day")?.rows;
  answer({
    ms,
    cpuMs: (user + system) / 1000,
    tasks: tasks.length,
    inserted: rows?.inserted ?? 0,
    unchanged: rows?.unchanged ?? 0,
    traces: rows?.traces ?? 0,
    idleMb,
    peakMb: (process.resourceUsage().maxRSS * 1024) / 1e6,
  } satisfies LoaderAnswer);
  return 0;
});
for (const close of closers.reverse()) await close();
process.disconnect();
