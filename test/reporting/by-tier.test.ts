import { expect, test } from "vitest";
import type { Meter } from "../../src/core/domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../src/core/domain/usage/record.ts";
import { learnMeter } from "../../src/core/store/catalog/source-meters.ts";
import { KEEP_PROOF } from "../support/by-hand.ts";
import { client, lines, setUpEachSource, sourceId, store } from "../support/each-source.ts";
import { WORKSPACES } from "../support/reporting.ts";
import { loadRows, type ResponseRow, windowOf } from "../support/store.ts";
import { inSchema } from "../support/views.ts";

const [WORKSPACE] = WORKSPACES;
const [CHAT, CODE, NEWS, LATE] = ["0a", "0b", "0c", "0d"].map(
  (last) => `00000000-0000-4000-8000-0000000000${last}`,
) as [string, string, string, string];

setUpEachSource();

const load = (
  meter: Meter,
  groupBy: GroupBy,
  [from, to]: readonly [string, string],
  rows: readonly ResponseRow[],
) =>
  loadRows(store, {
    sourceId,
    meter,
    groupBy,
    workspaceId: WORKSPACE,
    window: windowOf("day", from, to),
    rows,
  });

const byWorkspace = (to: string) =>
  lines(`SELECT usage_date, longlived_traces, shortlived_traces, tiers_status FROM reporting.fct_usage_workspace_daily
         WHERE workspace_id = '${WORKSPACE}' AND usage_date < '${to}' ORDER BY 1`);

test("a server that does not count tiers has none, which is not zero; what it counted before stays", async () => {
  const learn = (state: "counted" | "not_counted") =>
    learnMeter(store.db, { sourceId, meter: "longlived", state, evidence: "test" });
  await learn("not_counted");
  await load("traces", "workspace", ["2026-03-01", "2026-04-01"], [["2026-03-02", WORKSPACE, 10]]);
  await load("traces", "project", ["2026-03-01", "2026-04-01"], [["2026-03-02", CHAT, 10]]);
  const statuses = (view: string, which = "true") =>
    lines(
      `SELECT tiers_status, count(*), count(longlived_traces), count(shortlived_traces) FROM ${inSchema(view)} WHERE ${which} GROUP BY 1`,
    );
  const days = Number((await lines("SELECT (now() AT TIME ZONE 'UTC')::date - '2026-03-01'::date + 1"))[0]);
  expect(await statuses("fct_usage_workspace_daily")).toEqual([`not_available ${2 * days} 0 0`]);
  expect(await statuses("fct_usage_project_daily")).toEqual([`not_available ${2 * days - 30} 0 0`]);
  const [months = ""] = await statuses("fct_usage_monthly", "group_by = 'project'");
  expect(months.replace(/ \d+ /, " ")).toBe("not_available 0 0");
  expect(await lines("SELECT count(*) FROM reporting_detail.usage_upgrade_project_monthly")).toEqual(["0"]);

  await learn("counted");
  await load("longlived", "workspace", ["2026-03-01", "2026-03-15"], [["2026-03-02", WORKSPACE, 4]]);
  await learn("not_counted");
  expect((await byWorkspace("2026-03-16")).at(-1)).toBe("2026-03-15 - - missing");
  await learn("not_counted");
  const shown = await byWorkspace("2026-03-16");
  expect([shown[1], shown.at(-1)]).toEqual(["2026-03-02 4 6 ok", "2026-03-15 - - not_available"]);
  // All traces of the month less the long-lived ones of half of it would be wrong.
  expect(
    await lines(`SELECT traces, longlived_traces, shortlived_traces, tiers_status FROM reporting_detail.fct_usage_monthly
                 WHERE group_by = 'workspace' AND month_start = '2026-03-01' AND workspace_id = '${WORKSPACE}'`),
  ).toEqual(["10 - - not_available"]);
});

