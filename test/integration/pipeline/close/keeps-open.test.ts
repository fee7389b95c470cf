import { beforeEach, describe, expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { otherTraces } from "../../../../src/features/costs/other-traces.store.ts";
import { KEEP_PROOF } from "../../../support/by-hand.ts";
import {
  acceptOpen,
  bench,
  booked,
  close,
  load,
  month,
  setUpMonth,
  WORKSPACE,
} from "../../../support/month.ts";
import { senderOn } from "../../../support/source.ts";

/** What keeps a month open, and who may close it all the same. */

beforeEach(() => setUpMonth());

test("a day restated since it was reconciled is open again", async () => {
  await load();
  await bench.reconcile({ range: month });
  const day = month.start + 9 * DAY_MS;
  bench.standin.ledger.change(senderOn(bench.standin, WORKSPACE, day), 2);
  await load();
  expect(await close()).toMatchObject({
    state: "open",
    open: { length: 4, 0: { day, reason: "not_reconciled" } },
  });
});

test("a price counts for a month if it is valid on one of its days, for its source or for all; nothing needs none", async () => {
  const source = await bench.open();
  const lacks = async () => {
    const monthStart = new Date(month.start).toISOString().slice(0, 10);
    return (await otherTraces(bench.store.db, { sourceId: source.sourceId, monthStart, range: month }))
      .lacksPrice;
  };
  const priced = async (from: number, to: number, of: number | null = null) => {
    await bench.sql("DELETE FROM usage.price");
    await bench.sql(
      `INSERT INTO usage.price (sku_id, source_id, unit_price, currency, valid_from, valid_to)
       SELECT sku_id, $3, 0.5, 'USD', $1::date, $2::date FROM usage.sku`,
      [...[from, to].map((at) => new Date(at).toISOString().slice(0, 10)), of],
    );
    return lacks();
  };
  await bench.sql("INSERT INTO usage.sku (name) VALUES ('traces')");
  await bench.sql(
    `INSERT INTO usage.source (source_id, slug, base_url, data_start, hourly_hours, configuration_digest)
     OVERRIDING SYSTEM VALUE VALUES (77, 'other', 'http://localhost', '2026-01-05', 1, '')`,
  );
  expect(await lacks()).toBe(false);
  await load();
  expect(await lacks()).toBe(true);
  expect(await priced(month.start - DAY_MS, month.start)).toBe(true);
  expect(await priced(month.start - DAY_MS, month.start + DAY_MS)).toBe(false);
  expect(await priced(month.end - DAY_MS, month.end + DAY_MS)).toBe(false);
  expect(await priced(month.end, month.end + DAY_MS)).toBe(true);
  expect(await priced(month.start, month.end, 77)).toBe(true);
  expect(await priced(month.start, month.end, source.sourceId)).toBe(false);
});

test("a month in which the data starts needs only the days since", async () => {
  await bench.open();
  const date = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  const start = (day: number) => bench.sql("UPDATE usage.source SET data_start = $1", [date(day)]);
  await start(month.end - DAY_MS);
  const result = await close();
  expect(result).toMatchObject({ state: "open", open: { length: 4, 0: { day: month.end - DAY_MS } } });
});

describe("a workspace with ten days of the month", () => {
  const [FULL, PARTIAL] = [1, 2];
  let partial: string;

  beforeEach(async () => {
    await setUpMonth([FULL, PARTIAL]);
    partial = bench.workspaceIds[1] ?? "";
    const loadDays = (range: typeof month, index: number) =>
      bench.fetch({
        wanted: [{ stride: "day", range }],
        reprocess: "all",
        workspaceIds: bench.workspaceIds.slice(index, index + 1),
      });
    await loadDays(month, 0);
    await loadDays({ start: month.start, end: month.start + 10 * DAY_MS }, 1);
    await bench.reconcile({ range: month });
  });

  const lacking = () => 4 * (Math.round((month.end - month.start) / DAY_MS) - 10);

  test("keeps it open when the configuration no longer names it", async () => {
    await bench.open({ config: { workspaceIds: bench.workspaceIds.slice(0, 1) } });
    const result = await close();
    expect(result).toMatchObject({ state: "open", open: { length: lacking() } });
    expect(result).toMatchObject({
      open: { 0: { workspaceId: partial, access: "not_configured", reason: "missing" } },
    });
  });

  test("keeps it open when the platform no longer lists it", async () => {
    const { access, organisation } = bench.standin;
    const workspace = organisation.workspaces[PARTIAL];
    // Access is proven once more after the reconciliation, so what it compared stays proved.
    await bench.open();
    if (workspace !== undefined) access.setReadable(workspace, false);
    await bench.open({ config: { workspaceIds: [] } });
    expect(await close()).toMatchObject({ state: "open" });
    const open = await close();
    const of = open.state === "open" ? open.open.filter(({ workspaceId }) => workspaceId === partial) : [];
    expect(of).toHaveLength(lacking());
    expect(of[0]).toMatchObject({ access: "unlisted", reason: "missing" });
  });

  test("stands in the close as left out, and not in its totals, if what is open is accepted", async () => {
    const closed = await acceptOpen(close);
    expect(closed).toMatchObject({ state: "closed", traces: booked(), without: [partial] });
    const workspaces = await bench.sql(
      `SELECT workspace_id, is_left_out, closed_traces::integer, settle_after_seconds::integer
       FROM reporting_detail.fct_close WHERE group_by = 'workspace' ORDER BY is_left_out`,
    );
    expect(workspaces).toEqual([
      {
        workspace_id: bench.workspaceIds[0],
        is_left_out: false,
        closed_traces: booked(),
        settle_after_seconds: 259_200,
      },
      { workspace_id: partial, is_left_out: true, closed_traces: null, settle_after_seconds: 259_200 },
    ]);
    expect(await close()).toMatchObject({ state: "closed_before", without: [partial], adjusted: 0 });
    await load();
    expect(await close()).toMatchObject({ state: "closed_before", without: [partial], adjusted: 0 });
  });

  test("does not close it for no workspace at all", async () => {
    await bench.sql(`DELETE FROM usage.reconciled; ${KEEP_PROOF}`);
    expect(await close()).toMatchObject({ state: "open", digest: null });
    await expect(close({ accept: ["x"] })).rejects.toMatchObject({ code: "workspaces_unknown" });
    expect(await bench.sql("SELECT FROM usage.close")).toEqual([]);
  });
});

test("a workspace that left the listing before the month, and has nothing in it, does not keep it open", async () => {
  await load();
  await bench.reconcile({ range: month });
  await bench.sql(
    `WITH e AS (INSERT INTO usage.entity (source_id, dimension, external_id) SELECT source_id, 'workspace', 'gone' FROM usage.source RETURNING entity_id)
     INSERT INTO usage.workspace (entity_id, unlisted_since) SELECT entity_id, $1 FROM e`,
    [new Date(month.start - DAY_MS).toISOString()],
  );
  await bench.sql("UPDATE usage.source SET workspace_ids = '{}'");
  expect(await close()).toMatchObject({ state: "closed" });
});
