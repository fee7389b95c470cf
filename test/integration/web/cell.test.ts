import { expect, test } from "vitest";
import { DAY_MS, floorToGrid } from "../../../src/domain/time/stride.ts";
import type { Standin } from "../../../src/local/standin/server.ts";
import { scopesOf } from "../../../src/store/catalog/scopes.ts";
import { failScopes } from "../../../src/store/load/failures.ts";
import { drawStamp } from "../../../src/store/load/fetch-ledger.ts";
import { listBackfills } from "../../../src/store/work/backfills.ts";
import { listActions } from "../../support/actions.ts";
import { type PagesBench, refusalOf, setupPages, setupViewer } from "../../support/pages.ts";
import { loadRows, windowOf } from "../../support/store.ts";
import { setupSource } from "../store/setup.ts";

const W = "00000000-0000-4000-8000-00000000000a";
const STANDIN = { url: "http://127.0.0.1:1", apiKey: "key" } as Standin;

async function lineOf(pages: PagesBench, path: string): Promise<string> {
  const { status, text } = await pages.get(path);
  expect(status, path).toBe(200);
  return text.replace(/\s+/g, " ");
}

test("a cell shows its answers, restatements, differences and failures, and no address to a viewer", async () => {
  const today = floorToGrid(Date.now(), DAY_MS);
  const day = (n: number) => new Date(today + n * DAY_MS).toISOString().slice(0, 10);
  const bundle = await setupSource({ workspaceIds: [W], dataStart: today - 9 * DAY_MS });
  const { store, sourceId, reader } = bundle;
  const load = (rows: [string, string, number, string][]) =>
    loadRows(store, {
      sourceId,
      groupBy: "user",
      workspaceId: W,
      window: windowOf("day", day(-9), day(-5)),
      rows,
    });
  await load([[`${day(-9)}T00:00:00Z`, "u1", 1234, "ann@example.com"]]);
  await load([[`${day(-9)}T00:00:00Z`, "u1", 5678, "ann@example.com"]]);
  const scopeIds = await scopesOf(store.db, { sourceId, groupBy: "user", stride: "day", workspaceIds: [W] });
  await failScopes(store, {
    scopeIds,
    period: windowOf("day", day(-4), day(-3)),
    stamp: await drawStamp(store.db),
    state: "failed",
    code: "answer_invalid",
    message: "The record of bob@example.com lacks <b>traces</b>.",
  });
  const request = "GET https://platform.example/usage?start_time=2026";
  const answers = [
    '{"detail":"The day of <eve@example.com> is recomputed."}',
    '{"detail":{"error":"odd"}}',
    '{"detail":"Cut...',
  ];
  for (const [n, answer] of answers.entries()) {
    await failScopes(store, {
      scopeIds,
      period: windowOf("day", day(n - 3), day(n - 2)),
      stamp: await drawStamp(store.db),
      state: "failed",
      code: "request_refused",
      message: `${request} answered 422: ${answer}`,
    });
  }
  await reader.query(
    `INSERT INTO usage.reconciliation_difference (scope_id, external_id, bucket_start, kind, stored_traces, export_traces, state, fetch_number)
     VALUES ($1, 'u1', $2, 'traces_differ', 5678, 5600, 'platform_disagrees', 3)`,
    [scopeIds[0], `${day(-9)}T00:00:00Z`],
  );
  const cell = (from: number, more: string) =>
    `/cell?source=default&workspace=${W}&from=${day(from)}&to=${day(from + 1)}${more}`;

  const pages = await setupPages({ databaseUrl: bundle.url, standin: STANDIN, store });
  const shown = await lineOf(pages, cell(-9, "&group_by=user&stride=day"));
  expect(shown).toContain("<bdi>ann@example.com</bdi>");
  expect(shown).toMatch(/Was<.*1,234<\/span><\/td><td><span class="number">5,678/);
  expect(shown).toMatch(/the counts differ<\/td>.*5,678.*5,600.*platform disagrees/);
  expect(shown).toMatch(/Traces stored<.*5,678/);
  expect(shown).toContain("no longer in the ledger of requests");
  const failed = await lineOf(pages, cell(-4, ""));
  expect(failed).toContain("bob@example.com lacks &lt;b&gt;traces&lt;/b&gt;");
  expect(failed).toContain("with the first sync after");
  expect(failed).toMatch(/>user<\/a><\/th> <td><span class="status failed"/);
  expect(failed).toMatch(/>project<\/a><\/th> <td><span class="status missing"/);

  // The platform's own words come first, the request is folded, and the button has its name.
  const refused = await lineOf(pages, cell(-3, "&group_by=user"));
  expect(refused).toContain(
    "<p>The platform answered 422: <q>The day of &lt;eve@example.com&gt; is recomputed.</q></p>",
  );
  expect(refused).toContain(`<details><summary>The request</summary><code>${request}</code></details>`);
  expect(refused).toContain("own words. Then ask again with the button below.");
  expect(await lineOf(pages, cell(-2, ""))).toContain(`<p>${request} answered 422: {&quot;detail&quot;:{`);
  expect(await lineOf(pages, cell(-1, ""))).toContain(
    `<p>${request} answered 422: {&quot;detail&quot;:&quot;Cut...`,
  );

  // The button starts one backfill, however often it is sent from one page.
  const path = cell(-4, "&group_by=user");
  // Of all dimensions it asks for the one that failed alone; a button that is folded asks for all of them.
  const buttonsOf = (page: string) =>
    page
      .split('action="/cell"')
      .slice(1)
      .map((one) =>
        [...one.matchAll(/name="(reprocess|group_by)" value="(\w+)"|<button>([^<]*)</g)].map((found) =>
          found.slice(2).join(""),
        ),
      );
  expect(buttonsOf(failed)).toEqual([
    ["missing", "user", "Ask again"],
    ["all", "Ask for all of it again"],
  ]);
  expect(buttonsOf(await lineOf(pages, cell(-9, "")))).toEqual([["all", "Ask again"]]);
  const form = (await pages.get(path)).text.split('action="/cell"')[1] ?? "";
  const fields = Object.fromEntries(
    [...form.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)].map(([, field = "", value = ""]) => [
      field,
      value,
    ]),
  );
  const { _csrf, ...asked } = fields;
  expect((await pages.post("/cell", asked)).status).toBe(403);
  const first = await pages.post("/cell", asked, { from: path });
  expect([first.status, first.headers.location]).toEqual([303, "/backfills/1"]);
  expect((await pages.post("/cell", asked, { from: path })).headers.location).toBe("/backfills/1");
  const [backfill, ...others] = await listBackfills(store.db);
  expect(others).toEqual([]);
  expect(backfill).toMatchObject({ groupings: ["user"], workspaceIds: [W], reprocess: "missing", total: 1 });
  expect(pages.enqueued).toContain("default");
  const [action] = await listActions(store.db, { most: 1 });
  expect(action).toMatchObject({ action: "backfill.start", via: "page" });
  expect(await lineOf(pages, path)).toContain('in <a href="/backfills/1">backfill 1</a>');

  const looking = await setupViewer({ databaseUrl: bundle.url, standin: STANDIN, store });
  for (const path of [cell(-9, "&group_by=user"), cell(-4, ""), cell(-3, "")]) {
    const masked = await lineOf(looking, path);
    expect(masked).not.toContain("@example.com");
    expect(masked).not.toContain('method="post" action="/cell');
    expect(masked).not.toContain("the button below");
  }
  expect(await lineOf(looking, cell(-9, "&group_by=user"))).toContain("user u1");

  for (const [path, answer] of [
    [`/cell?source=default&workspace=${W}`, "400 query_invalid"],
    [`/cell?from=${day(-1)}`, "400 query_invalid"],
    [`/cell?source=default&workspace=none&from=${day(-1)}`, "404 workspace_unknown"],
    [`/cell?source=none&workspace=${W}&from=${day(-1)}`, "404 source_unknown"],
    [`/cell?source=default&workspace=${W}&from=2026-01-01&to=2026-10-01`, "400 range_too_long"],
  ] as const)
    expect(await refusalOf(pages, path), path).toBe(answer);
});
