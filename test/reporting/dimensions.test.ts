import { expect, test } from "vitest";
import { GROUPINGS, shownId } from "../../src/domain/usage/record.ts";
import { DIMENSIONS, expandDimensions } from "../../src/store/db/dimensions.ts";
import { listViews } from "../../src/store/report/views.ts";
import { connectPlain, setupSource } from "../support/reporting.ts";

test("a block of SQL is repeated for each dimension, with or without workspace", () => {
  const lines = (which: string) =>
    expandDimensions(`a\n-- each dimension${which}\n{position} {columns};\n-- end\nz\n`);
  expect(lines("").split("\n").slice(0, 3)).toEqual([
    "a",
    "1 d.dimension_id AS workspace_id, d.dimension_name AS workspace_name;",
    "2 d.dimension_id AS project_id, d.dimension_name AS project_name;",
  ]);
  expect(lines(" but workspace").split("\n")).toEqual([
    "a",
    "2 d.dimension_id AS project_id, d.dimension_name AS project_name;",
    "3 d.dimension_id AS user_id, d.dimension_name AS user_email;",
    "4 d.dimension_id AS api_key_short_key;",
    "z",
    "",
  ]);
  expect(() => expandDimensions("-- each dimension\n{colums}\n-- end\n")).toThrow(
    "unknown placeholder {colums}",
  );
});

test("every dimension has its place in listings and its views", async () => {
  const { store, url } = await setupSource();
  const client = await connectPlain(url);
  const { rows } = await client.query(
    "SELECT g FROM unnest($1::text[]) g ORDER BY usage.dimension_position(g)",
    [GROUPINGS.toReversed()],
  );
  expect(rows.map(({ g }) => g)).toEqual(GROUPINGS);
  const views = new Map((await listViews(store.db)).map((view) => [view.name, view]));
  for (const groupBy of GROUPINGS) {
    for (const name of ["daily", "hourly", "monthly"].map((stride) => `fct_usage_${groupBy}_${stride}`)) {
      const columns = views.get(name)?.columns.map((column) => column.name);
      expect(columns, name).toContain(DIMENSIONS[groupBy].id);
    }
    expect(views.has(`dim_${groupBy}`)).toBe(true);
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
    const { rows } = await client.query(`EXPLAIN (VERBOSE, COSTS off) SELECT * FROM reporting.${name}`);
    const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
    expect(plan, name).not.toMatch(/(figure_status|failure_at|is_final|shown_id)\(/);
  }
});
