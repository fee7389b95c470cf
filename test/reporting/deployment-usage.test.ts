import { expect, test } from "vitest";
import type { GroupBy } from "../../src/core/domain/usage/record.ts";
import { learnMeter } from "../../src/core/store/catalog/source-meters.ts";
import { KEEP_PROOF } from "../support/by-hand.ts";
import { client, lines, setUpEachSource, sourceId, store } from "../support/each-source.ts";
import { WORKSPACES } from "../support/reporting.ts";
import { type DeploymentRow, loadDeploymentRows, loadRows, windowOf } from "../support/store.ts";
import { inSchema } from "../support/views.ts";

const [WORKSPACE] = WORKSPACES;
const SHARED_ID = "00000000-0000-4000-8000-00000000000a";
const [ADA, BOB] = ["00000000-0000-4000-8000-00000000000c", "00000000-0000-4000-8000-00000000000d"];

setUpEachSource();

const load = (groupBy: GroupBy, [from, to]: readonly [string, string], rows: readonly DeploymentRow[]) =>
  loadDeploymentRows(store, {
    sourceId,
    groupBy,
    workspaceId: WORKSPACE,
    window: windowOf("day", from, to),
    rows,
  });

const MEASURES = `string_agg(coalesce(trim_scale(quantity)::text, '-'), ' ' ORDER BY array_position(
  ARRAY['nodes_executed', 'agent_runs', 'agent_uptime_seconds'], measure))`;
const VIEW = "reporting_detail.fct_other_usage_daily";

test("deployment usage begins where its own history begins, and is zero only where it is loaded", async () => {
  await learnMeter(store.db, {
    sourceId,
    meter: "deployments",
    state: "counted",
    evidence: "test",
    startsOn: "2026-03-04",
  });
  await load(
    "workspace",
    ["2026-03-04", "2026-03-07"],
    [
      ["2026-03-04", WORKSPACE, [100, 5, 86_400]],
      ["2026-03-06", WORKSPACE, [0, 0, 172_800]],
    ],
  );
  const daily = await lines(`
    SELECT usage_date, ${MEASURES}, max(coverage_status), bool_and(is_final) FROM ${VIEW}
    WHERE group_by = 'workspace' AND workspace_id = '${WORKSPACE}' AND usage_date BETWEEN '2026-03-03' AND '2026-03-07'
      AND meter = 'deployments' GROUP BY 1 ORDER BY 1`);
  expect(daily).toEqual([
    "2026-03-03 - - - not_available f",
    "2026-03-04 100 5 86400 ok t",
    "2026-03-05 0 0 0 empty t",
    "2026-03-06 0 0 172800 ok t",
    "2026-03-07 - - - missing f",
  ]);
  await client.query(`INSERT INTO usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
    SELECT scope_id, '2026-03-04Z', '2026-03-07Z', 999, '2026-05-01Z' FROM usage.scope WHERE kind = 'langsmith_deployments'`);
  await client.query(`INSERT INTO usage.difference (scope_id, compared_with, period_start, period_end, external_id, measure, kind, state, stored_traces, other_traces, fetch_number)
    SELECT scope_id, 'export', '2026-03-05Z', '2026-03-06Z', 'x', 'agent_runs', 'traces_differ', 'open', 1, 2, 999 FROM usage.scope WHERE kind = 'langsmith_deployments';
    ${KEEP_PROOF}`);
  const views = [
    "fct_other_usage_daily WHERE group_by = 'workspace' AND measure = 'agent_runs'",
    "usage_coverage_by_kind_daily WHERE group_by = 'workspace' AND kind <> 'traces'",
  ];
  for (const view of views) {
    expect(
      await lines(`SELECT to_char(usage_date, 'DD'), proved_at IS NOT NULL FROM (SELECT * FROM ${inSchema(view)}) v
                   WHERE workspace_id = '${WORKSPACE}' AND usage_date BETWEEN '2026-03-03' AND '2026-03-07'
                     AND is_reconciled = (proved_at IS NOT NULL) ORDER BY 1`),
      view,
    ).toEqual(["03 f", "04 t", "05 f", "06 t", "07 f"]);
  }
});

test("it may begin before the traces of its source", async () => {
  await learnMeter(store.db, {
    sourceId,
    meter: "deployments",
    state: "counted",
    evidence: "test",
    startsOn: "2026-01-20",
  });
  await load(
    "user",
    ["2026-01-20", "2026-02-01"],
    [["2026-01-20", ADA as string, [3, 2, 60], "ada@example.test"]],
  );
  expect(
    await lines(`SELECT usage_date, dimension_id, ${MEASURES}, max(coverage_status) FROM ${VIEW}
                 WHERE group_by = 'user' AND usage_date < '2026-02-02' AND workspace_id = '${WORKSPACE}' GROUP BY 1, 2 ORDER BY 1`),
  ).toEqual([`2026-01-20 ${ADA} 3 2 60 ok`, "2026-02-01 - - - - missing"]);
});

test("a deployment is no project, whatever its id; users and keys are those of traces", async () => {
  const days = ["2026-03-01", "2026-03-03"] as const;
  await loadRows(store, {
    sourceId,
    groupBy: "project",
    workspaceId: WORKSPACE,
    window: windowOf("day", ...days),
    rows: [["2026-03-01", SHARED_ID, 7, "a project"]],
  });
  await loadRows(store, {
    sourceId,
    groupBy: "user",
    workspaceId: WORKSPACE,
    window: windowOf("day", ...days),
    rows: [["2026-03-01", ADA as string, 7, "ada@example.test"]],
  });
  await load("project", days, [
    ["2026-03-01", SHARED_ID, [9, 1, 30], "a deployment"],
    ["2026-03-02", "", [1, 0, 0]],
  ]);
  await load("user", days, [
    ["2026-03-01", ADA as string, [9, 1, 30], "ada@example.test"],
    ["2026-03-02", BOB as string, [1, 0, 0], "bob@example.test"],
  ]);
  expect(
    await lines(`SELECT usage_date, dimension_id, ${MEASURES} FROM ${VIEW}
                 WHERE group_by = 'deployment' AND dimension_id IS NOT NULL GROUP BY 1, 2 ORDER BY 1`),
  ).toEqual([`2026-03-01 ${SHARED_ID} 9 1 30`, "2026-03-02 (none) 1 0 0"]);
  expect(
    await lines("SELECT dimension_id, dimension_name FROM reporting_detail.dim_resource ORDER BY 1"),
  ).toEqual(["(none) -", `${SHARED_ID} a deployment`]);
  expect(await lines("SELECT project_id, project_name, workspace_count FROM reporting.dim_project")).toEqual([
    `${SHARED_ID} a project 1`,
  ]);
  expect(await lines("SELECT user_email, workspace_count FROM reporting_detail.dim_user ORDER BY 1")).toEqual(
    ["ada@example.test 1", "bob@example.test 0"],
  );
  expect(await lines("SELECT DISTINCT user_id FROM reporting.fct_usage_user_daily WHERE traces > 0")).toEqual(
    [ADA],
  );
});
