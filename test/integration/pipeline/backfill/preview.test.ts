import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { GROUPINGS } from "../../../../src/core/domain/usage/record.ts";
import { runInline } from "../../../../src/core/pipeline/extract/run-inline.ts";
import { storeNow } from "../../../../src/core/store/work/fetch-ledger.ts";
import type { BackfillRequest } from "../../../../src/features/backfill/backfill-request.ts";
import { previewBackfill, previewedOpen } from "../../../../src/features/backfill/plan-backfill.ts";
import { windowsOf } from "../../../../src/features/backfill/planned-windows.ts";
import { startShown } from "../../../../src/features/backfill/start-backfill.ts";
import { listActions } from "../../../support/actions.ts";
import { type Bench, setup } from "../../../support/source.ts";

/** What a backfill would do, and that it does this or nothing. */

const ADA = { name: "ada", role: "operator", via: "page" } as const;

async function previewOf(bench: Bench, backfillRequest: Partial<BackfillRequest> = {}) {
  const source = previewedOpen(await bench.open());
  const now = await storeNow(bench.store.db);
  const range = { start: bench.dataStart - 3 * DAY_MS, end: bench.today + 5 * DAY_MS };
  const whole: BackfillRequest = {
    meter: "traces",
    range,
    stride: "day",
    groupings: GROUPINGS,
    reprocess: "missing",
    ...backfillRequest,
  };
  const preview = await previewBackfill(source, whole, { now });
  return { source, backfillRequest: whole, now, preview };
}

test("a preview says how many requests are not sent since the workspace has no traces, and the backfill sends the others", async () => {
  const bench = await setup({ workspaces: [0, 1, 2, 3, 4] });
  const range = { start: bench.dataStart, end: bench.today + DAY_MS };
  await bench.fetch({ wanted: [{ stride: "day", range }], groupings: ["workspace"], reprocess: "missing" });
  const notFinal = { start: bench.today - DAY_MS, end: range.end };
  const groupings = ["workspace", "project"] as const;
  const { source, backfillRequest, preview } = await previewOf(bench, { groupings, range: notFinal });
  const silent = preview.tasks.filter(({ groupBy }) => groupBy === "project").length - 4;
  expect(silent).toBeGreaterThan(0);
  expect(preview.withoutTraces).toBe(silent);
  const again = await previewBackfill(source, { ...backfillRequest, reprocess: "all" }, { now: bench.now });
  expect(again.withoutTraces).toBe(0);
  // Final by workspace, so it is asked for by project alone, and no new response says that there is nothing.
  const whole = await previewBackfill(source, { ...backfillRequest, range }, { now: bench.now });
  expect(whole.withoutTraces).toBe(0);
  const run = await runInline(await bench.open(), preview.tasks);
  const sent = run.counts.reduce((sum, { requests }) => sum + requests, 0);
  expect(sent).toBe(preview.tasks.length - preview.withoutTraces);
});

const days = (bench: Bench, from: number, to: number) => ({
  range: { start: bench.dataStart + from * DAY_MS, end: bench.dataStart + to * DAY_MS },
});

