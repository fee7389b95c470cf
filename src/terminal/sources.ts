import PQueue from "p-queue";
import { systemClock } from "../core/base/clock.ts";
import { type Config, requireSources, type SourceConfig } from "../core/base/config.ts";
import { InterruptedError } from "../core/base/errors.ts";
import { createLogger } from "../core/base/log.ts";
import type { RangeLine } from "../core/domain/coverage/range-status.ts";
import type { UsageRequest } from "../core/domain/planning/request.ts";
import { asRun } from "../core/pipeline/as-run.ts";
import { type RunResult, runInline } from "../core/pipeline/extract/run-inline.ts";
import { createSource, openSource } from "../core/pipeline/source/open-source.ts";
import type { OpenSource, SourceDeps } from "../core/pipeline/source/source.ts";
import { type Requested, statusOfRequested } from "../core/pipeline/sync/requested-range.ts";
import { billingClientOf } from "../core/platform/clients.ts";
import { type UnknownMeter, unknownMeters } from "../core/store/catalog/source-meters.ts";
import type { Store } from "../core/store/db/database.ts";
import { storeNow } from "../core/store/work/fetch-ledger.ts";
import type { RunEnd, RunKind } from "../core/store/work/runs.ts";
import { EXIT, exitCodeOf, firstExit } from "./exit.ts";
import { describeRange, describeRun, exitOfRange, rangeToData } from "./load-report.ts";
import type { Session } from "./session.ts";

/** This code is not in session.ts, so that commands without a client of the platform start sooner. */

export interface LoadPlan {
  readonly requested: Requested;
  readonly tasks: readonly UsageRequest[];
  readonly isRepair?: boolean;
}

interface Loaded {
  readonly run: RunResult;
  readonly range: readonly RangeLine[];
  readonly unknown: readonly UnknownMeter[];
}

export async function loadInline(
  session: Session,
  kind: "sync" | "backfill",
  planOf: (source: OpenSource, now: number) => Promise<LoadPlan>,
  exitOfLines: (lines: readonly RangeLine[]) => number = exitOfRange,
): Promise<number> {
  return reportPerSource(session, {
    kind,
    work: async (source) => {
      const { requested, tasks, isRepair = false } = await planOf(source, await storeNow(source.store.db));
      const run = await session.output.progress({ label: source.config.slug, unit: "requests" }, (update) =>
        runInline(source, tasks, { onProgress: update, isRepair, isRoutine: kind === "sync" }),
      );
      const { store, sourceId } = source;
      const range = await statusOfRequested(store.db, source, requested);
      // A backfill requests one meter, and `range` shows its days.
      return { run, range, unknown: kind === "sync" ? await unknownMeters(store.db, sourceId) : [] };
    },
    exitOf: ({ range, unknown }) => (unknown.length > 0 ? EXIT.partlyFailed : exitOfLines(range)),
    describe: (results) => {
      const isOnly = Object.keys(results).length === 1;
      return Object.entries(results)
        .map(([slug, result]) => (isOnly ? "" : `${slug}\n`) + describeLoad(result))
        .join("\n\n");
    },
    toData: ({ run, range, unknown }) => ({ ...run, range: rangeToData(range), unknown }),
  });
}

function describeLoad({ run, range, unknown }: Loaded): string {
  if (run.counts.length > 0) return `${describeRun(run)}\n${describeRange(range, unknown)}`;
  const isFinal = range.length > 0 && range.every(({ status }) => status === "final");
  return isFinal && unknown.length === 0
    ? "Nothing to load: everything is final."
    : `No usage was requested. ${describeRange(range, unknown)}`;
}

/** With `--json` the results are an array. Returns the first exit code that applies. */
export async function reportPerSource<T extends object>(
  session: Session,
  given: {
    kind?: RunKind;
    work: (source: OpenSource) => Promise<T>;
    exitOf: (result: T) => number;
    describe: (results: Readonly<Record<string, T>>) => string;
    /** Returns the fields that `--json` shows next to `source`. Default: the result. */
    toData?: (result: T) => object;
  },
): Promise<number> {
  const { toData = (result: T): object => result } = given;
  const results: Record<string, T> = {};
  const exit = await eachSource(
    session,
    async (source) => {
      const result = await given.work(source);
      results[source.config.slug] = result;
      return given.exitOf(result);
    },
    given.kind,
  );
  const data = Object.entries(results).map(([source, result]) => ({ source, ...toData(result) }));
  session.output.data(data, () => given.describe(results));
  return exit;
}

export async function eachSource(
  session: Session,
  work: (source: OpenSource) => Promise<number>,
  kind?: RunKind,
): Promise<number> {
  const configs = requireSources(session.config);
  const store = await session.migratedStore();
  const exits: number[] = [];
  for (const config of configs) {
    try {
      exits.push(await workOn(sourceDepsOf(config, { ...session, store }), work, kind));
    } catch (error) {
      const isInterrupted = error instanceof InterruptedError;
      if (configs.length === 1 || isInterrupted) throw error;
      session.output.error(error, config.slug);
      exits.push(exitCodeOf(error));
    }
  }
  return firstExit(exits);
}

async function workOn(
  deps: SourceDeps,
  work: (source: OpenSource) => Promise<number>,
  kind: RunKind | undefined,
): Promise<number> {
  if (kind === undefined) return work(await openSource(deps));
  const created = await createSource(deps);
  const run = async (runId: number) => work({ ...(await openSource(deps, created)), runId });
  return asRun(created, kind, run, endOf);
}

function endOf(exit: number): RunEnd {
  if (exit === EXIT.done) return { outcome: "done" };
  if (exit === EXIT.partlyFailed) return { outcome: "partly_failed" };
  return { outcome: exit === EXIT.mismatch ? "differs" : "failed" };
}

export function sourceDepsOf(
  source: SourceConfig,
  given: { config: Config; store: Store } & Pick<Session, "signal" | "onClose" | "output">,
): SourceDeps {
  const { config, store, signal, onClose, output } = given;
  const billing = billingClientOf(source);
  onClose(() => billing.close());
  return {
    store,
    billing,
    config: source,
    settings: config,
    log: createLogger(config.logLevel, output.logTo).child({ source: source.slug }),
    clock: systemClock,
    attempts: 8,
    admit: rateBudget(source.rateLimit),
    signal,
  };
}

function rateBudget(requestsPer10s: number): () => Promise<void> {
  const budget = new PQueue({ interval: 10_000, intervalCap: requestsPer10s, strict: true });
  return () => budget.add(() => {});
}
