import { expect } from "vitest";
import { monthAt } from "../../../src/core/domain/months/month.ts";
import { GROUPINGS } from "../../../src/core/domain/usage/record.ts";
import { closePeriod } from "../../../src/features/close/close-period.store.ts";
import { KEEP_PROOF } from "../../support/by-hand.ts";
import { createPrices } from "../../support/charges.ts";
import type { FocusCheck } from "../../support/focus.ts";
import { acceptOpen } from "../../support/month.ts";
import { connectPlain, setupSource, WORKSPACES } from "../../support/reporting.ts";
import { loadRows, type ResponseRow, windowOf } from "../../support/store.ts";

const [WORKSPACE, OTHER] = WORKSPACES;
const BY = { name: null, role: "operator", via: "command" } as const;
const MONTHS = ["2026-03-01", "2026-04-01", "2026-05-01", "2026-06-01"] as const;

export const COST = {
  table: "reporting_detail.focus_1_4_cost_and_usage",
  dataset: "CostAndUsage",
} as const satisfies FocusCheck;
export const BY_RESOURCE = {
  ...COST,
  table: "reporting_detail.focus_1_4_cost_and_usage_by_resource",
} as const;
export const PERIOD = {
  table: "reporting_detail.focus_1_4_billing_period",
  dataset: "BillingPeriod",
} as const satisfies FocusCheck;

export type Bench = Awaited<ReturnType<typeof setup>>;

export async function setup() {
  const bench = await setupSource();
  return {
    ...bench,
    owner: await connectPlain(bench.url),
    reader: await connectPlain(bench.url, "usage_reader"),
  };
}

/** A month of a workspace by the workspace; other dimensions are loaded empty, so that the month can be closed. */
export async function loadMonth(
  bench: Bench,
  month: number,
  workspaceId: string,
  rows: readonly ResponseRow[],
) {
  const window = windowOf("day", MONTHS[month] ?? "", MONTHS[month + 1] ?? "");
  const { store, sourceId } = bench;
  for (const groupBy of GROUPINGS) {
    const given = groupBy === "workspace" ? rows : [];
    await loadRows(store, { sourceId, workspaceId, groupBy, window, rows: given });
  }
}

export async function loadDay(
  { store, sourceId }: Bench,
  day: string,
  workspaceId: string,
  traces: number,
  name?: string,
) {
  const next = new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);
  const row: ResponseRow = name === undefined ? [day, workspaceId, traces] : [day, workspaceId, traces, name];
  await loadRows(store, {
    sourceId,
    workspaceId,
    groupBy: "workspace",
    window: windowOf("day", day, next),
    rows: [row],
  });
}

/**
 * Marks a month as reconciled, as a reconciliation without differences does, and closes it. `without`: workspaces that are not
 * reconciled, so the close leaves them out.
 */
export async function close(
  { store, sourceId, owner }: Bench,
  month: number,
  without: readonly string[] = [],
) {
  await owner.query(
    `INSERT INTO usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
     SELECT scope_id, $1::date, $2::date, 1000, clock_timestamp()
     FROM usage.trace_scope c JOIN usage.entity w ON w.entity_id = c.workspace_id
     WHERE stride = 'day' AND w.external_id <> ALL ($3::text[]) AND c.source_id = $4`,
    [MONTHS[month], MONTHS[month + 1], without, sourceId],
  );
  await owner.query(KEEP_PROOF);
  const period = monthAt(Date.parse(MONTHS[month] ?? ""));
  const closed = await acceptOpen((accept) =>
    closePeriod(store, { sourceId, period, settleAfterMs: 0, by: BY, ...accept }),
  );
  expect(closed).toMatchObject({ state: "closed", without });
}

export async function fill(bench: Bench) {
  await createPrices(bench.store, [
    { unitPrice: "99999999.9999999999" },
    { unitPrice: "0", sku: "free" },
    { unitPrice: "0.25", sku: "tiered", currency: "EUR" },
    { unitPrice: "0.125", sku: "tiered", currency: "EUR", fromQuantity: 3 },
  ]);
  await loadMonth(bench, 0, WORKSPACE, [
    ["2026-03-01", WORKSPACE, 5, "before"],
    ["2026-03-05", WORKSPACE, 9_007_199_254_740_900, "after"],
  ]);
  await loadMonth(bench, 0, OTHER, [["2026-03-02", OTHER, 2]]);
  await loadMonth(bench, 1, WORKSPACE, [["2026-04-30", WORKSPACE, 4, "after"]]);
  await loadMonth(bench, 1, OTHER, []);
}
