import { readConfig } from "../../src/core/base/config.ts";
import type { OpenSource } from "../../src/core/pipeline/source/source.ts";
import { createOutput } from "../../src/terminal/output.ts";
import { createSession } from "../../src/terminal/session.ts";
import { eachSource } from "../../src/terminal/sources.ts";
import { response, type Took, takeTask } from "./harness.ts";
import { dayOf } from "./shapes.ts";

/**
 * The measured process. One for each measurement, so that the peak is its own, and so that each pays for a cold start of V8: it does
 * what a command or a job does, from the first request or statement to the last commit, and responds what that took. It loads only
 * what that command loads.
 */

export type Load = { readonly what: "load"; readonly days: number } & Platform;
export type Reconcile = {
  readonly what: "reconcile";
  readonly days: number;
  readonly byCsvParse: boolean;
} & Platform;
export interface Plan {
  readonly what: "plan";
  readonly environment: Readonly<Record<string, string>>;
}
interface Platform {
  readonly databaseUrl: string;
  readonly platformUrl: string;
}

export interface Loaded extends Took {
  readonly tasks: number;
  readonly inserted: number;
  readonly unchanged: number;
}
export interface Reconciled extends Took {
  readonly windows: number;
  readonly compared: number;
  readonly differences: number;
}
export interface Planned extends Took {
  readonly planned: number;
  readonly created: number;
}
const task = await takeTask<Load | Reconcile | Plan>();
if (task.what === "plan") await withSource(task.environment, plan);
else {
  const { databaseUrl, platformUrl, days } = task;
  const environment = {
    DATABASE_URL: databaseUrl,
    USAGE_BASE_URL: platformUrl,
    USAGE_API_KEY: "bench-key",
    USAGE_RATE_LIMIT: "1000000",
    // The export of 5 million rows is larger than the default.
    USAGE_RESPONSE_LIMIT: "2048",
  };
  const range = { start: dayOf(0), end: dayOf(days) };
  await withSource(environment, task.what === "load" ? load : compare);

  async function load(source: OpenSource): Promise<void> {
    const { planSource } = await import("../../src/core/pipeline/sync/plan.ts");
    const { runInline } = await import("../../src/core/pipeline/extract/run-inline.ts");
    const wanted = [{ stride: "day", range }] as const;
    const tasks = await planSource(source, { wanted, groupings: ["user"], reprocess: "all" });
    await measure(async () => {
      const { counts, failures } = await runInline(source, tasks);
      if (failures[0] !== undefined) throw new Error(failures[0].message);
      const rows = counts.find((count) => count.groupBy === "user" && count.stride === "day")?.rows;
      return { tasks: tasks.length, inserted: rows?.inserted ?? 0, unchanged: rows?.unchanged ?? 0 };
    });
  }

  async function compare(source: OpenSource): Promise<void> {
    const { reconcile } = await import("../../src/core/pipeline/proof/reconcile.ts");
    if (task.what === "reconcile" && task.byCsvParse) {
      const { NotPlain, PlainCsv } = await import("../../src/core/platform/parse/csv-cells.ts");
      PlainCsv.prototype.push = () => {
        throw new NotPlain();
      };
    }
    await measure(async () => {
      const proof = await reconcile(source, { range, stride: "day", groupings: ["user"], repair: false });
      if (proof.failures[0] !== undefined) throw new Error(proof.failures[0].message);
      const { windows, compared, differences } = proof;
      return { windows, compared, differences: differences.length };
    });
  }
}
process.disconnect();

async function plan(source: OpenSource): Promise<void> {
  const { planSync } = await import("../../src/core/pipeline/sync/sync.ts");
  await measure(() => planSync(source));
}

async function withSource(
  environment: Readonly<Record<string, string>>,
  work: (source: OpenSource) => Promise<void>,
): Promise<void> {
  const closers: (() => Promise<void>)[] = [];
  const session = createSession({
    config: readConfig(environment),
    output: createOutput({ json: true }),
    signal: new AbortController().signal,
    onClose: (close) => void closers.push(close),
  });
  await eachSource(session, async (source) => {
    await work(source);
    return 0;
  });
  for (const close of closers.reverse()) await close();
}

async function measure(work: () => Promise<object>): Promise<void> {
  const idleMb = process.memoryUsage.rss() / 1e6;
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  const found = await work();
  const ms = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpu);
  const whole = process.cpuUsage();
  const wholeCpuMs = (whole.user + whole.system) / 1000;
  const peakMb = (process.resourceUsage().maxRSS * 1024) / 1e6;
  response({ ...found, ms, cpuMs: (user + system) / 1000, wholeCpuMs, idleMb, peakMb });
}
