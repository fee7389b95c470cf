import { isLoaded, type RangeLine } from "../../../domain/coverage/range-status.ts";
import { fewestRequests } from "../../../domain/planning/request.ts";
import { STRIDES } from "../../../domain/time/stride.ts";
import { asRun } from "../../../pipeline/as-run.ts";
import { type ReconcileResult, reconcile } from "../../../pipeline/proof/reconcile.ts";
import { learnMeters } from "../../../pipeline/source/learn-meters.ts";
import type { OpenSource } from "../../../pipeline/source/source.ts";
import { statusOfAsked } from "../../../pipeline/sync/asked-range.ts";
import { planSource, routineDemand } from "../../../pipeline/sync/plan.ts";
import { counted } from "../../../printable.ts";
import {
  dailyTotals,
  fetchesSince,
  newestFetch,
  type StoredTotals,
  storedTotals,
  type WorkspaceTotal,
} from "../../../store/figures/load-totals.ts";
import { storeNow } from "../../../store/load/fetch-ledger.ts";
import { describeRange, exitOfRange, rangeToData } from "../../report/load-report.ts";
import { linesOf, type Output, tableOf } from "../../report/output.ts";
import { EXIT } from "../../session/exit.ts";
import type { Session } from "../../session/session.ts";
import { describeReconcile } from "../proof/reconcile.ts";
import type { Loader } from "./loader.ts";

/** One sync, then a reconciliation of all final days. Returns the exit code. */
export async function firstSync(source: OpenSource, output: Output, loader: Loader): Promise<number> {
  const { store, config, clock } = source;
  const startedAt = clock.now();
  const before = await newestFetch(store.db);
  const now = await storeNow(store.db);
  await learnMeters(source);
  const wanted = routineDemand(source, now);
  const tasks = await planSource(source, { wanted, reprocess: "missing" });
  await loader.sync(source);
  const workspaceIds = source.workspaces.map((one) => one.workspaceId);
  const loaded = await statusOfAsked(store.db, source, { wanted, workspaceIds });
  const extracted = (await storedTotals(store.db, { source: config.slug, after: before })).map((totals) => {
    const own = tasks.filter(
      ({ meter, groupBy, window }) =>
        meter === "traces" && groupBy === totals.groupBy && window.stride === totals.stride,
    );
    return { ...totals, windows: own.length, fewest: fewestRequests(own) };
  });
  const range = { start: source.dataStart, end: now };
  const proof = await output.progress({ label: "reconcile", unit: "windows" }, (update) =>
    asRun(
      source,
      "reconcile",
      (runId) => reconcile({ ...source, runId }, { range, stride: "day", repair: false }, update),
      ({ differences }) => ({ outcome: differences.length > 0 ? "differs" : "done" }),
    ),
  );
  const totals = await dailyTotals(store.db, config.slug);
  output.data({ extracted, range: rangeToData(loaded), reconciliation: proof, totals }, () =>
    describeDemo({ extracted, loaded, proof, totals, seconds: (clock.now() - startedAt) / 1000 }),
  );
  if (proof.failures.length > 0 || exitOfRange(loaded) !== EXIT.done) return EXIT.partlyFailed;
  return proof.differences.length > 0 ? EXIT.mismatch : EXIT.done;
}

export const SYNC_EVERY = { iso: "PT30S", ms: 30_000 };
/** How soon a backfill that somebody started is taken up, where no service does it. */
const ENQUEUE_EVERY_MS = 5_000;

/** Prints what each further sync did, until Ctrl-C. With a loader, nobody else does these syncs. */
export async function runOn(
  sources: readonly [OpenSource, ...OpenSource[]],
  { output, signal }: Session,
  loader?: Loader,
): Promise<number> {
  const [{ store, clock }] = sources;
  for (;;) {
    const before = await newestFetch(store.db);
    const nextSync = clock.now() + SYNC_EVERY.ms;
    try {
      while (clock.now() < nextSync) {
        await clock.wait(loader === undefined ? SYNC_EVERY.ms : ENQUEUE_EVERY_MS, signal);
        for (const source of sources) await loader?.enqueue(source);
      }
    } catch (error) {
      if (signal.aborted) return EXIT.done;
      throw error;
    }
    for (const source of sources) await loader?.sync(source);
    let [requests, failed] = [0, 0];
    for (const { config } of sources) {
      const since = await fetchesSince(store.db, { source: config.slug, after: before });
      requests += since.requests;
      failed += since.failed;
    }
    output.note(
      `${new Date(clock.now()).toISOString()}: ${requests} requests for what is not final, ${failed} failed`,
    );
  }
}

function describeDemo(shown: {
  extracted: readonly (StoredTotals & { windows: number; fewest: number })[];
  loaded: readonly RangeLine[];
  proof: ReconcileResult;
  totals: readonly WorkspaceTotal[];
  seconds: number;
}): string {
  const extracted = tableOf(shown.extracted, {
    dimension: "groupBy",
    stride: "stride",
    windows: "windows",
    "fewest possible": "fewest",
    requests: "requests",
    "records stored": "records",
    "traces stored": "traces",
  });
  return [
    linesOf(extracted, unevenStrides(shown.extracted, shown.loaded), describeRange(shown.loaded)),
    describeReconcile(shown.proof),
    tableOf(shown.totals, {
      workspace: "workspace",
      "days loaded": "days",
      traces: "traces",
      "last 7 days": "lastWeek",
    }),
    `${shown.seconds.toFixed(1)} s`,
  ].join("\n\n");
}

/** Says what may be behind different totals of dimensions, where all is loaded and some may still change: they look like a fault. */
function unevenStrides(
  extracted: readonly Pick<StoredTotals, "stride" | "traces">[],
  loaded: readonly RangeLine[],
): string[] {
  return STRIDES.flatMap((stride) => {
    const totals = extracted.filter((one) => one.stride === stride).map(({ traces }) => traces);
    const difference = Math.max(...totals) - Math.min(...totals);
    const lines = loaded.filter((line) => line.stride === stride);
    const mayChange = lines.every(isLoaded) && lines.some(({ status }) => status === "provisional");
    if (!(difference > 0) || !mayChange) return [];
    return [
      `The dimensions differ by up to ${counted(difference, "trace")} (stride ${stride}). Each was asked at another moment, and provisional buckets may have counted more in between.`,
    ];
  });
}
