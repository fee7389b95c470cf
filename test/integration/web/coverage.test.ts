import { expect, test } from "vitest";
import { DAY_MS, floorToGrid } from "../../../src/core/domain/time/stride.ts";
import { scopesOf } from "../../../src/core/store/catalog/scopes.ts";
import type { Standin } from "../../../src/features/standin/server.ts";
import { createPrices } from "../../support/charges.ts";
import { type PagesBench, setupPages } from "../../support/pages.ts";
import { connect } from "../../support/reporting.ts";
import { share } from "../../support/share.ts";
import { farFromTheNextHour } from "../../support/source.ts";
import { loadRows, setupMigrated, windowOf } from "../../support/store.ts";
import { createSource } from "../store/setup.ts";

const [A, B] = ["00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"];
const HOSTILE = `<script>alert(1)</script>"'\u202e`;
const STANDIN = { url: "http://127.0.0.1:1", apiKey: "key" } as Standin;

async function setupEmpty() {
  const { store, url } = await setupMigrated();
  const reader = await connect(url);
  return { store, url, reader, pages: await setupPages({ databaseUrl: url, standin: STANDIN, store }) };
}

/** Two workspaces of forty days; of the first, five days by workspace and four by user are loaded, from ten days ago on. */
async function setupCoverage() {
  const bundle = await setupEmpty();
  const today = floorToGrid(await farFromTheNextHour(), DAY_MS);
  const day = (n: number) => new Date(today + n * DAY_MS).toISOString().slice(0, 10);
  const sourceId = await createSource(bundle, { workspaceIds: [A, B], dataStart: today - 40 * DAY_MS });
  await bundle.reader.query(
    "INSERT INTO usage.entity_name SELECT entity_id, 1, now(), $1 FROM usage.entity WHERE external_id = $2",
    [HOSTILE, A],
  );
  const load = (groupBy: "workspace" | "user", to: number, id: string) =>
    loadRows(bundle.store, {
      sourceId,
      groupBy,
      workspaceId: A,
      window: windowOf("day", day(-10), day(to)),
      rows: [[`${day(-10)}T00:00:00Z`, id, 3]],
    });
  await load("workspace", -5, A);
  await load("user", -6, "u");
  return { ...bundle, sourceId, day };
}

/** For tests that change nothing. */
const shared = share(setupCoverage);

/** What the cells of a row say, by the title of the row. */
async function cellsOf(pages: PagesBench, path: string, row: RegExp): Promise<string[]> {
  const table = (await pages.read(path)).table(/workspaces \d/);
  const found = table.find(({ Workspace = "" }) => row.test(Workspace)) ?? {};
  return Object.entries(found).flatMap(([head, cell]) => (head === "Workspace" ? [] : [cell]));
}

/** What a day of the calendar says, and where it leads. */
async function dayOf(pages: PagesBench, path: string, day: string) {
  const { titled } = await pages.read(path);
  const [found] = titled(new RegExp(`^${day}: `));
  return { text: found?.title.slice(day.length + 2), to: found?.to ?? "" };
}

test("before anything is loaded, the page has no table, and then the gap of all days", async () => {
  const bundle = await setupEmpty();
  const { pages } = bundle;
  const empty = await pages.read("/coverage");
  expect([empty.notices.length, empty.buttons.includes("Retry")]).toEqual([1, false]);
  // The address and the key are set.
  expect(empty.text).not.toContain("USAGE_");
  await createSource(bundle, { workspaceIds: [A], dataStart: Date.parse("2026-01-05") });
  const [cell] = await cellsOf(pages, "/coverage?from=2026-01-05&to=2026-01-06", /./);
  expect(cell).toMatch(/^missing/);
});

test("each day of a dimension says what is loaded and proved of it, and leads to its cell", async () => {
  const { pages, day } = shared();
  const path = `/coverage?source=default&from=${day(-10)}&to=${day(0)}&workspace=${A}`;
  const loaded = ["final, not proved", ...Array(4).fill("empty, not proved")];
  expect(await cellsOf(pages, path, /by workspace$/)).toEqual([...loaded, ...Array(5).fill("missing")]);
  const page = await pages.read(path);
  const cell = `/cell?source=default&stride=day&from=${day(-7)}&to=${day(-6)}&group_by=user&workspace=${A}`;
  expect(page.links()).toContain(cell);
  const { text } = await pages.get(path);
  expect(text).not.toContain("<script>alert");
  expect(text).not.toContain("\u202e");
});

