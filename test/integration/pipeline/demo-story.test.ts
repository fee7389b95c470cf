import { DateTime } from "luxon";
import { expect, onTestFinished, test } from "vitest";
import { createLoader } from "../../../src/cli/commands/demo/loader.ts";
import { giveOwners, plant } from "../../../src/cli/commands/demo/plant.ts";
import { createOutput } from "../../../src/cli/report/output.ts";
import type { Session } from "../../../src/cli/session/session.ts";
import { DAY_MS } from "../../../src/domain/time/stride.ts";
import { daysOf, PLANTED, readStory, type Story, startTroubled } from "../../../src/local/demo/story.ts";
import { runInline } from "../../../src/pipeline/extract/run-inline.ts";
import { planSource } from "../../../src/pipeline/sync/plan.ts";
import { closeMonth } from "../../../src/store/months/month-close.ts";
import { type Bench, setup } from "../../support/source.ts";

const SESSION = {
  output: createOutput({ json: true }),
  signal: new AbortController().signal,
} as Session;

/** What a demo does after its first sync; its stand-in is new each time. */
async function tell(bench: Bench, story: Story) {
  const troubled = await startTroubled(story);
  const { standin, workspaces } = troubled;
  onTestFinished(() => standin.close());
  const source = await bench.open({
    baseUrl: standin.url,
    config: {
      slug: PLANTED,
      dataStart: story.closed,
      workspaceIds: workspaces.map(({ id }) => id),
    },
  });
  await plant(source, { story, troubled, loader: createLoader(SESSION, undefined) });
  await giveOwners(source);
  return { source, refused: workspaces[0].id, changed: workspaces[1].id };
}

/** What the pages show of it. */
async function shown({ sql }: Bench) {
  const of = `source_id = '${PLANTED}'`;
  return {
    gaps: await sql(
      `SELECT group_by, usage_date::text AS day, workspace_id FROM reporting_detail.usage_coverage_daily
       WHERE ${of} AND stride = 'day' AND status = 'failed' ORDER BY 1, 2`,
    ),
    failures: await sql(
      `SELECT DISTINCT f.code, f.retry_at > now() AS later FROM usage.failure f JOIN usage.trace_scope s USING (scope_id)`,
    ),
    uncounted: await sql(
      `SELECT usage_date::text AS day FROM reporting.fct_usage_workspace_daily
       WHERE ${of} AND traces IS NULL AND usage_date < (now() AT TIME ZONE 'UTC')::date ORDER BY 1`,
    ),
    restated: await sql(
      `SELECT group_by, (period_start AT TIME ZONE 'UTC')::date::text AS day, (new_amount - old_amount)::bigint AS more
       FROM reporting_detail.usage_restatement WHERE ${of} ORDER BY 1, 2`,
    ),
    differences: await sql(
      `SELECT group_by, (period_start AT TIME ZONE 'UTC')::date::text AS day, state, (other_amount - stored_amount)::bigint AS more
       FROM reporting_detail.usage_reconciliation WHERE ${of} AND state = 'platform_disagrees' ORDER BY 1`,
    ),
    closed: await sql(
      `SELECT month_start::text AS month, sum(adjustment_traces)::integer AS adjusted FROM reporting_detail.fct_month_close_by_dimension
       WHERE ${of} AND group_by = 'workspace' GROUP BY 1`,
    ),
    costs: await sql(
      `SELECT count(*) > 0 AS priced FROM reporting_detail.fct_month_close_cost WHERE ${of} AND closed_cost > 0`,
    ),
    owners: await sql(
      `SELECT count(*)::integer AS applied FROM usage.operator_action WHERE action = 'owners.apply' AND detail = 'owners.yaml: 3 rules'`,
    ),
    backfills: await sql(`SELECT state, count(*) AS count FROM usage.backfill GROUP BY 1`),
    waiting: await sql(`SELECT count(*) > 0 AS waits FROM usage.fetch_task WHERE state = 'waiting'`),
  };
}

test("the demo plants a gap, a failure, a restatement, a difference, a closed month, owners and a paused backfill, once", async () => {
  const bench = await setup();
  const story = readStory("/nowhere", Date.now());
  const { source, refused, changed } = await tell(bench, story);
  const { restated, differing } = daysOf(story);
  const days = [0, 1, 2].map((day) =>
    new Date(Date.parse(story.refused.from) + day * DAY_MS).toISOString().slice(0, 10),
  );
  const dimensions = ["api_key", "project", "user", "workspace"];
  const failing = { group_by: "user", day: story.failing, workspace_id: changed };
  const first = await shown(bench);
  expect(first).toEqual({
    gaps: dimensions.flatMap((group_by) => [
      ...(group_by === "user" ? [failing] : []),
      ...days.map((day) => ({ group_by, day, workspace_id: refused })),
    ]),
    failures: [{ code: "request_refused", later: true }],
    uncounted: days.map((day) => ({ day })),
    restated: dimensions.map((group_by) => ({ group_by, day: restated, more: 120 })),
    differences: dimensions.map((group_by) => ({
      group_by,
      day: differing,
      state: "platform_disagrees",
      more: 25,
    })),
    closed: [{ month: story.closed, adjusted: 120 }],
    costs: [{ priced: true }],
    owners: [{ applied: 1 }],
    backfills: [{ state: "paused", count: 1 }],
    waiting: [{ waits: true }],
  });
  const next = await closeMonth(bench.store, {
    sourceId: source.sourceId,
    settleAfterMs: source.settings.settleAfterMs,
    monthStart: `${differing.slice(0, 7)}-01`,
    by: { name: null, role: "operator", via: "command" },
  });
  expect(next).toMatchObject({ state: "open" });
  // In the first days of a month, the one before it has not final, and what fails lies in it.
  const month = DateTime.fromISO(differing, { zone: "utc" }).startOf("month");
  const final = month.plus({ months: 1 }).toMillis() + source.settings.settleAfterMs;
  expect(new Set(next.state === "open" ? next.open.map(({ reason }) => reason) : [])).toEqual(
    new Set([
      "platform_disagrees",
      ...(month.hasSame(DateTime.fromISO(story.failing, { zone: "utc" }), "month") ? ["failed"] : []),
      ...(final > bench.today ? ["provisional"] : []),
    ]),
  );

  // The next demo on the same data has a stand-in that knows nothing of it yet.
  const { source: again } = await tell(bench, story);
  expect(await shown(bench)).toEqual(first);

  // Whoever loads the gap closes it. The failure stays.
  const range = { start: Date.parse(story.closed), end: Date.parse(story.refused.to) };
  const wanted = [{ stride: "day", range }] as const;
  await runInline(again, await planSource(again, { wanted, reprocess: "missing", retry: "all" }));
  expect(await shown(bench)).toEqual({ ...first, gaps: [failing], uncounted: [] });
});
