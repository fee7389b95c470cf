import { expect, test } from "vitest";
import { readConfig } from "../../../src/core/base/config.ts";
import { Secret } from "../../../src/core/base/secret.ts";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { asRun } from "../../../src/core/pipeline/as-run.ts";
import { CLOSE_ACTION } from "../../../src/core/store/months/closes.ts";
import { recordAction } from "../../../src/core/store/work/operator-actions.ts";
import { TIMELINE_KINDS } from "../../../src/features/activity/timeline.store.ts";
import { TOOLS } from "../../../src/features/mcp/tools.ts";
import { type PagesBench, setupPages, setupViewer } from "../../support/pages.ts";
import { share } from "../../support/share.ts";
import { senderOn, setup } from "../../support/source.ts";

const ADA = { name: "ada@example.com", role: "operator", via: "page" } as const;
const SECRET = "lsv2_pt_not_to_be_seen";

/** A source of which something of each kind happened. */
async function setupTimeline() {
  const bench = await setup({ days: 6, workspaces: [1] });
  const range = { start: bench.dataStart, end: bench.dataStart + 2 * DAY_MS };
  const load = () => bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  const { source } = await load();
  const { sourceId } = source;
  const run = async (kind: "sync" | "files" | "reconcile", result: Parameters<typeof asRun>[3]) =>
    asRun(source, kind, async () => {}, result);
  await run("sync", () => ({ outcome: "done" }));
  await run("files", () => ({ outcome: "done" }));
  await run("reconcile", () => ({ outcome: "partly_failed", failed: 2, code: "timeout", message: "Slow." }));
  bench.standin.ledger.change(senderOn(bench.standin, 1, bench.dataStart), 7);
  await load();
  // Contact carries out another configuration, and a key that the platform refuses.
  const earlier = new Date(bench.dataStart - DAY_MS).toISOString().slice(0, 10);
  await bench.open({ config: { dataStart: earlier, workspaceIds: [] } });
  await expect(bench.open({ config: { apiKey: new Secret(SECRET) } })).rejects.toThrow();
  await bench.sql(
    `WITH k AS (INSERT INTO usage.sku (name) VALUES ('traces') RETURNING sku_id)
     INSERT INTO usage.price (sku_id, unit_price, currency, valid_from) SELECT sku_id, 1, 'USD', '2026-01-01' FROM k`,
  );
  await bench.sql(
    "INSERT INTO usage.close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements) VALUES ($1, '2026-01-01', '2026-02-01', 0, 3)",
    [sourceId],
  );
  await recordAction(bench.store.db, ADA, { sourceId, action: CLOSE_ACTION, detail: "2026-01: 5 traces" });
  await recordAction(
    bench.store.db,
    { name: null, role: "operator", via: "command" },
    { sourceId, action: "backfill.start", detail: "backfill 4711: <script>", outcome: "refused" },
  );
  for (const [id, requested] of ["2026-10-14 to 2026-10-21", "2026-10-14T01:00Z to 2026-10-15"].entries())
    await recordAction(bench.store.db, ADA, {
      sourceId,
      action: "backfill.start",
      detail: `backfill ${id + 1}: ${requested} by hour, user`,
    });
  return { ...bench, sourceId, pages: await setupPages(bench) };
}

/** For tests that change nothing. */
const shared = share(setupTimeline);

/** The rows of a list and of all its older pages. */
async function rowsOfAll(pages: PagesBench, path: string): Promise<string[]> {
  const page = await pages.read(path);
  const rows = page.hasTable("Timeline") ? page.table("Timeline").map((row) => JSON.stringify(row)) : [];
  const [older] = page.links("Older entries");
  return older === undefined ? rows : [...rows, ...(await rowsOfAll(pages, older))];
}

