import { sql } from "kysely";
import { expect, test } from "vitest";
import { GROUPINGS } from "../../src/core/domain/usage/record.ts";
import { applyListing, registerWorkspaces } from "../../src/core/store/access/workspaces.ts";
import { drawFetchToken } from "../../src/core/store/work/fetch-ledger.ts";
import { alertFacts } from "../../src/features/alerts/alert-facts.store.ts";
import { openDaysOf } from "../../src/features/close/open-days.store.ts";
import { createDimension, createPrices } from "../support/charges.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { inSchema } from "../support/views.ts";

const [KEPT, REMOVED] = WORKSPACES;
const AFTER_19_MARCH = Array.from({ length: 42 }, (_, at) => at + 19);

async function setup() {
  const bench = await setupSource();
  for (const groupBy of GROUPINGS) {
    await createDimension(bench, groupBy, {
      workspaces: WORKSPACES,
      records: WORKSPACES.flatMap((workspace) =>
        [0, 18, 25, 40].map((at) => [workspace, at, groupBy === "workspace" ? workspace : "one", 7] as const),
      ),
      leftOut: { [REMOVED]: AFTER_19_MARCH },
    });
  }
  await createPrices(bench.store, [{ unitPrice: "1" }, { unitPrice: "2", fromQuantity: 10 }]);
  const client = await connectPlain(bench.url, "usage_reader");
  const lines = async (query: string) =>
    (await client.query<{ line: string }>(query)).rows.map(({ line }) => line);
  return {
    ...bench,
    statements: () =>
      lines(`
        SELECT concat_ws(' ', 'final days', to_char(min(usage_date), 'MM-DD'), to_char(max(usage_date), 'MM-DD'), count(*)) AS line
        FROM reporting.dim_date WHERE is_final GROUP BY month_start
        UNION ALL
        SELECT concat_ws(' ', 'cost', to_char(usage_date, 'MM-DD'), right(workspace_id, 1), bool_and(is_final))
        FROM reporting.fct_cost_workspace_daily GROUP BY usage_date, workspace_id
        ORDER BY 1`),
    shown: () =>
      lines(
        `${[
          ["fct_usage_workspace_daily", "usage_date", ""],
          ["fct_usage_project_daily", "usage_date", "AND traces IS NULL"],
          ["usage_coverage_daily", "usage_date", "AND stride = 'day'"],
          ["usage_coverage_daily", "usage_date", "AND stride = 'hour'"],
          ["usage_unattributed_daily", "usage_date", "AND group_by = 'user'"],
          ["fct_usage_workspace_hourly", "usage_hour", ""],
          ["fct_usage_by_id_hourly", "usage_hour", "AND group_by = 'user'"],
          ["fct_usage_monthly", "month_start", "AND group_by = 'workspace'"],
          ["fct_usage_monthly", "month_start", "AND group_by = 'user'"],
          ["usage_month_to_date", "month_start", ""],
        ]
          .map(
            ([view = "", time, where], at) => `
              SELECT ${at} AS n, concat_ws(' ', '${view}', to_char(min(${time}), 'MM-DD'), to_char(max(${time}), 'MM-DD'), count(*)) AS line
              FROM ${inSchema(view)} WHERE workspace_id = '${REMOVED}' ${where} HAVING count(*) > 0`,
          )
          .join(" UNION ALL ")} ORDER BY n`,
      ),
    required: async (month: string, end: string) => {
      const [checked] = await openDaysOf(bench.store.db, {
        sourceId: bench.sourceId,
        ranges: [{ start: Date.parse(month), end: Date.parse(end) }],
      });
      return (checked?.required ?? []).map(({ workspaceId, access }) => `${workspaceId.slice(-1)} ${access}`);
    },
  };
}

const MARCH = ["cost 03-01 1 t", "cost 03-01 2 t", "cost 03-19 1 t", "cost 03-19 2 t"];

test("a workspace that is no longer configured is expected in the months in which it was loaded, and in no other", async () => {
  const bench = await setup();
  const { store, sourceId } = bench;
  const waiting = [...MARCH, "cost 03-26 1 f", "cost 04-10 1 f", "final days 03-01 03-19 19"];
  expect(await bench.statements()).toEqual(waiting);
  const before = await bench.shown();
  expect(before).toHaveLength(10);

  await registerWorkspaces(store.db, { sourceId, workspaceIds: [KEPT] });
  expect(await bench.statements()).toEqual([
    ...MARCH,
    "cost 03-26 1 f",
    "cost 04-10 1 t",
    "final days 03-01 03-19 19",
    "final days 04-01 04-30 30",
  ]);
  expect(await bench.shown()).toEqual([
    "fct_usage_workspace_daily 03-01 03-31 31",
    "fct_usage_project_daily 03-20 03-31 12",
    "usage_coverage_daily 03-01 03-31 124",
    "usage_unattributed_daily 03-01 03-31 31",
    "fct_usage_monthly 03-01 03-01 1",
    "fct_usage_monthly 03-01 03-01 1",
  ]);
  expect(await bench.required("2026-03-01", "2026-04-01")).toEqual(["1 read", "2 not_configured"]);
  expect(await bench.required("2026-04-01", "2026-05-01")).toEqual(["1 read"]);

  await registerWorkspaces(store.db, { sourceId, workspaceIds: WORKSPACES });
  expect([await bench.statements(), await bench.shown()]).toEqual([waiting, before]);
});

test("days are final without a workspace that left the listing in an earlier month, and it stays unverified", async () => {
  const bench = await setup();
  const { store, sourceId } = bench;
  const before = await bench.shown();
  await registerWorkspaces(store.db, { sourceId, workspaceIds: [] });
  await applyListing(store, {
    sourceId,
    workspaces: [{ workspaceId: KEPT, name: null, isDeleted: false }],
    fetchToken: await drawFetchToken(store.db),
  });
  const final = async (leftOn: string) => {
    await store.statement((db) =>
      sql`
        update usage.workspace set unlisted_since = ${new Date(leftOn)} where unlisted_since is not null
      `.execute(db),
    );
    const [last] = (await bench.statements()).toReversed();
    return [last, ...(await bench.required("2026-04-01", "2026-05-01"))];
  };
  expect(await final("2026-04-30T23:59Z")).toEqual(["final days 03-01 03-19 19", "1 read", "2 unlisted"]);
  expect(await final("2026-03-31T23:59Z")).toEqual(["final days 04-01 04-30 30", "1 read"]);
  // Its days are asked for, so they have rows, and the alarm stays.
  expect(await bench.shown()).toEqual(before);
  expect(await alertFacts(store.db, sourceId)).toMatchObject([{ lostWorkspaces: { count: 1 } }]);
  await registerWorkspaces(store.db, { sourceId, workspaceIds: [KEPT] });
  expect(await alertFacts(store.db, sourceId)).toMatchObject([{ lostWorkspaces: { count: 0 } }]);
});
