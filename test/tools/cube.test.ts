import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { GROUPINGS } from "../../src/domain/usage/record.ts";
import { enterPrices } from "../support/charges.ts";
import { setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";
import { CUBE_MODULES, openCube } from "./cube/cube.ts";
import { CUBES, type Question, sqlOf } from "./cube/model.ts";

const [ONE, TWO] = WORKSPACES;
const MARCH = ["usage_date", "2026-03-01", "2026-03-31"] as const;

/** Each with its answer. Two workspaces with 12 final traces on 1 March, the first with 5 provisional ones on 2 March. */
const QUESTIONS: readonly (readonly [Question, readonly object[]])[] = [
  [
    {
      cube: "usage_workspace_daily",
      measures: ["traces", "final_traces", "days_missing", "all_final"],
      range: MARCH,
    },
    [{ traces: "29", final_traces: "24", days_missing: "59", all_final: false }],
  ],
  [
    {
      cube: "usage_workspace_daily",
      measures: ["traces"],
      dimensions: ["workspace_id"],
      filters: { is_final: "true" },
    },
    [
      { workspace_id: ONE, traces: "12" },
      { workspace_id: TWO, traces: "12" },
    ],
  ],
  [
    {
      cube: "usage_workspace_hourly",
      measures: ["traces", "all_final", "hours_missing"],
      filters: { coverage_status: "ok" },
    },
    [{ traces: "3", all_final: true, hours_missing: "0" }],
  ],
  ...(["project", "user", "api_key"] as const).map(
    (groupBy) =>
      [
        {
          cube: `usage_${groupBy}_daily`,
          measures: ["traces", "final_traces", `active_${groupBy}s`],
          range: MARCH,
        },
        [{ traces: "29", final_traces: "24", [`active_${groupBy}s`]: "1" }],
      ] as const,
  ),
  // Over all dimensions there is no such sum.
  [
    { cube: "usage_unattributed_daily", measures: ["unattributed_traces", "workspace_traces"] },
    [{ unattributed_traces: null, workspace_traces: null }],
  ],
  [
    {
      cube: "usage_unattributed_daily",
      measures: ["unattributed_traces", "workspace_traces"],
      dimensions: ["group_by"],
    },
    ["api_key", "project", "user"].map((group_by) => ({
      group_by,
      unattributed_traces: "10",
      workspace_traces: "24",
    })),
  ],
  [{ cube: "usage_cost_daily", measures: ["estimated_cost"] }, [{ estimated_cost: null }]],
  [
    {
      cube: "usage_cost_daily",
      measures: ["estimated_cost", "estimated_cost_final"],
      dimensions: ["currency"],
    },
    ["EUR", "USD"].map((currency) => ({
      currency,
      estimated_cost: "14.5000000000",
      estimated_cost_final: "12.0000000000",
    })),
  ],
  [
    {
      cube: "usage_cost_owner_daily",
      measures: ["estimated_cost", "estimated_cost_final"],
      dimensions: ["currency", "owner", "cost_center"],
    },
    ["EUR", "USD"].map((currency) => ({
      ...{ currency, owner: "(unallocated)", cost_center: "(none)" },
      estimated_cost: "14.50000000000000",
      estimated_cost_final: "12.00000000000000",
    })),
  ],
  [
    { cube: "usage_month_close", measures: ["closed_traces", "current_traces"] },
    [{ closed_traces: null, current_traces: null }],
  ],
  [
    {
      cube: "usage_month_close",
      measures: ["closed_traces", "adjustment_traces", "current_traces"],
      filters: { group_by: "workspace" },
    },
    [{ closed_traces: "20", adjustment_traces: "-20", current_traces: "0" }],
  ],
];

async function filledDatabase(): Promise<string> {
  const { store, url, sourceId } = await setupSource();
  for (const groupBy of GROUPINGS) {
    for (const workspaceId of WORKSPACES) {
      const id = groupBy === "workspace" ? workspaceId : "00000000-0000-4000-8000-00000000000a";
      const of = { sourceId, workspaceId, groupBy };
      const rows = [
        ["2026-03-01", id, 7],
        ["2026-03-01", groupBy === "workspace" ? id : "", 5],
      ] as const;
      await loadRows(store, { ...of, window: windowOf("day", "2026-03-01", "2026-03-02"), rows });
      if (workspaceId === TWO) continue;
      const provisional = { window: windowOf("day", "2026-03-02", "2026-03-03"), settleAfterMs: 1e12 };
      await loadRows(store, { ...of, ...provisional, rows: [["2026-03-02", id, 5]] });
      const hours = windowOf("hour", "2026-03-01T00:00Z", "2026-03-01T10:00Z");
      await loadRows(store, { ...of, window: hours, rows: [["2026-03-01T03:00Z", id, 3]] });
    }
  }
  const prices = ["USD", "EUR"].map((currency) => ({ sku: currency, unitPrice: "0.5", currency }));
  await enterPrices(store, prices);
  await store.transaction(({ client }) =>
    client.query(`
      WITH close AS (
        INSERT INTO usage.month_close (source_id, month_start, settle_after_seconds, accepted_disagreements, costs_closed_at)
        SELECT source_id, '2026-02-01', 0, 0, now() FROM usage.source RETURNING close_id
      )
      INSERT INTO usage.closed_total SELECT close_id, series_id, 10 FROM close, usage.series s JOIN usage.trace_scope c USING (scope_id)
      WHERE c.stride = 'day' AND c.group_by IN ('workspace', 'project')`),
  );
  return url;
}

test("each fact is a cube of its own, and the test asks for every measure that is not the same in all of them", () => {
  expect(new Set(CUBES.map(({ sql_table }) => sql_table)).size).toBe(CUBES.length);
  for (const { name, measures, dimensions } of CUBES) {
    const names = [...measures, ...dimensions].map((member) => member.name);
    expect(new Set(names).size, name).toBe(names.length);
  }
  const asked = new Set(QUESTIONS.flatMap(([{ measures }]) => measures));
  const named = CUBES.flatMap(({ measures }) => measures.map(({ name }) => name));
  expect(named.filter((name) => !asked.has(name))).toEqual([]);
});

test("its measures give the figures of the views, and no sum over what does not add up", async () => {
  const client = await connect(await filledDatabase());
  for (const { name: cube, measures, dimensions, refresh_key } of CUBES) {
    const all = {
      measures: measures.map(({ name }) => name),
      dimensions: dimensions.map(({ name }) => name),
    };
    await client.query(sqlOf({ cube, ...all }));
    if ("sql" in refresh_key) await client.query(refresh_key.sql);
  }
  for (const [question, answer] of QUESTIONS) {
    const { rows } = await client.query(sqlOf(question));
    expect(rows, JSON.stringify(question)).toEqual(answer);
  }
});

test.runIf(CUBE_MODULES !== undefined)(
  "Cube itself gives the same answers, and refuses to join two facts",
  async () => {
    const url = new URL(await filledDatabase());
    url.searchParams.set("options", "-c role=usage_reader -c jit=off");
    const cube = await openCube(url.href);
    onTestFinished(() => cube.close());
    for (const [question, answer] of QUESTIONS)
      expect(await cube.ask(question), JSON.stringify(question)).toEqual(answer);
    const both = ["usage_workspace_daily.traces", "usage_project_daily.traces"];
    expect(() => cube.sqlOf({ measures: both })).toThrow(/join path/);
  },
);

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString, options: "-c jit=off -c timezone=UTC" });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query("SET ROLE usage_reader");
  return client;
}