test("ids have both tiers by day and by month, and both are its traces", async () => {
  const march = ["2026-03-01", "2026-04-01"] as const;
  const april = ["2026-04-01", "2026-05-01"] as const;
  await load("traces", "project", march, [
    ["2026-03-01", CHAT, 10, "chat"],
    ["2026-03-09", CHAT, 90, "chat"],
    ["2026-03-01", CODE, 5, "code"],
  ]);
  await load("longlived", "project", march, [
    ["2026-03-01", CHAT, 1, "chat"],
    ["2026-03-09", CHAT, 19, "chat"],
  ]);
  await load("traces", "project", april, [
    ["2026-04-01", CHAT, 100, "chat"],
    ["2026-04-02", CODE, 1, "code"],
    ["2026-04-02", NEWS, 1, "news"],
  ]);
  await load("longlived", "project", april, [
    ["2026-04-01", CHAT, 50, "chat"],
    ["2026-04-02", CODE, 2, "code"],
    ["2026-04-02", LATE, 3, "late"],
  ]);
  const daily = await lines(`
    SELECT usage_date, project_name, traces, longlived_traces, shortlived_traces, tiers_status FROM reporting.fct_usage_project_daily
    WHERE workspace_id = '${WORKSPACE}' AND usage_date < '2026-05-01' AND project_id IS NOT NULL ORDER BY 1, 2`);
  expect(daily).toEqual([
    "2026-03-01 chat 10 1 9 ok",
    "2026-03-01 code 5 0 5 ok",
    "2026-03-09 chat 90 19 71 ok",
    "2026-04-01 chat 100 50 50 ok",
    "2026-04-02 code 1 2 - inconsistent",
    "2026-04-02 news 1 0 1 ok",
  ]);
  const monthly = await lines(`
    SELECT month_start, dimension_name, traces, longlived_traces, shortlived_traces, tiers_status FROM reporting_detail.fct_usage_monthly
    WHERE group_by = 'project' AND workspace_id = '${WORKSPACE}' AND month_start < '2026-05-01' ORDER BY 1, 2`);
  expect(monthly).toEqual([
    "2026-03-01 chat 100 20 80 ok",
    "2026-03-01 code 5 0 5 ok",
    "2026-04-01 chat 100 50 50 ok",
    "2026-04-01 code 1 2 - inconsistent",
    "2026-04-01 news 1 0 1 ok",
  ]);
  const upgrades = () =>
    lines(`SELECT month_start, project_name, traces, longlived_traces, longlived_share, previous_longlived_traces,
                  previous_longlived_share, longlived_change, longlived_share_change, upgraded_when_final, is_final
           FROM reporting_detail.usage_upgrade_project_monthly ORDER BY 1, 2`);
  expect(await upgrades()).toEqual([
    "2026-03-01 chat 100 20 0.200000 - - - - 0 t",
    "2026-03-01 code 5 0 0.000000 - - - - 0 t",
    "2026-04-01 chat 100 50 0.500000 20 0.200000 30 0.300000 0 t",
    "2026-04-01 code - 2 - 0 0.000000 2 - 0 f",
    "2026-04-01 late - 3 - 0 - 3 - 0 f",
    "2026-04-01 news 1 0 0.000000 0 - 0 - 0 t",
  ]);
  await load("longlived", "project", ["2026-03-09", "2026-03-10"], [["2026-03-09", CHAT, 49, "chat"]]);
  expect((await upgrades()).slice(0, 3)).toEqual([
    "2026-03-01 chat 100 50 0.500000 - - - - 30 t",
    "2026-03-01 code 5 0 0.000000 - - - - 0 t",
    "2026-04-01 chat 100 50 0.500000 50 0.500000 0 0.000000 0 t",
  ]);
  const reconciled = () =>
    lines(`SELECT DISTINCT month_start, is_reconciled, to_char(proved_at AT TIME ZONE 'UTC', 'YYYY-MM')
           FROM reporting_detail.usage_upgrade_project_monthly WHERE traces IS NOT NULL ORDER BY 1`);
  await reconcile("traces", "2026-05-01", march);
  await reconcile("longlived", "2026-06-01", ["2026-03-01", "2026-03-31"]);
  expect(await reconciled()).toEqual(["2026-03-01 f -", "2026-04-01 f -"]);
  await reconcile("longlived", "2026-04-01", ["2026-03-31", "2026-04-01"]);
  await reconcile("traces", "2026-05-01", april);
  expect(await reconciled()).toEqual(["2026-03-01 t 2026-04", "2026-04-01 f -"]);
});

