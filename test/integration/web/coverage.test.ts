import { expect, test } from "vitest";
import { DAY_MS, floorToGrid } from "../../../src/domain/time/stride.ts";
import type { Standin } from "../../../src/local/standin/server.ts";
import { scopesOf } from "../../../src/store/catalog/scopes.ts";
import { type PagesBench, refusalOf, setupPages } from "../../support/pages.ts";
import { loadRows, windowOf } from "../../support/store.ts";
import { enterSource, setupStore } from "../store/setup.ts";

const [A, B] = ["00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"];
const HOSTILE = `<script>alert(1)</script>"'\u202e`;

/** The first so many of the cells of a row, as screen readers hear them. */
function cellsOf(page: string, row: string): string[] {
  const line = page.split("<tr").find((one) => one.includes(row)) ?? "";
  return [...line.matchAll(/<td[^>]*>(.*?)<\/td>/gs)].map(
    ([, cell = ""]) => /visually-hidden">([^<]*)/.exec(cell)?.[1] ?? "",
  );
}

/** What a day of the calendar says, and where it leads. */
function dayOf(page: string, day: string) {
  const [, status, to = "", text] =
    new RegExp(`<td class="status (\\w+)"><a href="([^"]*)" title="${day}: ([^"]*)"`).exec(page) ?? [];
  return { status, text, to: to.replaceAll("&amp;", "&") };
}

async function textOf(pages: PagesBench, path: string): Promise<string> {
  const { status, text } = await pages.get(path);
  expect(status, path).toBe(200);
  return text;
}

test("coverage leads from months to days, hours and cells, and from the next gap to its backfill", async () => {
  const bundle = await setupStore();
  const { store, reader } = bundle;
  const standin = { url: "http://127.0.0.1:1", apiKey: "key" } as Standin;
  const pages = await setupPages({ databaseUrl: bundle.url, standin, store });
  expect(await textOf(pages, "/coverage")).toContain("No source is loaded yet");

  const today = floorToGrid(Date.now(), DAY_MS);
  const day = (n: number) => new Date(today + n * DAY_MS).toISOString().slice(0, 10);
  const sourceId = await enterSource(bundle, { workspaceIds: [A, B], dataStart: today - 40 * DAY_MS });
  expect(await textOf(pages, "/coverage")).toContain("Nothing is loaded yet");
  await reader.query(
    "INSERT INTO usage.entity_name SELECT entity_id, $1, now(), now(), 1 FROM usage.entity WHERE external_id = $2",
    [HOSTILE, A],
  );
  const load = (groupBy: "workspace" | "user", from: number, to: number, rows: [string, string, number][]) =>
    loadRows(store, { sourceId, groupBy, workspaceId: A, window: windowOf("day", day(from), day(to)), rows });
  await load("workspace", -10, -5, [[`${day(-10)}T00:00:00Z`, A, 3]]);
  await load("user", -10, -6, [[`${day(-10)}T00:00:00Z`, "u", 3]]);

  const days = `/coverage?source=default&from=${day(-10)}&to=${day(0)}&workspace=${A}`;
  const shown = await textOf(pages, days);
  expect(shown).not.toContain("<script>alert");
  expect(shown).not.toContain("\u202e");
  expect(cellsOf(shown, "by workspace")).toEqual([
    "final, not proved",
    ...Array(4).fill("empty, not proved"),
    "missing",
    "missing",
    "missing",
    "missing",
    "missing",
  ]);
  const user = `href="/cell?source=default&amp;stride=day&amp;from=${day(-7)}&amp;to=${day(-6)}&amp;group_by=user&amp;workspace=${A}"`;
  expect(shown).toContain(user);
  expect(shown).toContain(
    `<strong>Earliest:</strong> <a href="/coverage?source=default&amp;stride=day&amp;from=${day(-40)}`,
  );
  expect(shown).toContain(
    `href="/backfills/new?source=default&amp;stride=day&amp;from=${day(-40)}&amp;to=${day(0)}"`,
  );

  // By workspace alone the first gap ends where it is loaded, and another one follows.
  const one = await textOf(
    pages,
    `/coverage?from=${day(-41)}&to=${day(-20)}&workspace=${A}&group_by=workspace`,
  );
  const gap = (from: number, to: number) =>
    `href="/backfills/new?source=default&amp;stride=day&amp;from=${day(from)}&amp;to=${day(to)}&amp;group_by=workspace"`;
  expect(one).toContain(gap(-40, -10));
  expect(one).toContain(gap(-5, 0));
  expect(one).not.toContain("Show 4 dimensions");

  // All dimensions as one: two of them are not loaded.
  const months = await textOf(pages, "/coverage");
  expect(months).toContain("Show 4 dimensions");
  expect(months).toContain('aria-label="Screens"');
  expect(cellsOf(months, `data-workspace="${A}"`).at(-1)).toMatch(/^missing \d+ of \d+ daily figures, final/);
  // A day of the calendar leads to the workspaces that have a gap on it. Today is not late yet.
  const missing = "missing 6 of 8 daily figures, final 2 of 8 daily figures";
  const tenth = dayOf(months, day(-10));
  expect(tenth).toMatchObject({ status: "missing", text: missing });
  expect(await textOf(pages, tenth.to)).toContain('workspaces <span class="number">1</span> to');
  expect([dayOf(months, day(-41)), dayOf(months, day(0))]).toEqual(Array(2).fill(dayOf("", "")));
  const final = dayOf(await textOf(pages, `/coverage?workspace=${A}&group_by=workspace`), day(-10));
  expect(final).toMatchObject({ status: "unproved", text: "final, not proved" });
  expect(final.to).not.toContain("gaps");

  // What the export contradicts is not shown as if it were right.
  await reader.query(
    `INSERT INTO usage.reconciliation_difference (scope_id, external_id, bucket_start, kind, stored_traces, export_traces, state, closed_at, fetch_number)
     SELECT scope_id, state, bucket, 'traces_differ', 3, 4, state, CASE state WHEN 'repaired' THEN now() END, 3
     FROM usage.trace_scope, (VALUES ($2::timestamptz, 'platform_disagrees'), ($2, 'open'), ($3, 'repaired')) d (bucket, state)
     WHERE scope_id = ANY ($1::integer[])`,
    [
      await scopesOf(store.db, { sourceId, groupBy: "workspace", stride: "day", workspaceIds: [A] }),
      ...[-10, -9].map((n) => `${day(n)}T00:00:00Z`),
    ],
  );
  const differing = await textOf(pages, `/coverage?workspace=${A}&group_by=workspace`);
  expect(dayOf(differing, day(-10))).toMatchObject({
    status: "differs",
    text: "final, not proved, differs from the export",
  });
  expect(dayOf(differing, day(-9))).toMatchObject({ status: "unproved", text: "empty, not proved" });
  const [tenthOfDays, ninth] = cellsOf(await textOf(pages, days), "by workspace");
  expect([tenthOfDays, ninth]).toEqual(["final, not proved, differs from the export", "empty, not proved"]);

  // From a day on, no column lies in the future.
  const since = await textOf(pages, `/coverage?from=${day(-3)}&workspace=${A}`);
  expect(cellsOf(since, "by workspace")).toHaveLength(4);

  const hours = await textOf(pages, `/coverage?stride=hour&from=${day(-1)}&to=${day(0)}&open=${A}`);
  expect(cellsOf(hours, "by user")).toEqual(Array(24).fill("missing"));
  expect(hours).toContain("compared with the platform's export apart from days".replace("'", "&#39;"));
  const cell = await textOf(
    pages,
    `/cell?source=default&stride=hour&from=${day(-10)}T05:00&to=${day(-10)}T06:00&workspace=${A}&group_by=workspace`,
  );
  expect(cell).toMatch(
    new RegExp(`By day, ${day(-10)} is: <a href="/cell[^"]+stride=day[^"]+">final, not proved</a>`),
  );
  expect(
    (await textOf(pages, `/coverage?from=${day(-10)}&to=${day(-6)}&gaps=1&group_by=workspace`)).match(
      /<tr data-/g,
    ),
  ).toHaveLength(1);
});

