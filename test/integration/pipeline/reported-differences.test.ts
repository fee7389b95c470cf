import { expect, test } from "vitest";
import { METER, METERS, type Meter } from "../../../src/core/domain/usage/meter.ts";
import { sourceStatuses } from "../../../src/core/store/activity/overview.ts";
import { listDifferences } from "../../../src/features/activity/difference-list.store.ts";
import { alertFacts } from "../../../src/features/alerts/alert-facts.store.ts";
import { openIncidents } from "../../../src/features/alerts/conditions.ts";
import { trustOfSources } from "../../../src/features/coverage/trust.store.ts";
import { adviseOn } from "../../../src/features/status/advice.ts";
import { metricFacts } from "../../../src/web/metric-facts.ts";
import { numberIn } from "../../support/dom.ts";
import { EVERYTHING, setupMeters } from "../../support/meters.ts";
import { setupPages } from "../../support/pages.ts";

const EXPORT = ["open", "platform_disagrees"] as const;
const TOTALS: Readonly<Record<Exclude<Meter, "shortlived" | "sandboxes" | "evaluators">, readonly string[]>> =
  {
    traces: ["stride_total", "grouping_total"],
    longlived: ["stride_total", "grouping_total", "tier_total", "tier_exceeds"],
    deployments: ["stride_total"],
  };

test("status, alerts, metrics, pages and advice tell of a difference of every meter, measure and kind", async () => {
  const bench = await setupMeters({ workspaces: [0] });
  await bench.sync(EVERYTHING);
  const { db } = bench.store;
  const from = new Date(bench.dataStart).toISOString();
  const to = new Date(bench.dataStart + 7 * 86_400_000).toISOString();
  const pages = await setupPages(bench);
  const planted: string[] = [];
  for (const meter of METERS.filter(
    (one) => one !== "shortlived" && one !== "sandboxes" && one !== "evaluators",
  )) {
    const { kind: ofKind, tier, measures } = METER[meter];
    for (const measure of measures) {
      for (const state of EXPORT) {
        await bench.sql(
          `INSERT INTO usage.difference
             (scope_id, compared_with, external_id, period_start, period_end, measure, kind, stored_traces, other_traces, state, fetch_number)
           SELECT scope_id, 'export', $1, $2, $2::timestamptz + interval '1 day', $3, 'traces_differ', 4, 5, $1, 1 FROM usage.scope
           WHERE stride = 'day' AND group_by = 'project' AND kind = $4 AND trace_tier = $5`,
          [state, from, measure, ofKind, tier],
        );
        planted.push(`export ${meter} ${measure} traces_differ ${state}`);
      }
      for (const kind of TOTALS[meter as keyof typeof TOTALS]) {
        await bench.sql(
          `INSERT INTO usage.difference
             (scope_id, compared_with, kind, period_start, period_end, external_id, measure, stored_traces, other_traces, state, fetch_number)
           SELECT scope_id, $1, $1, $2, $3, 'x', $4, 6, 7, 'platform_disagrees', 1 FROM usage.scope
           WHERE stride = 'day' AND group_by = 'workspace' AND kind = $5 AND trace_tier = $6`,
          [kind, from, to, measure, ofKind, tier],
        );
        planted.push(`total ${meter} ${measure} ${kind} platform_disagrees`);
      }
    }
  }
  const open = planted.filter((one) => one.endsWith(" open")).length;
  const contradicted = planted.length - open;
  const totals = planted.filter((one) => one.startsWith("total")).length;

  const [status] = await sourceStatuses(db);
  expect(status).toMatchObject({ openDifferences: open, platformDisagrees: contradicted });
  expect(status?.otherDifferences).toEqual([
    { kind: "traces", tier: "longlived", open: 1, platformDisagrees: 5 },
    { kind: "langsmith_deployments", tier: "all", open: 3, platformDisagrees: 6 },
  ]);
  const [facts] = await alertFacts(db);
  expect(facts?.differences.count).toBe(contradicted - totals);
  expect(facts?.controlTotals.count).toBe(totals);
  const firing =
    (await openIncidents(db, { staleAfterMs: 1e12, firstSource: "default" })).get("default") ?? [];
  expect(firing.map(({ kind }) => kind)).toEqual(["difference", "control_total"]);

  const metrics = await metricFacts(db);
  expect(metrics.sources[0]?.openDifferences).toBe(open);
  const shown = metrics.differences.map(({ meter, kind, state, differences }) => [
    `${meter} ${kind} ${state}`,
    differences,
  ]);
  const expected = Map.groupBy(planted, (one) => one.replace(/^\w+ (\w+) \w+ /, "$1 "));
  expect(Object.fromEntries(shown)).toEqual(
    Object.fromEntries([...expected].map(([key, all]) => [key, all.length])),
  );

  const listed: string[] = [];
  let before: Awaited<ReturnType<typeof listDifferences>>[number]["cursor"] | undefined;
  for (;;) {
    const [row] = await listDifferences(db, {
      source: "default",
      onlyLeft: true,
      most: 1,
      masked: false,
      before,
    });
    if (row === undefined) break;
    expect([row.storedAmount, row.otherAmount]).toEqual(row.says === "export" ? [4, 5] : [6, 7]);
    listed.push(`${row.says} ${row.meter} ${row.measure} ${row.kind} ${row.state}`);
    before = row.cursor;
  }
  expect(listed.sort()).toEqual([...planted].sort());
  for (const [meter, expected] of [
    ["longlived", 5],
    ["deployments", 6],
  ] as const) {
    const rows = (await pages.read(`/differences?source=default&meter=${meter}`)).table("Differences");
    const sums = rows.flatMap(({ Stored, Reported, Difference = "" }) =>
      Difference === "" ? [] : [[numberIn(Stored) + numberIn(Difference), numberIn(Reported)]],
    );
    expect(sums).toHaveLength(expected);
    for (const [sum, reported] of sums) expect(sum).toBe(reported);
  }
  expect((await pages.get("/")).text).toContain("; of deployment usage: 3 open, 6 where the platform");

  const [trust] = await trustOfSources(db);
  if (trust === undefined) throw new Error("no source");
  expect(trust.disagreements).toBe(contradicted);
  const now = { source: "default", trust, refused: null, workers: null, redis: null, stale: null };
  const requested = {
    ...now,
    sourceFlags: "",
    unread: [],
    neverRead: [],
    lastSyncFailure: null,
    unpriced: false,
    nextSync: null,
  };
  expect(adviseOn({ ...requested, openDifferences: status?.openDifferences ?? 0 }).command).toMatch(
    /^usage-etl reconcile --from .* --repair$/,
  );
  expect(adviseOn({ ...requested, openDifferences: 0 }).sentence).toContain(`${contradicted} differences`);
});