test("from a day on, no column lies in the future", async () => {
  const { pages, day } = shared();
  expect(await cellsOf(pages, `/coverage?from=${day(-3)}&workspace=${A}`, /by workspace$/)).toHaveLength(4);
});

test("gaps are those of the tables, each with a retry of what it lacks, and all with one load", async () => {
  const { pages, reader, day } = shared();
  const page = await pages.read("/coverage");
  const { rows } = await reader.query(
    `SELECT workspace_id AS id, min(usage_date)::text AS first, max(usage_date)::text AS last FROM (
       SELECT *, usage_date - dense_rank() OVER (PARTITION BY workspace_id ORDER BY usage_date)::integer AS run FROM (
         SELECT DISTINCT workspace_id, usage_date FROM usage.expected_day
         WHERE NOT loaded AND usage_date < (now() AT TIME ZONE 'UTC')::date
       ) d
     ) r GROUP BY workspace_id, run ORDER BY 1, 2`,
  );
  expect(rows).toHaveLength(2);
  expect(rows.map(({ first, last }) => [first, last])).toEqual(Array(2).fill([day(-40), day(-1)]));
  expect(page.buttons.filter((one) => one === "Retry")).toHaveLength(rows.length);
  const { _csrf, shown_at, ...retry } = page.form("Retry");
  expect(retry).toMatchObject({ source: "default", from: day(-40), to: day(0) });
  expect(page.link(/^Load gaps/)).toBe(
    `/backfills/new?source=default&stride=day&from=${day(-40)}&to=${day(0)}`,
  );
  const badge = /Data health <span class="count">(\d+)</.exec((await pages.get("/coverage")).text)?.[1];
  expect(Number(badge)).toBe(rows.length);
});

test("a gap that another dimension shares is one, and a workspace that has all figures has none", async () => {
  const { pages, store, sourceId, day } = await setupCoverage();
  for (const groupBy of ["workspace", "project", "user", "api_key"] as const)
    for (const workspaceId of [A, B])
      await loadRows(store, {
        ...{ sourceId, groupBy, workspaceId },
        window: windowOf("day", day(-40), workspaceId === A && groupBy === "user" ? day(-2) : day(0)),
        rows: [[`${day(-10)}T00:00:00Z`, groupBy === "workspace" ? workspaceId : "u", 3]],
      });
  const page = await pages.read("/coverage");
  expect(page.form("Retry")).toMatchObject({ from: day(-2), to: day(0), workspace: A, group_by: "user" });
  expect(page.buttons.filter((one) => one === "Retry")).toHaveLength(1);
});

test("a gap says what the bill does not divide, or about what it lacks", async () => {
  const { pages, store, sourceId, day } = await setupCoverage();
  const [before, missing] = [`${day(-10)}T00:00:00Z`, `${day(-2)}T00:00:00Z`];
  for (const groupBy of ["workspace", "project", "user", "api_key"] as const)
    for (const workspaceId of [A, B]) {
      const id = groupBy === "workspace" ? workspaceId : "u";
      const isShort = workspaceId === B || groupBy === "user";
      await loadRows(store, {
        ...{ sourceId, groupBy, workspaceId },
        window: windowOf("day", day(-40), isShort ? day(-2) : day(0)),
        rows: [[before, id, 300], ...(isShort ? [] : [[missing, id, 40] as const])],
      });
    }
  await createPrices(store, [{ unitPrice: "0.25" }]);
  const { text } = await pages.read("/coverage");
  // Of A, 40 traces are known by workspace. Of B, nothing is: two days at the average of 28, one of which has usage.
  expect(text.match(/[\d.]+ USD/g)?.sort()).toEqual(
    [40 * 0.25, (2 * 300 * 0.25) / 28].map((one) => `${one.toFixed(2)} USD`).sort(),
  );
});

