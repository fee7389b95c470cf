import pg from "pg";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { scopesOf } from "../../src/store/catalog/scopes.ts";
import { learnCapability } from "../../src/store/catalog/server-capabilities.ts";
import type { Store } from "../../src/store/db/database.ts";
import { migrate } from "../../src/store/db/migrate.ts";
import { failScopes } from "../../src/store/load/failures.ts";
import { drawStamp } from "../../src/store/load/fetch-ledger.ts";
import { setupSource } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";
import { inSchema } from "../support/views.ts";

const WORKSPACE = "00000000-0000-4000-8000-000000000001";
const OTHER = "00000000-0000-4000-8000-000000000002";
const PROJECT = "00000000-0000-4000-8000-00000000000a";

/** A month of the past, so that days are final and today's date plays no part in what is compared. */
const [DAY1, DAY2, DAY3, DAY4] = ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"] as const;

let store: Store;
let url: string;
let sourceId: number;

beforeEach(async () => {
  ({ store, url, sourceId } = await setupSource());
});

async function query(text: string): Promise<Record<string, unknown>[]> {
  // Dates as their text, and nothing else than what a plain client would see.
  const client = new pg.Client({
    connectionString: url,
    types: {
      getTypeParser: (oid: number, format?: "text" | "binary") =>
        oid === pg.types.builtins.DATE
          ? (value: string) => value
          : pg.types.getTypeParser(oid, format as "text"),
    },
  });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

const load = (given: Omit<Parameters<typeof loadRows>[1], "sourceId" | "workspaceId">) =>
  loadRows(store, { sourceId, workspaceId: WORKSPACE, ...given });

describe("the status of a day", () => {
  const dailyOf = (workspaceId: string) =>
    query(
      `SELECT usage_date, traces, is_final, coverage_status FROM reporting.fct_usage_workspace_daily
       WHERE workspace_id = '${workspaceId}' AND usage_date < '2026-03-05' ORDER BY usage_date`,
    );

  test("is ok with usage, empty without, and missing if it was never loaded", async () => {
    await load({
      groupBy: "workspace",
      window: windowOf("day", DAY1, DAY3),
      rows: [[DAY1, WORKSPACE, 7]],
    });
    expect(await dailyOf(WORKSPACE)).toEqual([
      { usage_date: DAY1, traces: "7", is_final: true, coverage_status: "ok" },
      { usage_date: DAY2, traces: "0", is_final: true, coverage_status: "empty" },
      { usage_date: DAY3, traces: null, is_final: false, coverage_status: "missing" },
      { usage_date: DAY4, traces: null, is_final: false, coverage_status: "missing" },
    ]);
    expect((await dailyOf(OTHER)).map((row) => row.coverage_status)).toEqual(Array(4).fill("missing"));
  });

  test("is provisional until the day settles", async () => {
    const settleAfterMs = 10 * 365 * 86_400_000;
    await load({
      groupBy: "workspace",
      window: windowOf("day", DAY1, DAY2),
      rows: [[DAY1, WORKSPACE, 7]],
      settleAfterMs,
    });
    expect((await dailyOf(WORKSPACE))[0]).toEqual({
      usage_date: DAY1,
      traces: "7",
      is_final: false,
      coverage_status: "provisional",
    });
  });

  test.each(["failed", "unverified"] as const)(
    "is %s after such a fetch, and the figure loaded before stays",
    async (state) => {
      await load({
        groupBy: "workspace",
        window: windowOf("day", DAY1, DAY2),
        rows: [[DAY1, WORKSPACE, 7]],
      });
      await failScopes(store, {
        scopeIds: await scopesOf(store.db, {
          sourceId,
          groupBy: "workspace",
          stride: "day",
          workspaceIds: [WORKSPACE],
        }),
        period: windowOf("day", DAY1, DAY3),
        stamp: await drawStamp(store.db),
        state,
        code: "test",
        message: "test",
      });
      expect((await dailyOf(WORKSPACE)).slice(0, 2)).toEqual([
        { usage_date: DAY1, traces: "7", is_final: false, coverage_status: state },
        { usage_date: DAY2, traces: null, is_final: false, coverage_status: state },
      ]);
    },
  );

  test("is not_available for hours that the server does not have, instead of a gap", async () => {
    await learnCapability(store.db, { sourceId, capability: "no_hour", evidence: "test" });
    const rows = await query(
      `SELECT DISTINCT status FROM reporting_detail.usage_coverage_daily WHERE stride = 'hour' AND group_by = 'workspace'`,
    );
    expect(rows).toEqual([{ status: "not_available" }]);
  });
});

describe("a day that is not loaded itself", () => {
  const hours = Array.from({ length: 24 }, (_, hour) => `${DAY1}T${String(hour).padStart(2, "0")}:00:00Z`);
  const dayOne = () =>
    query(
      `SELECT project_id, traces FROM reporting.fct_usage_project_daily
       WHERE workspace_id = '${WORKSPACE}' AND usage_date = '${DAY1}' ORDER BY project_id`,
    );
  const loadHours = async (from: string, to: string) =>
    load({
      groupBy: "project",
      window: windowOf("hour", from, to),
      rows: hours.filter((hour) => hour >= from && hour < to).map((hour) => [hour, PROJECT, 2] as const),
    });

  test("is made of its 24 hours", async () => {
    await loadHours(`${DAY1}T00:00:00Z`, `${DAY1}T12:00:00Z`);
    expect(await dayOne()).toEqual([{ project_id: null, traces: null }]);
    await loadHours(`${DAY1}T12:00:00Z`, `${DAY2}T00:00:00Z`);
    expect(await dayOne()).toEqual([{ project_id: PROJECT, traces: "48" }]);
  });

  test("stays missing with 23 hours", async () => {
    await loadHours(`${DAY1}T00:00:00Z`, `${DAY1}T23:00:00Z`);
    expect(await dayOne()).toEqual([{ project_id: null, traces: null }]);
  });

  test("is the loaded day once that comes: hours are never added to it", async () => {
    await loadHours(`${DAY1}T00:00:00Z`, `${DAY1}T12:00:00Z`);
    await loadHours(`${DAY1}T12:00:00Z`, `${DAY2}T00:00:00Z`);
    await load({ groupBy: "project", window: windowOf("day", DAY1, DAY2), rows: [[DAY1, PROJECT, 50]] });
    expect(await dayOne()).toEqual([{ project_id: PROJECT, traces: "50" }]);
  });
});

test("empty ids are shown as (none), and an id with several names has the latest one", async () => {
  await load({
    groupBy: "project",
    window: windowOf("day", DAY1, DAY3),
    rows: [
      [DAY1, PROJECT, 1, "old name"],
      [DAY2, PROJECT, 1, "new name"],
      [DAY1, "", 4],
    ],
  });
  expect(
    await query(
      `SELECT usage_date, project_id, project_name, traces FROM reporting.fct_usage_project_daily
       WHERE workspace_id = '${WORKSPACE}' AND usage_date < '${DAY3}' ORDER BY 1, 2`,
    ),
  ).toEqual([
    { usage_date: DAY1, project_id: "(none)", project_name: null, traces: "4" },
    { usage_date: DAY1, project_id: PROJECT, project_name: "new name", traces: "1" },
    { usage_date: DAY2, project_id: PROJECT, project_name: "new name", traces: "1" },
  ]);
});

describe("the schemas of the views", () => {
  test("has the columns of columns.txt, in this order, of types that every client understands", async () => {
    const rows = await query(
      `SELECT concat(table_name, '.', column_name, ' ', data_type,
                     CASE WHEN data_type = 'numeric' THEN '(' || numeric_precision || ',' || numeric_scale || ')' END) AS column
       FROM information_schema.columns WHERE table_schema IN ('reporting', 'reporting_detail') ORDER BY table_name, ordinal_position`,
    );
    await expect(`${rows.map((row) => row.column).join("\n")}\n`).toMatchFileSnapshot("columns.txt");
    const types = new Set(rows.map((row) => String(row.column).split(" ").slice(1).join(" ")));
    const understood = ["text", "date", "timestamp with time zone", "bigint", "integer", "boolean"];
    // Digits before and after the point: clients take an unbounded numeric for text, or round it.
    const exact = /^numeric\(\d+,\d+\)$/;
    expect([...types].filter((type) => !understood.includes(type) && !exact.test(type))).toEqual([]);
  });

  test("has twelve views at most, which a newcomer needs, and no name that reporting_detail has too", async () => {
    const rows = await query(
      "SELECT table_schema AS schema, table_name AS name FROM information_schema.views WHERE table_schema IN ('reporting', 'reporting_detail')",
    );
    const inBoth = Map.groupBy(rows, ({ name }) => name);
    expect([...inBoth.values()].filter((places) => places.length > 1)).toEqual([]);
    expect(rows.filter(({ schema }) => schema === "reporting").length).toBeLessThanOrEqual(12);
  });

  test("has a comment on every view and column", async () => {
    const silent = await query(
      `SELECT c.relname || '.' || coalesce(a.attname, '') AS what
       FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
       WHERE c.relnamespace IN ('reporting'::regnamespace, 'reporting_detail'::regnamespace) AND c.relkind = 'v'
         AND (obj_description(c.oid) IS NULL OR col_description(c.oid, a.attnum) IS NULL)`,
    );
    expect(silent).toEqual([]);
  });

  test("is all that usage_reader reads", async () => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query("SET ROLE usage_reader");
    const { rows } = await client.query(
      "SELECT table_name FROM information_schema.views WHERE table_schema IN ('reporting', 'reporting_detail')",
    );
    expect(rows.length).toBeGreaterThan(15);
    for (const { table_name } of rows) await client.query(`SELECT * FROM ${inSchema(table_name)} LIMIT 1`);
    await expect(client.query("SELECT * FROM usage.source")).rejects.toThrow(/permission denied/);
    await expect(client.query("DELETE FROM reporting.dim_date")).rejects.toThrow();
  });

  test("keeps the views that customers built on it when migrate runs again", async () => {
    await query(
      "CREATE VIEW public.mine AS SELECT usage_date, traces FROM reporting.fct_usage_workspace_daily; GRANT SELECT ON public.mine TO usage_reader",
    );
    await migrate(store);
    expect(await query("SELECT count(*) >= 0 AS works FROM public.mine")).toEqual([{ works: true }]);
  });
});
