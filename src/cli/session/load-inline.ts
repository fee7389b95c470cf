import type { RangeLine } from "../../domain/coverage/range-status.ts";
import type { UsageRequest } from "../../domain/planning/request.ts";
import { type RunResult, runInline } from "../../pipeline/extract/run-inline.ts";
import type { OpenSource } from "../../pipeline/source/source.ts";
import { type Asked, statusOfAsked } from "../../pipeline/sync/asked-range.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { describeRange, exitOfRange, rangeToData } from "../report/range-report.ts";
import { describeRun } from "../report/run-report.ts";
import { reportPerSource } from "./per-source.ts";
import type { Session } from "./session.ts";

/** What a command asks of a source, and the requests that load it. */
export interface LoadPlan {
  readonly asked: Asked;
  readonly tasks: readonly UsageRequest[];
}

/**
 * Fetches what `planOf` plans by Postgres's clock in this process, for every source. What it says at the end about the
 * range that was asked for is read from the tables then.
 */
export async function loadInline(
  session: Session,
  kind: "sync" | "backfill",
  planOf: (source: OpenSource, now: number) => Promise<LoadPlan>,
  exitOfLines: (lines: readonly RangeLine[]) => number = exitOfRange,
): Promise<number> {
  return reportPerSource(session, {
    kind,
    work: async (source) => {
      const { asked, tasks } = await planOf(source, await storeNow(source.store.db));
      const run = await session.output.progress({ label: source.config.slug, unit: "requests" }, (update) =>
        runInline(source, tasks, { onProgress: update }),
      );
      return { run, range: await statusOfAsked(source.store.db, source, asked) };
    },
    exitOf: ({ range }) => exitOfLines(range),
    describe: (results) => {
      const isOnly = Object.keys(results).length === 1;
      return Object.entries(results)
        .map(([slug, { run, range }]) => (isOnly ? "" : `${slug}\n`) + describeLoad(run, range))
        .join("\n\n");
    },
    toData: ({ run, range }) => ({ ...run, range: rangeToData(range) }),
  });
}

function describeLoad(run: RunResult, range: readonly RangeLine[]): string {
  if (run.counts.length > 0) return `${describeRun(run)}\n${describeRange(range)}`;
  const isFinal = range.length > 0 && range.every(({ status }) => status === "final");
  return isFinal
    ? "Nothing was required: everything is final."
    : `No request was sent. ${describeRange(range)}`;
}
