import { expect, test } from "vitest";
import {
  MEASURE_DIGITS,
  MEASURES,
  METER,
  METERS,
  meterOfMeasure,
} from "../../src/core/domain/usage/meter.ts";
import { dimensionOf, GROUPINGS, type GroupBy, shownId } from "../../src/core/domain/usage/record.ts";
import { listViews } from "../../src/core/store/db/views.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, type ResponseRow, windowOf } from "../support/store.ts";
import { inSchema } from "../support/views.ts";

test("the lists of dimensions, meters and measures in SQL are those of the commands", async () => {
  const client = await connectPlain((await setupSource()).url);
  const listed = async (query: string) => (await client.query({ text: query, rowMode: "array" })).rows;
  expect(await listed("TABLE usage.meter_dimension")).toEqual(
    METERS.flatMap((meter) =>
      METER[meter].groupings.map((groupBy) => [
        meter,
        METER[meter].kind,
        METER[meter].tier,
        groupBy,
        dimensionOf(meter, groupBy),
      ]),
    ),
  );
  const reported = await listed(
    "SELECT meter, measure FROM usage.measure WHERE is_reported AND meter <> measure",
  );
  expect(reported).toEqual(
    MEASURES.filter((measure) => measure !== "traces").map((measure) => [meterOfMeasure(measure), measure]),
  );
  expect(
    await listed("SELECT measure FROM usage.measure WHERE meter <> usage.meter_of_measure(measure)"),
  ).toEqual([]);
  for (const [place, groupBy] of GROUPINGS.entries()) {
    expect(await listed(`SELECT usage.dimension_position('${groupBy}')`)).toEqual([[String(place + 1)]]);
  }
  for (const measure of MEASURES) {
    const stored = 10 ** MEASURE_DIGITS[measure];
    expect(
      await listed(
        `SELECT usage.meter_of_measure('${measure}'), usage.amount_of('${measure}', ${stored})::integer`,
      ),
    ).toEqual([[meterOfMeasure(measure), "1"]]);
  }
});

test("the views and the command line show an id alike, and no two ids", async () => {
  const ids = [
    "",
    "(none)",
    "\\(none)",
    "\\\\(none)",
    "\\",
    "(none)\\",
    "(None)",
    "a(none)",
    "(all)",
    "p1",
    "'(none)",
  ];
  const client = await connectPlain((await setupSource()).url);
  const { rows } = await client.query("SELECT usage.shown_id(id) AS shown FROM unnest($1::text[]) id", [ids]);
  expect(rows.map(({ shown }) => shown)).toEqual(ids.map(shownId));
  expect(new Set(ids.map(shownId)).size).toBe(ids.length);
  expect(ids.map(shownId).slice(0, 3)).toEqual(["(none)", "\\(none)", "\\\\(none)"]);
});

test("the planner inlines the functions of the status into every view", async () => {
  const { store, url } = await setupSource();
  const client = await connectPlain(url);
  for (const { name } of await listViews(store.db)) {
    const { rows } = await client.query(`EXPLAIN (VERBOSE, COSTS off) SELECT * FROM ${inSchema(name)}`);
    const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
    expect(plan, name).not.toMatch(/(figure_status|failure_at|is_final|shown_id)\(/);
  }
});

test("a bridge names the workspaces of each id, and a day is final once all that is expected on it is", async () => {
  const { store, url, sourceId } = await setupSource();
  const client = await connectPlain(url);
  const [one, other] = WORKSPACES;
  const load = (
    groupBy: GroupBy,
    workspaceId: string,
    rows: readonly ResponseRow[],
    stride: "day" | "hour" = "day",
  ) =>
    loadRows(store, {
      sourceId,
      groupBy,
      workspaceId,
      rows,
      window: windowOf(stride, "2026-03-05", "2026-03-07"),
    });
  const final = async () =>
    (await client.query("SELECT usage_date FROM reporting.dim_date WHERE is_final ORDER BY 1")).rows.map(
      (row) => row.usage_date,
    );
  for (const workspaceId of WORKSPACES) {
    await load("workspace", workspaceId, [
      ["2026-03-05", workspaceId, 9, `Name ${workspaceId === one ? 1 : 2}`],
    ]);
    for (const groupBy of ["user", "api_key"] as const) {
      await load(groupBy, workspaceId, [["2026-03-05", "someone", 9, "ada@example.test"]]);
    }
  }
  await load("project", one, [
    ["2026-03-05", "shared", 4, "Shared"],
    ["2026-03-06", "shared", 3],
    ["2026-03-06", "", 2],
  ]);
  expect(await final()).toEqual([]);
  await load("project", other, [["2026-03-06", "shared", 1]]);
  expect(await final()).toEqual(["2026-03-05", "2026-03-06"]);
  await load("project", other, [["2026-03-05T07:00Z", "hourly", 1]], "hour");
  await load("project", one, [["2026-03-05T07:00Z", "gone", 1]], "hour");
  await client.query(
    "DELETE FROM usage.hourly_record WHERE series_id = (SELECT max(series_id) FROM usage.series)",
  );

  const { rows: bridge } = await client.query(
    `SELECT concat_ws(' ', project_id, project_name, b.workspace_name, b.first_seen_at, b.last_seen_at) AS line
     FROM reporting_detail.bridge_workspace b JOIN reporting.dim_project p ON p.project_id = b.dimension_id
     WHERE group_by = 'project' ORDER BY project_id, b.workspace_name`,
  );
  const at = (day: string, hour = "00") => `2026-03-0${day} ${hour}:00:00+00`;
  expect(bridge.map(({ line }) => line)).toEqual([
    `(none) Name 1 ${at("6")} ${at("6")}`,
    `hourly Name 2 ${at("5", "07")} ${at("5", "07")}`,
    `shared Shared Name 1 ${at("5")} ${at("6")}`,
    `shared Shared Name 2 ${at("6")} ${at("6")}`,
  ]);
  const { rows } = await client.query(
    `SELECT concat_ws(' ', project_id, workspace_count, sole_workspace_id, sole_workspace_name) AS line
     FROM reporting.dim_project ORDER BY project_id`,
  );
  expect(rows.map(({ line }) => line)).toEqual([
    `(none) 1 ${one} Name 1`,
    "gone 0",
    `hourly 1 ${other} Name 2`,
    "shared 2",
  ]);
});