test("a preview counts what is fetched, what is left out and why, what is replaced, and which closed months change", async () => {
  const bench = await setup({ workspaces: [0, 1] });
  await bench.sync();
  const { preview } = await previewOf(bench);
  const finalDays = preview.loaded.find(({ status }) => status === "final")?.buckets ?? 0;
  expect(finalDays).toBeGreaterThan(0);
  expect(preview.leftOut).toEqual([
    {
      reason: "before_data_start",
      first: bench.dataStart - 3 * DAY_MS,
      end: bench.dataStart,
      buckets: 3 * 8,
    },
    { reason: "future", first: bench.today + DAY_MS, end: bench.today + 5 * DAY_MS, buckets: 4 * 8 },
    expect.objectContaining({ reason: "final", first: bench.dataStart, buckets: finalDays * 4 }),
  ]);
  expect(preview).toMatchObject({
    notSent: 0,
    inFlight: 0,
    facts: { closedMonths: [], hasMoreRecords: false },
  });
  const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);
  const stored = (from: number) =>
    bench.sql<{ n: number }>(
      `SELECT count(*)::integer AS n FROM usage.dated_record JOIN usage.series USING (series_id) JOIN usage.trace_scope USING (scope_id)
       WHERE stride = 'day' AND bucket_start >= $1::date AND bucket_start < $2::date`,
      [dayOf(from), dayOf(bench.today + DAY_MS)],
    );
  const firstOpen = preview.leftOut.find(({ reason }) => reason === "final")?.end ?? 0;
  expect(preview.facts?.records).toBe((await stored(firstOpen))[0]?.n);

  await bench.sql(
    "INSERT INTO usage.close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements) VALUES (1, $1::date, $1::date + interval '1 month', 0, 0)",
    [new Date(bench.dataStart).toISOString().slice(0, 8).concat("01")],
  );
  const all = await previewOf(bench, { reprocess: "all" });
  expect(all.preview.leftOut.map(({ reason }) => reason)).toEqual(["before_data_start", "future"]);
  expect(all.preview.facts?.records).toBe((await stored(bench.dataStart))[0]?.n);
  expect(all.preview.facts?.closedMonths).toEqual([new Date(bench.dataStart).toISOString().slice(0, 7)]);
  expect(all.preview.digest).not.toBe(preview.digest);
  const cut = await previewBackfill(all.source, all.backfillRequest, { now: all.now, mostRecords: 3 });
  expect(cut.facts).toMatchObject({ records: 3, hasMoreRecords: true });

  await bench.sql(
    "INSERT INTO usage.source_fact (source_id, fact, evidence, probe_after) VALUES (1, 'no_hour', 'test', now() + interval '1 day')",
  );
  const hours = (await previewOf(bench, { ...days(bench, 0, 1), stride: "hour", groupings: ["workspace"] }))
    .preview;
  expect(hours.notSent).toBe(hours.tasks.length);
  expect(hours.leftOut).toMatchObject([{ reason: "not_available", buckets: 24 * 2 }]);
  expect(hours.facts?.records).toBe(0);
});

test("what was previewed is what is started, and a plan without requests is refused", async () => {
  const bench = await setup({ workspaces: [0] });
  const { source, backfillRequest, now, preview } = await previewOf(bench, days(bench, 0, 3));
  const shown = { digest: preview.digest, shownAt: now, windows: windowsOf(preview.tasks) };
  expect(await startShown(bench.store, source, backfillRequest, { shown, by: ADA, now })).toMatchObject({
    outcome: "started",
    backfillId: 1,
  });
  const tasks = await bench.sql(
    "SELECT group_by, stride, period_start, period_end, workspace_ids FROM usage.fetch_task",
  );
  expect(tasks).toEqual(
    preview.tasks.map(({ groupBy, window, members }) => ({
      group_by: groupBy,
      stride: window.stride,
      period_start: new Date(window.start),
      period_end: new Date(window.end),
      workspace_ids: members.map(({ workspaceId }) => workspaceId),
    })),
  );
  const detail = expect.stringMatching(/^backfill 1: /);
  expect(await listActions(bench.store.db, { most: 9 })).toMatchObject([
    { action: "backfill.start", actor: "ada", via: "page", source: "default", detail },
  ]);

  await runInline(await bench.open(), preview.tasks);
  const empty = await previewOf(bench, days(bench, 0, 2));
  const nothing = { digest: empty.preview.digest, shownAt: now, windows: [] };
  const refused = startShown(bench.store, empty.source, empty.backfillRequest, {
    shown: nothing,
    by: ADA,
    now,
  });
  await expect(refused).rejects.toMatchObject({ code: "backfill_empty" });
});
