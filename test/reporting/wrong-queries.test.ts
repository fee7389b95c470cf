import { expect, test } from "vitest";
import { GROUPINGS } from "../../src/core/domain/usage/record.ts";
import { CLOSE_MARCH, createPrices, dayOf } from "../support/charges.ts";
import { setOwners } from "../support/owners.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadDeploymentRows, loadRows, type ResponseRow, windowOf } from "../support/store.ts";

async function setup() {
  const { store, url, sourceId } = await setupSource();
  const window = windowOf("day", dayOf(0), dayOf(61));
  const counts = { "": 2, one: 4, two: 6 };
  for (const workspaceId of WORKSPACES) {
    for (const groupBy of GROUPINGS) {
      const ids = groupBy === "workspace" ? { [workspaceId]: 12 } : counts;
      const given = { sourceId, workspaceId, groupBy, window };
      const all = [3, 40].flatMap((at) => Object.entries(ids).map((one) => [dayOf(at), ...one] as const));
      await loadRows(store, { ...given, rows: all.map(([day, id, n]): ResponseRow => [day, id, n]) });
      await loadRows(store, {
        ...given,
        meter: "longlived",
        rows: all.map(([day, id, n]): ResponseRow => [day, id, n / 2]),
      });
      await loadDeploymentRows(store, {
        ...given,
        rows: all.map(([day, id, n]) => [day, id, [n, n, n]] as const),
      });
    }
  }
  await createPrices(store, [{ unitPrice: "1" }, { sku: "runs", measure: "agent_runs", unitPrice: "2" }]);
  const client = await connectPlain(url);
  await client.query(CLOSE_MARCH);
  const owners = `rules:
    - { project: one, shares: [{ owner: search, share: 0.3333 }, { owner: chat, share: 0.6667 }] }
    - { workspace: ${WORKSPACES[0]}, owner: search, to: 2026-04-01 }`;
  await setOwners(store, owners);
  return client;
}

const TRACES = "48";
const COST = "144";

const QUERIES = [
  ["fct_usage_workspace_daily", "traces", TRACES],
  ["fct_usage_project_daily", "traces", TRACES],
  ["fct_usage_user_daily", "traces", TRACES],
  ["fct_usage_api_key_daily", "traces", TRACES],
  ["fct_cost_workspace_daily", "estimated_cost", COST],
  ["fct_usage_owner_daily", "traces", TRACES],
  ["fct_cost_owner_daily", "estimated_cost", COST],
  ["usage_bill_monthly", "estimated_cost", COST],
  ["fct_usage_project_daily JOIN reporting.dim_date USING (usage_date)", "traces", TRACES],
  ["fct_usage_project_daily JOIN reporting.dim_workspace USING (workspace_id)", "traces", TRACES],
  ["fct_usage_project_daily JOIN reporting.dim_project USING (project_id)", "traces", TRACES],
  ["fct_cost_owner_daily JOIN reporting.dim_date USING (usage_date)", "estimated_cost", COST],
  ["fct_usage_owner_daily JOIN reporting.dim_workspace USING (workspace_id)", "traces", TRACES],
] as const;

test("a sum over a view of reporting counts once, without a filter and joined by what looks like the key", async () => {
  const client = await setup();
  for (const [from, column, expected] of QUERIES) {
    const { rows } = await client.query(
      `SELECT trim_scale(sum(${column}))::text AS sum FROM reporting.${from}`,
    );
    expect(rows, from).toEqual([{ sum: expected }]);
  }
  const { rows } = await client.query(
    `SELECT table_name || '.' || column_name AS column FROM information_schema.columns
     WHERE table_schema = 'reporting' AND table_name LIKE 'fct\\_%'
       AND column_name IN ('group_by', 'stride', 'kind', 'trace_tier', 'dimension_id')`,
  );
  expect(rows).toEqual([]);
});