const reconcile = async (
  meter: "traces" | "longlived",
  reconciledAt: string,
  [from, to]: readonly [string, string],
  groupings: readonly GroupBy[] = GROUPINGS,
) => {
  await client.query(
    `INSERT INTO usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
     SELECT c.scope_id, $1::timestamptz, $2::timestamptz, 999, $3::timestamptz
     FROM usage.scope c JOIN usage.entity w ON w.entity_id = c.workspace_id
     WHERE c.stride = 'day' AND c.trace_tier = $4 AND w.external_id = $5 AND c.group_by = ANY ($6)`,
    [`${from}Z`, `${to}Z`, `${reconciledAt}Z`, meter === "traces" ? "all" : meter, WORKSPACE, groupings],
  );
  await client.query(KEEP_PROOF);
};

test("a day of a tier is reconciled by its own export, and until a restatement", async () => {
  const days = ["2026-03-01", "2026-03-05"] as const;
  for (const [meter, traces] of [["traces", 10] as const, ["longlived", 4] as const]) {
    const rows = [2, 3, 4].map((day) => [`2026-03-0${day}`, CHAT, traces] as const);
    await load(meter, "project", days, rows);
  }
  const proofOf = (tier: string) =>
    lines(`SELECT string_agg(
             concat_ws(' ', to_char(usage_date, 'DD'), CASE WHEN is_reconciled THEN to_char(reconciled_at AT TIME ZONE 'UTC', 'YYYY') ELSE '-' END,
                       to_char(proved_at AT TIME ZONE 'UTC', 'YYYY')), ', ' ORDER BY usage_date)
           FROM reporting_detail.usage_coverage_by_kind_daily
           WHERE workspace_id = '${WORKSPACE}' AND usage_date BETWEEN '2026-03-02' AND '2026-03-05'
             AND kind = 'traces' AND group_by = 'project' AND trace_tier = '${tier}'`);
  const both = async () => [...(await proofOf("all")), ...(await proofOf("longlived"))];
  const none = "02 -, 03 -, 04 -, 05 -";
  const until = (year: number) => `02 ${year} ${year}, 03 ${year} ${year}, 04 ${year} ${year}, 05 -`;
  const proved = ["2026-03-02", "2026-03-05"] as const;
  await reconcile("traces", "2026-05-01", proved);
  expect(await both()).toEqual([until(2026), none]);
  await reconcile("longlived", "2025-05-01", proved);
  expect(await both()).toEqual([until(2026), until(2025)]);
  await load("longlived", "project", ["2026-03-03", "2026-03-04"], [["2026-03-03", CHAT, 5]]);
  expect(await both()).toEqual([until(2026), "02 2025 2025, 03 -, 04 2025 2025, 05 -"]);
  await client.query(`INSERT INTO usage.difference (scope_id, compared_with, kind, period_start, period_end, external_id, stored_traces, other_traces, state, fetch_number)
    SELECT scope_id, 'tier_exceeds', 'tier_exceeds', '2026-03-02Z', '2026-03-03Z', 'x', 1, 2, 'platform_disagrees', 999 FROM usage.scope
    WHERE trace_tier = 'longlived' AND group_by = 'project' AND stride = 'day'; ${KEEP_PROOF}`);
  expect(await both()).toEqual([until(2026), "02 -, 03 -, 04 2025 2025, 05 -"]);
});

test("a query of a view of traces reads tiers only if it asks for them", async () => {
  const planOf = async (view: string, columns: string, group: string) =>
    (await lines(`EXPLAIN SELECT ${columns} FROM ${inSchema(view)} WHERE ${group}`)).join("\n");
  const views = GROUPINGS.flatMap((groupBy) => [
    [`fct_usage_${groupBy}_daily`, "true"] as const,
    ["fct_usage_monthly", `group_by = '${groupBy}'`] as const,
  ]);
  for (const [view, group] of views) {
    expect(await planOf(view, "traces, is_final", group), view).not.toMatch(/longlived/);
    expect(await planOf(view, "traces, tiers_status", group), view).toMatch(/longlived/);
  }
});