test("a gap of several dimensions lacks the money of those days alone that are missing by workspace", async () => {
  const { pages, store, sourceId, day } = await setupCoverage();
  for (const groupBy of ["workspace", "project", "user", "api_key"] as const)
    for (const workspaceId of [A, B]) {
      const ends = workspaceId === B ? 0 : groupBy === "workspace" ? -1 : -4;
      await loadRows(store, {
        ...{ sourceId, groupBy, workspaceId },
        window: windowOf("day", day(-40), day(ends)),
        rows: [[`${day(-10)}T00:00:00Z`, groupBy === "workspace" ? workspaceId : "u", 280]],
      });
    }
  await createPrices(store, [{ unitPrice: "0.25" }]);
  const page = await pages.read("/coverage");
  expect(page.form("Retry")).toMatchObject({ from: day(-4), to: day(0), workspace: A });
  expect(page.text.match(/[\d.]+ USD/g)).toEqual(["2.50 USD"]);
});

test("a day of the calendar says the worst of all workspaces, and a gap leads to its reason in one click", async () => {
  const { pages, day } = shared();
  const tenth = await dayOf(pages, "/coverage", day(-10));
  expect(tenth.text).toBe("missing 6 of 8 daily figures, final 2 of 8 daily figures");
  expect(tenth.to).toMatch(/^\/cell\?/);
  expect((await pages.read(tenth.to)).form("Retry")).toMatchObject({ from: day(-10), to: day(-9) });
  // Today is not late yet.
  expect([await dayOf(pages, "/coverage", day(-41)), await dayOf(pages, "/coverage", day(0))]).toEqual(
    Array(2).fill({ text: undefined, to: "" }),
  );
  const final = await dayOf(pages, `/coverage?workspace=${A}&group_by=workspace`, day(-10));
  expect(final.text).toBe("final, not proved");
  expect((await pages.read(final.to)).hasTable(/workspaces 1 to/)).toBe(true);
});

test("what the export contradicts is not shown as if it were right", async () => {
  const { pages, day, reader, store, sourceId } = await setupCoverage();
  await reader.query(
    `INSERT INTO usage.difference (scope_id, compared_with, external_id, period_start, period_end, kind, stored_traces, other_traces, state, closed_at, fetch_number)
     SELECT scope_id, 'export', state, bucket, bucket + interval '1 day', 'traces_differ', 3, 4, state, CASE state WHEN 'repaired' THEN now() END, 3
     FROM usage.trace_scope, (VALUES ($2::timestamptz, 'platform_disagrees'), ($2, 'open'), ($3, 'repaired')) d (bucket, state)
     WHERE scope_id = ANY ($1::integer[])`,
    [
      await scopesOf(store.db, { sourceId, groupBy: "workspace", stride: "day", workspaceIds: [A] }),
      ...[-10, -9].map((n) => `${day(n)}T00:00:00Z`),
    ],
  );
  const both = ["final, not proved, differs from the export", "empty, not proved"];
  const path = `/coverage?workspace=${A}&group_by=workspace`;
  expect([(await dayOf(pages, path, day(-10))).text, (await dayOf(pages, path, day(-9))).text]).toEqual(both);
  const days = `/coverage?from=${day(-10)}&to=${day(0)}&workspace=${A}`;
  expect((await cellsOf(pages, days, /by workspace$/)).slice(0, 2)).toEqual(both);
});

test("hours have columns of their own", async () => {
  const { pages, day } = shared();
  const hours = `/coverage?stride=hour&from=${day(-1)}&to=${day(0)}&open=${A}`;
  expect(await cellsOf(pages, hours, /by user$/)).toEqual(Array(24).fill("missing"));
});

test("only workspaces with a gap are listed where that is asked for", async () => {
  const { pages, day } = shared();
  const { table } = await pages.read(`/coverage?from=${day(-10)}&to=${day(-6)}&gaps=1&group_by=workspace`);
  expect(table(/workspaces 1 to 1 of 1/)).toHaveLength(1);
});
