import { type RunResult, runInline } from "../../pipeline/extract/run-inline.ts";
import type { OpenSource } from "../../pipeline/source/source.ts";
import { type PlanRequest, planSource } from "../../pipeline/sync/plan.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { describeRun, exitOfRun } from "../report/run-report.ts";
import type { Session } from "./session.ts";

/** Plans and runs every source in this process. */
export async function loadInline(
  { eachSource, output }: Session,
  request: (source: OpenSource, now: number) => Promise<PlanRequest>,
): Promise<number> {
  const results: Record<string, RunResult> = {};
  const exit = await eachSource(async (source) => {
    const slices = await planSource(source, await request(source, await storeNow(source.store.db)));
    const progress = output.progress(source.config.slug);
    const run = await runInline(source, slices, progress.update).finally(progress.stop);
    results[source.config.slug] = run;
    return exitOfRun(run);
  });
  output.data(results, () =>
    Object.entries(results)
      .map(([slug, run]) => (Object.keys(results).length > 1 ? `${slug}\n` : "") + describeRun(run))
      .join("\n\n"),
  );
  return exit;
}
