import { createOutput } from "../../src/cli/report/output.ts";
import { createSession } from "../../src/cli/session/session.ts";
import { eachSource } from "../../src/cli/session/sources.ts";
import { readConfig } from "../../src/config/config.ts";
import { reconcile } from "../../src/pipeline/proof/reconcile.ts";
import { answer, takeTask } from "./child.ts";
import { EXPORT_DAYS } from "./reconcile-data.ts";
import { dayOf } from "./shapes.ts";

/** The measured process: what `usage-etl reconcile --group-by user` does, from the first request to the last commit. */
export interface ReconcilerTask {
  readonly databaseUrl: string;
  readonly platformUrl: string;
}
export interface ReconcilerAnswer {
  readonly ms: number;
  readonly cpuMs: number;
  readonly windows: number;
  readonly compared: number;
  readonly differences: number;
  readonly idleMb: number;
  readonly peakMb: number;
}

const { databaseUrl, platformUrl } = await takeTask<ReconcilerTask>();
const closers: (() => Promise<void>)[] = [];
const session = createSession({
  config: readConfig({
    DATABASE_URL: databaseUrl,
    USAGE_BASE_URL: platformUrl,
    USAGE_API_KEY: "bench-key",
    USAGE_RATE_LIMIT: "1000000",
    // The export of 5 million rows is larger than the default.
    USAGE_ANSWER_LIMIT: "2048",
  }),
  output: createOutput({ json: true }),
  signal: new AbortController().signal,
  onClose: (close) => void closers.push(close),
});
await eachSource(session, async (source) => {
  const idleMb = process.memoryUsage.rss() / 1e6;
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  const range = { start: dayOf(0), end: dayOf(EXPORT_DAYS) };
  const result = await reconcile(source, { range, stride: "day", groupings: ["user"], repair: false });
  const ms = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpu);
  if (result.failures[0] !== undefined) throw new Error(result.failures[0].message);
  answer({
    ms,
    cpuMs: (user + system) / 1000,
    windows: result.windows,
    compared: result.compared,
    differences: result.differences.length,
    idleMb,
    peakMb: (process.resourceUsage().maxRSS * 1024) / 1e6,
  } satisfies ReconcilerAnswer);
  return 0;
});
for (const close of closers.reverse()) await close();
process.disconnect();
