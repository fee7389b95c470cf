import type pg from "pg";
import { beforeEach, describe, expect, test } from "vitest";
import { scopesOf } from "../../src/store/catalog/scopes.ts";
import type { Store } from "../../src/store/db/database.ts";
import { migrate } from "../../src/store/db/migrate.ts";
import { failScopes } from "../../src/store/load/failures.ts";
import { drawStamp } from "../../src/store/load/fetch-ledger.ts";
import { connectPlain, setupSource } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";
import { inSchema } from "../support/views.ts";

const WORKSPACE = "00000000-0000-4000-8000-000000000001";

let store: Store;
let url: string;
let sourceId: number;
let client: pg.Client;

beforeEach(async () => {
  ({ store, url, sourceId } = await setupSource());
  client = await connectPlain(url);
});

const query = async (text: string): Promise<Record<string, unknown>[]> => (await client.query(text)).rows;

const load = (given: Omit<Parameters<typeof loadRows>[1], "sourceId" | "workspaceId">) =>
  loadRows(store, { sourceId, workspaceId: WORKSPACE, ...given });

test("a day is ok with usage, empty without, or says why it is not final, and keeps the figure that was loaded", async () => {
  const rows = [1, 3, 4, 6].map((day) => [`2026-03-0${day}`, WORKSPACE, day] as const);
  await load({ groupBy: "workspace", window: windowOf("day", "2026-03-01", "2026-03-07"), rows });
  for (const [from, to, rows] of [
    ["2026-03-07", "2026-03-08", [["2026-03-07", WORKSPACE, 7]]],
    ["2026-03-11", "2026-03-12", []],
  ] as const) {
    const window = windowOf("day", from, to);
    await load({ groupBy: "workspace", window, rows, settleAfterMs: 10 * 365 * 86_400_000 });
  }
  const scopes = { sourceId, groupBy: "workspace", stride: "day", workspaceIds: [WORKSPACE] } as const;
  const scopeIds = await scopesOf(store.db, scopes);
  for (const [state, from, to] of [
    ["failed", "2026-03-03", "2026-03-04"],
    ["unverified", "2026-03-04", "2026-03-05"],
    ["failed", "2026-03-08", "2026-03-09"],
    ["unverified", "2026-03-09", "2026-03-10"],
  ] as const) {
    const stamp = await drawStamp(store.db);
    await failScopes(store, {
      scopeIds,
      period: windowOf("day", from, to),
      stamp,
      state,
      code: "test",
      message: "test",
    });
  }
  const days = await query(
    `SELECT concat_ws(' ', to_char(usage_date, 'DD'), coalesce(traces::text, '-'), coverage_status, is_final) AS day
     FROM reporting.fct_usage_workspace_daily WHERE workspace_id = '${WORKSPACE}' AND usage_date <= '2026-03-11' ORDER BY 1`,
  );
  expect(days.map(({ day }) => day)).toEqual([
    "01 1 ok t",
    "02 0 empty t",
    "03 3 failed f",
    "04 4 unverified f",
    "05 0 empty t",
    "06 6 ok t",
    "07 7 provisional f",
    "08 - failed f",
    "09 - unverified f",
    "10 - missing f",
    "11 0 provisional f",
  ]);
});

test("a day that is not loaded itself is made of its 24 hours, and of none of them once it is loaded", async () => {
  const traces = async () => {
    const [row] = await query(
      `SELECT traces FROM reporting.fct_usage_project_daily WHERE workspace_id = '${WORKSPACE}' AND usage_date = '2026-03-01'`,
    );
    return row?.traces;
  };
  const found: unknown[] = [];
  for (const [from, to] of [
    ["00", "12"],
    ["12", "23"],
    ["23", "24"],
  ] as const) {
    const window = windowOf("hour", `2026-03-01T${from}:00:00Z`, `2026-03-01T${to}:00:00Z`);
    await load({ groupBy: "project", window, rows: [[`2026-03-01T${from}:00:00Z`, "p", 2]] });
    found.push(await traces());
  }
  await load({
    groupBy: "project",
    window: windowOf("day", "2026-03-01", "2026-03-02"),
    rows: [["2026-03-01", "p", 50]],
  });
  expect([...found, await traces()]).toEqual([null, null, "6", "50"]);
});

describe("the schemas of the views", () => {
  test("have columns of types that every client understands", async () => {
    const rows = await query(
      `SELECT DISTINCT format_type(a.atttypid, a.atttypmod) AS type FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
       WHERE c.relkind = 'v' AND a.attnum > 0 AND c.relnamespace IN ('reporting'::regnamespace, 'reporting_detail'::regnamespace)`,
    );
    const types = rows.map(({ type }) => String(type));
    expect(types.length).toBeGreaterThan(5);
    const understood = ["text", "date", "timestamp with time zone", "bigint", "integer", "boolean"];
    // Digits before and after the point: clients take an unbounded numeric for text, or round it.
    const exact = /^numeric\(\d+,\d+\)$/;
    expect(types.filter((type) => !understood.includes(type) && !exact.test(type))).toEqual([]);
  });

  test("are all that usage_reader reads", async () => {
    await client.query("SET ROLE usage_reader");
    const { rows } = await client.query(
      "SELECT table_name FROM information_schema.views WHERE table_schema IN ('reporting', 'reporting_detail')",
    );
    expect(rows.length).toBeGreaterThan(15);
    for (const { table_name } of rows) await client.query(`SELECT * FROM ${inSchema(table_name)} LIMIT 1`);
    await expect(client.query("SELECT * FROM usage.source")).rejects.toThrow(/permission denied/);
    await expect(client.query("DELETE FROM reporting.dim_date")).rejects.toThrow();
  });

  test("keep the views that customers built on them when migrate runs again", async () => {
    await query(
      "CREATE VIEW public.mine AS SELECT usage_date, traces FROM reporting.fct_usage_workspace_daily; GRANT SELECT ON public.mine TO usage_reader",
    );
    await migrate(store);
    expect(await query("SELECT count(*) >= 0 AS works FROM public.mine")).toEqual([{ works: "t" }]);
  });
});