test("years lead to what is older than 13 months, and many workspaces are folded", async () => {
  const bundle = await setupStore();
  const { store } = bundle;
  const standin = { url: "http://127.0.0.1:1", apiKey: "key" } as Standin;
  const pages = await setupPages({ databaseUrl: bundle.url, standin, store });
  const workspaceIds = Array.from({ length: 11 }, (_, n) => A.replace(/..$/, String(n + 10)));
  const [first = ""] = workspaceIds;
  const year = new Date().getUTCFullYear() - 2;
  const sourceId = await enterSource(bundle, { workspaceIds, dataStart: Date.UTC(year, 11, 30) });
  const window = windowOf("day", `${year}-12-30`, `${year + 1}-01-03`);
  await loadRows(store, { sourceId, groupBy: "workspace", workspaceId: first, window, rows: [] });

  const now = await textOf(pages, "/coverage");
  const yearsOf = (page: string) =>
    [...page.matchAll(/<li><a href="([^"]*)" [^>]*>(\d{4}) .*?<\/li>/gs)].map(([, to = "", name]) => [
      name,
      to.replaceAll("&amp;", "&"),
    ]);
  const [, [, to = ""] = []] = yearsOf(now);
  expect(yearsOf(now).map(([name]) => Number(name))).toEqual([year + 1, year]);
  expect(now.match(/<tr><th scope="row">/g)).toHaveLength(13);
  expect(now).toContain('<details id="table" >');
  for (const asked of ["page=1", "gaps=1", `open=${first}`, `workspace=${first}`])
    expect(await textOf(pages, `/coverage?${asked}`), asked).toContain('<details id="table" open>');

  const old = await textOf(pages, `${to}&workspace=${first}&group_by=workspace`);
  expect(old.match(/<tr><th scope="row">/g)).toHaveLength(1);
  expect([29, 30, 31].map((day) => dayOf(old, `${year}-12-${day}`).status)).toEqual([
    ...[undefined, "unverified", "unverified"],
  ]);
  expect(old).toMatch(new RegExp(`title="unverified" aria-current="page">${year} `));
  expect(old).toContain("Last 13 months");
});

test("an address that makes no sense is answered with what is wrong with it", async () => {
  const bundle = await setupStore();
  const standin = { url: "http://127.0.0.1:1", apiKey: "key" } as Standin;
  const pages = await setupPages({ databaseUrl: bundle.url, standin, store: bundle.store });
  await enterSource(bundle, { workspaceIds: [A], dataStart: Date.parse("2026-03-01") });
  const wrong = (query: string) => refusalOf(pages, `/coverage?${query}`);
  expect(await wrong("source=none")).toBe("404 source_unknown");
  expect(await wrong("workspace=none")).toBe("404 workspace_unknown");
  expect(await wrong("from=2026-03-02&to=2026-03-02")).toBe("400 range_reversed");
  for (const query of [
    "from=2026-02-30",
    "from=yesterday",
    "stride=week",
    "page=0",
    "group_by=team",
    "from=2026-03-01T00:30",
  ]) {
    expect(await wrong(query), query).toBe("400 query_invalid");
  }
});
