import { runInline } from "../../pipeline/extract/run-inline.ts";
import type { OpenSource } from "../../pipeline/source/source.ts";
import { type PlanRequest, planSource } from "../../pipeline/sync/plan.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { describeRun, exitOfRun } from "../report/run-report.ts";
import { reportPerSource } from "./per-source.ts";
import type { Session } from "./session.ts";

/** What a command wants of a source, by Postgres's clock. */
export type RequestOf = (source: OpenSource, now: number) => Promise<PlanRequest>;

/** Plans and fetches in this process, for every source. */
export async function loadInline(session: Session, requestOf: RequestOf): Promise<number> {
  return reportPerSource(session, {
    work: async (source) => {
      const slices = await planSource(source, await requestOf(source, await storeNow(source.store.db)));
      return session.output.progress(source.config.slug, (update) => runInline(source, slices, update));
    },
    exitOf: exitOfRun,
    describe: (results) => {
      const isOnly = Object.keys(results).length === 1;
      return Object.entries(results)
        .map(([slug, run]) => (isOnly ? "" : `${slug}\n`) + describeRun(run))
        .join("\n\n");
    },
  });
}
