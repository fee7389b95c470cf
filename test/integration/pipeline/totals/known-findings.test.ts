import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { checkTotals } from "../../../../src/core/pipeline/proof/check-totals.ts";
import { sourceStatuses } from "../../../../src/core/store/activity/overview.ts";
import { alertFacts } from "../../../../src/features/alerts/alert-facts.store.ts";
import { metricFacts } from "../../../../src/web/metric-facts.ts";
import { platformError } from "../../../support/platform-error.ts";
import { senderOn } from "../../../support/source.ts";
import { check, dayInside, loaded, WORKSPACE } from "./bench.ts";

/** What was found before, and what was loaded since. */

describe("a known finding", () => {
  async function known() {
    const bench = await loaded(120);
    const { requests } = await check(bench, "quarter");
    const day = dayInside(bench, 6);
    const cell = senderOn(bench.standin, WORKSPACE, day);
    bench.standin.discrepancies.push({ stride: "day", groupBy: "project", cell, delta: 5 });
    const range = { start: day, end: day + DAY_MS };
    await bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all", groupings: ["project"] });
    const { findings } = await check(bench, "quarter");
    expect(findings.filter(({ kind }) => kind === "stride_total")).toHaveLength(1);
    return { bench, cell, day, requests };
  }

  test("costs no request while its numbers are the same", async () => {
    const { bench, requests } = await known();
    expect(await check(bench, "quarter")).toMatchObject({ requests, seen: requests, differences: 2 });
  });

  test("does not mask a new error of the same id in its window", async () => {
    const { bench, cell, day } = await known();
    await bench.sql("DELETE FROM usage.restatement");
    const next = { ...cell, at: cell.at + DAY_MS };
    for (const stride of ["day", "week", "month"] as const) {
      bench.standin.discrepancies.push({ stride, groupBy: "project", cell: next, delta: 3 });
    }
    expect((await check(bench, "quarter")).restated).toBe(1);
    expect(
      await bench.sql(
        "SELECT dimension_id, period_start, (new_amount - old_amount)::bigint AS more FROM reporting_detail.usage_restatement",
      ),
    ).toEqual([{ dimension_id: cell.project.id, period_start: new Date(day + DAY_MS), more: 3 }]);
  });

  test("stays while a second look at its window fails", async () => {
    const { bench } = await known();
    const left = () =>
      bench.sql(
        "SELECT scope_id, period_start, period_end FROM usage.difference WHERE compared_with <> 'export' AND closed_at IS NULL ORDER BY 1, 2",
      );
    const before = await left();
    const source = await bench.open({
      opened: ({ billing }) => {
        const { usage } = billing;
        const requested = new Set<string>();
        Object.assign(billing, {
          usage: async (...call: Parameters<typeof usage>) => {
            const query = JSON.stringify(call[0]);
            if (requested.has(query)) throw platformError(500);
            requested.add(query);
            return usage(...call);
          },
        });
      },
    });
    const { failures, failed } = await checkTotals(source, "all");
    expect(failures).toBeGreaterThan(0);
    expect(failed[0]).toMatchObject({ code: "status_500" });
    expect(await left()).toEqual(before);
  });

  test("of a dimension's day does not mask a new error of that day", async () => {
    const bench = await loaded(12);
    const day = bench.today - 6 * DAY_MS;
    const cell = senderOn(bench.standin, WORKSPACE, day);
    bench.standin.discrepancies.push({ stride: "day", groupBy: "project", cell, delta: 5 });
    const range = { start: day, end: day + DAY_MS };
    await bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all", groupings: ["project"] });
    await check(bench, "quarter");
    expect(await check(bench, "quarter")).toMatchObject({ restated: 0 });
    await bench.sql(
      `UPDATE usage.dated_record r SET traces = r.traces - 2 FROM usage.series s JOIN usage.trace_scope c USING (scope_id)
       JOIN usage.entity e USING (entity_id)
       WHERE s.series_id = r.series_id AND c.stride = 'day' AND c.group_by = 'project' AND e.external_id = $1
         AND r.bucket_start = ($2::timestamptz AT TIME ZONE 'UTC')::date`,
      [cell.project.id, new Date(day)],
    );
    expect(await check(bench, "quarter")).toMatchObject({ restated: 1 });
    const [added] = await bench.sql<{ n: number }>(
      `UPDATE usage.dated_record r SET traces = r.traces + 5 FROM usage.series s JOIN usage.trace_scope c USING (scope_id)
       JOIN usage.entity e USING (entity_id)
       WHERE s.series_id = r.series_id AND c.stride = 'day' AND c.group_by = 'user' AND e.external_id = $1
         AND r.bucket_start = ($2::timestamptz AT TIME ZONE 'UTC')::date RETURNING 1 AS n`,
      [cell.user?.id, new Date(day)],
    );
    expect(added).toEqual({ n: 1 });
    const { restated, findings } = await check(bench, "quarter");
    expect(restated).toBe(1);
    expect(findings).toMatchObject([{ kind: "grouping_total", groupBy: "project" }]);
  });

  test("of a workspace that is no longer configured ends, and is found again when it is", async () => {
    const { bench } = await known();
    const state = async () => ({
      kept: (
        await bench.sql<{ state: string }>(
          "SELECT DISTINCT state FROM usage.difference WHERE compared_with <> 'export'",
        )
      ).map((row) => row.state),
      alerts: (await alertFacts(bench.store.db, 1))[0]?.controlTotals.count,
      status: (await sourceStatuses(bench.store.db))[0]?.platformDisagrees,
      metrics: (await metricFacts(bench.store.db)).differences.length,
    });
    const standing = { kept: ["platform_disagrees"], alerts: 2, status: 2, metrics: 2 };
    expect(await state()).toEqual(standing);
    const other = bench.standin.organisation.workspaces[0]?.id ?? "";
    await checkTotals(await bench.open({ config: { workspaceIds: [other] } }), "quarter");
    expect(await state()).toEqual({ kept: ["not_configured"], alerts: 0, status: 0, metrics: 0 });
    expect(await check(bench, "quarter")).toMatchObject({ differences: 2 });
    expect(await state()).toEqual(standing);
  });
});

test("days that were loaded again after a total was requested are not compared with it", async () => {
  const bench = await loaded(60);
  const day = dayInside(bench, 4);
  const { requests } = await check(bench);
  const before = bench.standin.requests.count;
  const source = await bench.open({
    opened: ({ billing }) => {
      const { usage } = billing;
      let isFirst = true;
      Object.assign(billing, {
        usage: async (...requested: Parameters<typeof usage>) => {
          const response = await usage(...requested);
          if (isFirst) {
            isFirst = false;
            bench.standin.ledger.change(senderOn(bench.standin, WORKSPACE, day), 4);
            const range = { start: day, end: day + DAY_MS };
            const wanted = [{ stride: "day" as const, range }];
            await bench.fetch({ wanted, reprocess: "all", groupings: ["workspace"] });
          }
          return response;
        },
      });
    },
  });
  const result = await checkTotals(source, "all");
  expect(result.requests - requests).toBeLessThanOrEqual(6);
  expect(bench.standin.requests.count).toBeGreaterThan(before);
  expect(await bench.sql("SELECT FROM usage.difference WHERE compared_with <> 'export'")).toEqual([]);
  const proved = result.daysProved;
  expect((await check(bench)).daysProved).toBeGreaterThan(proved);
});
