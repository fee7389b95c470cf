import { expect, test } from "vitest";
import { Secret } from "../../../src/config/secret.ts";
import { DAY_MS } from "../../../src/domain/time/stride.ts";
import { asRun } from "../../../src/pipeline/as-run.ts";
import { TIMELINE_KINDS } from "../../../src/store/activity/timeline.ts";
import { CLOSE_ACTION } from "../../../src/store/months/closed-months.ts";
import { recordAction } from "../../../src/store/work/operator-actions.ts";
import { refusalOf, rowsOf, rowsOfAll, setupPages, setupViewer } from "../../support/pages.ts";
import { senderOn, setup } from "../../support/source.ts";

test("the timeline lists runs, restatements, closes, prices, orders and changes of the configuration, each once and with who", async () => {
  const bench = await setup({ days: 6, workspaces: [1] });
  const range = { start: bench.dataStart, end: bench.dataStart + 2 * DAY_MS };
  const load = () => bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  const { source } = await load();
  for (const kind of ["sync", "files"] as const) {
    await asRun(
      source,
      kind,
      async () => {},
      () => ({ outcome: "done" }),
    );
  }
  await asRun(
    source,
    "reconcile",
    async () => {},
    () => ({ outcome: "partly_failed", failed: 2, code: "timeout", message: "Slow." }),
  );
  bench.standin.ledger.change(senderOn(bench.standin, 1, bench.dataStart), 7);
  await load();
  // Contact carries out another configuration, and a key that the platform refuses.
  const earlier = new Date(bench.dataStart - DAY_MS).toISOString().slice(0, 10);
  await bench.open({ config: { dataStart: earlier, workspaceIds: [] } });
  const secret = "lsv2_pt_not_to_be_seen";
  await expect(bench.open({ config: { apiKey: new Secret(secret) } })).rejects.toThrow();
  await bench.sql(
    `WITH k AS (INSERT INTO usage.sku (name) VALUES ('traces') RETURNING sku_id)
     INSERT INTO usage.price (sku_id, unit_price, currency, valid_from) SELECT sku_id, 1, 'USD', '2026-01-01' FROM k`,
  );
  const ada = { name: "ada@example.com", role: "operator", via: "page" } as const;
  const { sourceId } = source;
  await bench.sql(
    "INSERT INTO usage.month_close (source_id, month_start, settle_after_seconds, accepted_disagreements) VALUES ($1, '2026-01-01', 0, 3)",
    [sourceId],
  );
  await recordAction(bench.store.db, ada, { sourceId, action: CLOSE_ACTION, detail: "2026-01: 5 traces" });
  await recordAction(
    bench.store.db,
    { name: null, role: "operator", via: "command" },
    { sourceId, action: "backfill.start", detail: "backfill 4711: <script>", outcome: "refused" },
  );

  const order = { sourceId, action: "backfill.start" };
  const [whole, hours] = ["2026-10-14 to 2026-10-21 by hour", "2026-10-14T01:00Z to 2026-10-15 by hour"];
  for (const [id, asked] of [whole, hours].entries())
    await recordAction(bench.store.db, ada, { ...order, detail: `backfill ${id + 1}: ${asked}, user` });

  const pages = await setupPages(bench);
  const viewer = await setupViewer(bench);
  const page = await pages.get("/timeline");
  expect(page.status).toBe(200);
  const rows = rowsOf(page.text);
  const one = (text: string) => rows.filter((row) => row.includes(text));
  expect(one("sync ●")).toHaveLength(1);
  expect(one("reconciliation ! run")[0]).toContain("done, 2 failed");
  expect(one("reconciliation ! run")[0]).toContain("Slow. [timeout]");
  const restated = one("restatements")[0] ?? "";
  expect(restated).toContain(
    "4 final counts changed within the hour, over all kinds of usage, dimensions and strides; of traces by workspace and day: 1 change, +7 traces.",
  );
  expect(one("month closed")[0]).toContain(
    "2026-01 was closed, with 3 disagreements accepted. ada@example.com, on a page",
  );
  expect(one("prices imported")[0]).toContain("1 price of traces");
  expect(one("action !")[0]).toContain("backfill.start: backfill 4711: <script> , refused by a command");
  expect(one("backfill 1:")[0]).toContain("backfill 1: 2026-10-14 to 2026-10-20 by hour, user");
  expect(one("backfill 2:")[0]).toContain("2026-10-14 01:00 until 2026-10-15 00:00 by hour");
  expect(page.text).toContain("backfill 4711: &lt;script&gt;");
  expect(page.text).toContain('href="/backfills/4711"');
  expect(page.text).toContain('href="/months/2026-01?source=default"');
  const configuration = one("configuration");
  expect(configuration).toHaveLength(5);
  expect(configuration.join()).toContain(
    `The data start changed from ${new Date(bench.dataStart).toISOString().slice(0, 10)} to ${earlier}`,
  );
  expect(configuration.join()).toContain(
    "No workspace is configured any more (1 were): all that are listed are read.",
  );
  expect(configuration.join()).toContain("Another key is used.");
  const kept = await bench.sql<{ text: string }>(
    "SELECT string_agg(c::text || s::text, ' ') AS text FROM usage.configuration_change c, usage.source s",
  );
  expect(kept[0]?.text).not.toContain(secret);
  expect(kept[0]?.text).not.toContain(bench.standin.apiKey);
  expect((await viewer.get("/timeline")).text).not.toContain("ada@example.com");

  // Many entries of one instant come page by page, each once, of all kinds together and of one kind.
  await bench.sql(
    `INSERT INTO usage.run (source_id, kind, started_at, finished_at, outcome)
     SELECT $1, CASE n % 2 WHEN 0 THEN 'sync' ELSE 'totals' END, now(), now(), 'done' FROM generate_series(1, 120) n`,
    [sourceId],
  );
  const everything = await rowsOfAll(pages, "/timeline");
  expect([everything.length, new Set(everything).size]).toEqual([rows.length + 120, rows.length + 120]);
  expect(await rowsOfAll(pages, "/timeline?kind=totals")).toHaveLength(60);
  let byKind = 0;
  for (const kind of TIMELINE_KINDS)
    byKind += (await rowsOfAll(pages, `/timeline?source=default&kind=${kind}`)).length;
  // Prices are not of one source, and listed with each.
  expect(byKind).toBe(everything.length);

  for (const wrong of ["kind=odd", "before=xyz", "before=WzFd"])
    expect(await refusalOf(pages, `/timeline?${wrong}`), wrong).toBe("400 query_invalid");
  expect(await refusalOf(pages, "/timeline?source=nobody")).toBe("404 source_unknown");
});