test("each thing that happened is a row, with who ordered it", async () => {
  const { pages, dataStart } = shared();
  const page = await pages.read("/timeline");
  const rows = page.table("Timeline");
  const of = (kind: string) =>
    rows.filter((row) => row.Type === kind).map((row) => [row.What ?? "", row.Who]);
  // Syncs are listed where they are asked for.
  expect(of("Sync")).toEqual([]);
  const all = (await pages.read("/timeline?syncs=1")).table("Timeline");
  expect(all.filter((row) => row.Type === "Sync")).toHaveLength(1);
  expect(of("Reconciliation")[0]?.[0]).toMatch(/2 failed.* Slow\. \[timeout\]$/);
  expect(of("Restatements")[0]?.[0]).toMatch(/^1 day .*\+7 traces$/);
  expect(of("Month closed")).toEqual([
    [expect.stringMatching(/^2026-01 .* 3 /), "ada@example.com, on a page"],
  ]);
  expect(of("Prices imported")[0]?.[0]).toContain("1 price of traces");
  expect(of("Action").map(([what, who]) => `${what} | ${who}`)).toEqual(
    expect.arrayContaining([
      // A range has its last day, as on other pages.
      "backfill.start: backfill 1: 2026-10-14 to 2026-10-20 by hour, user | ada@example.com, on a page",
      expect.stringMatching(/^backfill.start: backfill 2: 2026-10-14 01:00 until 2026-10-15 00:00 by hour/),
      "backfill.start: backfill 4711: <script>, refused | by a command",
    ]),
  );
  const configuration = of("Configuration").map(([what]) => what);
  expect(configuration).toHaveLength(5);
  expect(configuration.join()).toContain(`from ${new Date(dataStart).toISOString().slice(0, 10)} to `);
  // A row leads to the page that shows it.
  expect(page.links("Action")).toContain("/backfills/4711");
  expect(page.links("Month closed")).toEqual(["/months/2026-01?source=default"]);
});

test("no key is kept, and a viewer sees no address", async () => {
  const bench = shared();
  const [kept] = await bench.sql<{ text: string }>(
    "SELECT string_agg(c::text || s::text, ' ') AS text FROM usage.configuration_change c, usage.source s",
  );
  for (const key of [SECRET, bench.standin.apiKey]) expect(kept?.text).not.toContain(key);
  const viewer = await setupViewer(bench);
  for (const path of ["/timeline", "/months", "/months/2026-01"])
    expect((await viewer.get(path)).text, path).not.toContain("ada@example.com");
});

test("neither a viewer nor a masked AI client sees an address in the platform's words", async () => {
  const bench = await setupTimeline();
  const words = "Ask ada@example.com.";
  await bench.sql("UPDATE usage.run SET outcome = 'failed', message = $1 WHERE kind = 'sync'", [words]);
  await bench.sql("UPDATE usage.source SET refused_message = $1", [words]);
  const [{ id } = { id: 0 }] = await bench.sql<{ id: number }>(
    `INSERT INTO usage.backfill (source_id, meter, stride, groupings, reprocess, workspace_ids, period_start, period_end, state)
     SELECT source_id, 'traces', 'day', '{workspace}', 'all', '{}', '2026-01-01', '2026-01-02', 'running' FROM usage.source
     RETURNING backfill_id AS id`,
  );
  const viewer = await setupViewer(bench);
  const paths = ["/", "/timeline", `/backfills/${id}`];
  const masked = { reader: "usage_reader_masked", db: bench.store.db, store: bench.store } as const;
  const config = readConfig({});
  for (const isRefused of [true, false]) {
    if (!isRefused)
      await bench.sql(
        "UPDATE usage.source SET refused_at = NULL, refused_code = NULL, refused_message = NULL",
      );
    for (const path of paths) expect((await viewer.get(path)).text, path).not.toContain("ada@");
    const status = JSON.stringify(await TOOLS.status.response({ ...masked, config }, {}));
    expect(status).toContain(isRefused ? "refuses the key" : "Ask (address)");
    expect(status).not.toContain("ada@");
  }
  for (const path of ["/", "/timeline"]) expect((await bench.pages.get(path)).text, path).toContain("ada@");
});

test("many entries of one instant come page by page, each once, of all kinds together and of one kind", async () => {
  const { pages, sql, sourceId } = await setupTimeline();
  const before = await rowsOfAll(pages, "/timeline?syncs=1");
  await sql(
    `INSERT INTO usage.run (source_id, kind, started_at, finished_at, outcome)
     SELECT $1, CASE n % 2 WHEN 0 THEN 'sync' ELSE 'totals' END, now(), now(), 'done' FROM generate_series(1, 120) n`,
    [sourceId],
  );
  const all = await rowsOfAll(pages, "/timeline?syncs=1");
  expect([all.length, new Set(all).size]).toEqual([before.length + 120, before.length + 120]);
  expect(await rowsOfAll(pages, "/timeline?kind=totals")).toHaveLength(60);
  const byKind = TIMELINE_KINDS.map((kind) => rowsOfAll(pages, `/timeline?source=default&kind=${kind}`));
  // Prices are not of one source, and listed with each.
  expect((await Promise.all(byKind)).flat()).toHaveLength(all.length);
});
