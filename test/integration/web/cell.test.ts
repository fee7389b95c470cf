import { expect, test } from "vitest";
import { DAY_MS, floorToGrid } from "../../../src/core/domain/time/stride.ts";
import { failScopes } from "../../../src/core/store/catalog/failures.ts";
import { scopesOf } from "../../../src/core/store/catalog/scopes.ts";
import { drawFetchToken } from "../../../src/core/store/work/fetch-ledger.ts";
import type { Standin } from "../../../src/features/standin/server.ts";
import { setupPages, setupViewer } from "../../support/pages.ts";
import { addSource, connect } from "../../support/reporting.ts";
import { share } from "../../support/share.ts";
import { farFromTheNextHour } from "../../support/source.ts";
import { loadRows, setupMigrated, windowOf } from "../../support/store.ts";

const W = "00000000-0000-4000-8000-00000000000a";
const STANDIN = { url: "http://127.0.0.1:1", apiKey: "key" } as Standin;
const REQUEST = "GET https://platform.example/usage?start_time=2026";

/** A workspace whose first day by user is restated and differs from the export, and whose last four days failed. */
async function setupCell() {
  const today = floorToGrid(await farFromTheNextHour(), DAY_MS);
  const day = (n: number) => new Date(today + n * DAY_MS).toISOString().slice(0, 10);
  const { store, url } = await setupMigrated();
  const sourceId = await addSource(store, { slug: "default", workspaceIds: [W], dataStart: day(-9) });
  for (const traces of [1234, 5678])
    await loadRows(store, {
      sourceId,
      groupBy: "user",
      workspaceId: W,
      window: windowOf("day", day(-9), day(-5)),
      rows: [[`${day(-9)}T00:00:00Z`, "u1", traces, "ann@example.com"]],
    });
  const scopeIds = await scopesOf(store.db, { sourceId, groupBy: "user", stride: "day", workspaceIds: [W] });
  const fail = async (n: number, code: string, message: string) =>
    failScopes(store, {
      scopeIds,
      period: windowOf("day", day(n), day(n + 1)),
      fetchToken: await drawFetchToken(store.db),
      state: "failed",
      code,
      message,
    });
  await fail(-4, "response_invalid", "The record of bob@example.com lacks <b>traces</b>.");
  await fail(
    -3,
    "request_refused",
    `${REQUEST} responded with 422: {"detail":"The day of <eve@example.com> is recomputed."}`,
  );
  await fail(-2, "request_refused", `${REQUEST} responded with 422: {"detail":{"error":"odd"}}`);
  await fail(-1, "request_refused", `${REQUEST} responded with 422: {"detail":"Cut...`);
  await (await connect(url)).query(
    `INSERT INTO usage.difference (scope_id, compared_with, external_id, period_start, period_end, kind, stored_traces, other_traces, state, fetch_number)
     VALUES ($1, 'export', 'u1', $2, $2::timestamptz + interval '1 day', 'traces_differ', 5678, 5600, 'platform_disagrees', 3)`,
    [scopeIds[0], `${day(-9)}T00:00:00Z`],
  );
  const served = { databaseUrl: url, standin: STANDIN, store };
  const cell = (from: number, more = "") =>
    `/cell?source=default&workspace=${W}&from=${day(from)}&to=${day(from + 1)}${more}`;
  return { served, reader: await connect(url), pages: await setupPages(served), cell, day };
}

const shared = share(setupCell);

test("a cell shows what is stored and leads to its differences and restatements", async () => {
  const { pages, cell, day } = shared();
  const page = await pages.read(cell(-9, "&group_by=user&stride=day"));
  expect(page.table("State by dimension")).toEqual([
    { Dimension: "user", Status: "final, not proved", "Traces stored": "5,678" },
  ]);
  expect(page.hasTable("Stored responses")).toBe(true);
  expect(page.link("Differences and restatements")).toBe(
    `/differences?source=default&state=all&from=${day(-9)}&to=${day(-8)}&group_by=user&workspace=${W}`,
  );
});

test("a failure is shown with the platform's own words, which are text", async () => {
  const { pages, cell } = shared();
  const said = async (n: number) => (await pages.read(cell(n, "&group_by=user"))).notices.join();
  expect(await said(-4)).toContain("The record of bob@example.com lacks <b>traces</b>.");
  expect(await said(-3)).toContain("The day of <eve@example.com> is recomputed.");
  // A body that says nothing in words, or is cut, is shown as it came.
  expect(await said(-2)).toContain(`${REQUEST} responded with 422: {"detail":{"error":"odd"}}`);
  expect(await said(-1)).toContain(`${REQUEST} responded with 422: {"detail":"Cut...`);
  const states = (await pages.read(cell(-4))).table("State by dimension");
  expect(states.map((row) => `${row.Dimension} ${row.Status}`)).toEqual([
    "workspace missing",
    "project missing",
    "user failed",
    "API key missing",
  ]);
});

test("a cell retries what it lacks, once for all dimensions, and a finished load is one press away", async () => {
  const { pages, cell, day, reader } = await setupCell();
  const failed = await pages.read(cell(-4));
  const fields = failed.form("Retry");
  expect(fields).toMatchObject({ from: day(-4), to: day(-3), workspace: W });
  expect(failed.notices).toHaveLength(1);
  const again = new URL(failed.link("Reload everything"), pages.url).searchParams;
  expect([again.get("reprocess"), again.get("from")]).toEqual(["all", day(-4)]);
  const { _csrf, ...sent } = fields;
  const post = () => pages.post("/backfills/retry", sent, { from: cell(-4) });
  const [first, second] = [await post(), await post()];
  expect([first.status, second.headers.location]).toEqual([303, first.headers.location]);
  const { rows } = await reader.query(
    "SELECT b.groupings, b.period_start::date::text AS day, (SELECT count(*)::integer FROM usage.fetch_task) AS tasks FROM usage.backfill b",
  );
  expect(rows).toEqual([{ groupings: ["workspace", "project", "user", "api_key"], day: day(-4), tasks: 4 }]);
});

test("a failure that several dimensions have is shown once", async () => {
  const { pages, cell, served, day } = await setupCell();
  const scopeIds = await scopesOf(served.store.db, {
    ...{ sourceId: 1, groupBy: "project", stride: "day", workspaceIds: [W] },
  });
  await failScopes(served.store, {
    ...{ scopeIds, period: windowOf("day", day(-3), day(-2)), state: "failed", code: "request_refused" },
    fetchToken: await drawFetchToken(served.store.db),
    message: `${REQUEST}&group_by=project responded with 422: {"detail":"The day of <eve@example.com> is recomputed."}`,
  });
  const { notices } = await pages.read(cell(-3));
  expect(notices).toHaveLength(1);
  expect(notices[0]).toContain("user, project".split(", ").toSorted().join(", "));
});

test("a viewer sees no address", async () => {
  const { served, cell } = shared();
  const viewer = await setupViewer(served);
  for (const path of [cell(-9, "&group_by=user"), cell(-4), cell(-3)]) {
    expect((await viewer.get(path)).text).not.toContain("@example.com");
  }
});
