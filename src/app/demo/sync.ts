import { asRun } from "../../core/pipeline/as-run.ts";
import { reconcile } from "../../core/pipeline/proof/reconcile.ts";
import { learnMeters } from "../../core/pipeline/source/learn-meters.ts";
import type { OpenSource } from "../../core/pipeline/source/source.ts";
import { routineDemand } from "../../core/pipeline/sync/plan.ts";
import { statusOfRequested } from "../../core/pipeline/sync/requested-range.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { EXIT } from "../../terminal/exit.ts";
import { describeRange, exitOfRange, rangeToData } from "../../terminal/load-report.ts";
import { type Output, tableOf } from "../../terminal/output.ts";
import type { Session } from "../../terminal/session.ts";
import { describeReconcile } from "../commands/reconcile.ts";
import { dailyTotals, fetchesSince, newestFetch } from "./load-totals.ts";
import type { Loader } from "./loader.ts";

export async function firstSync(source: OpenSource, output: Output, loader: Loader): Promise<number> {
  const { store, config, clock } = source;
  const startedAt = clock.now();
  const before = await newestFetch(store.db);
  const now = await storeNow(store.db);
  await learnMeters(source);
  const wanted = routineDemand(source, now);
  await loader.sync(source);
  const { workspaceIds } = source;
  const loaded = await statusOfRequested(store.db, source, { wanted, workspaceIds });
  const { requests } = await fetchesSince(store.db, { source: config.slug, after: before });
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
  const seconds = ((clock.now() - startedAt) / 1000).toFixed(1);
  output.data({ requests, range: rangeToData(loaded), reconciliation: proof, totals }, () =>
    [
      describeRange(loaded),
      describeReconcile(proof),
      tableOf(totals, {
        workspace: "workspace",
        "days loaded": "days",
        traces: "traces",
        "last 7 days": "lastWeek",
      }),
      `${requests} requests, ${seconds} s`,
    ].join("\n\n"),
  );
  if (proof.failures.length > 0 || exitOfRange(loaded) !== EXIT.done) return EXIT.partlyFailed;
  return proof.differences.length > 0 ? EXIT.mismatch : EXIT.done;
}

export const SYNC_EVERY = { iso: "PT30S", ms: 30_000 };
const ENQUEUE_EVERY_MS = 5_000;

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
