import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { createPrices } from "../support/charges.ts";
import { setOwners } from "../support/owners.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";

/** The files of docs/examples do what they say. DuckDB answers the questions in test/tools. */

const [WORKSPACE, OTHER] = WORKSPACES;
const ID = (last: string) => `00000000-0000-4000-8000-0000000000${last}`;
const example = (name: string) => readFile(new URL(`../../docs/examples/${name}`, import.meta.url), "utf8");

async function october() {
  const { store, url, sourceId } = await setupSource();
  const window = windowOf("day", "2026-10-01", "2026-11-01");
  const load = (
    groupBy: "workspace" | "project" | "user",
    workspaceId: string,
    rows: Parameters<typeof loadRows>[1]["rows"],
  ) => loadRows(store, { sourceId, groupBy, workspaceId, window, rows });
  await load("workspace", WORKSPACE, [
    ["2026-10-02", WORKSPACE, 100, "Research"],
    ["2026-10-20", WORKSPACE, 11, "Research"],
  ]);
  await load("project", WORKSPACE, [
    ["2026-10-02", ID("0a"), 33, "chat"],
    ["2026-10-02", ID("0b"), 34, "search"],
    ["2026-10-20", ID("0b"), 11, "search"],
  ]);
  await load("user", WORKSPACE, [
    ["2026-10-02", ID("0c"), 33, "ada@example.test"],
    ["2026-10-02", ID("0d"), 34, "bob@example.test"],
  ]);
  await load("workspace", OTHER, [["2026-10-31", OTHER, 7, "Support"]]);
  await createPrices(store, [{ unitPrice: "0.0137" }, { sku: "seats", unitPrice: "0.001", currency: "EUR" }]);
  const rules =
    "rules:\n  - { name: chat, owner: chat, cost_center: CC-1 }\n  - { name: search, shares: [{ owner: chat, share: 0.5 }, { owner: search, share: 0.5 }] }";
  await setOwners(store, rules);
  return connectPlain(url, "usage_reader");
}

test("chargeback.sql gives each team whole cents that add up to the month", async () => {
  const reader = await october();
  const { rows } = await reader.query<{ owner: string; currency: string; amount: string }>(
    await example("chargeback.sql"),
  );
  expect(new Set(rows.map(({ owner }) => owner))).toEqual(new Set(["(unallocated)", "chat", "search"]));
  const { rows: totals } = await reader.query<{ currency: string; cost: string }>(
    `SELECT currency, round(sum(estimated_cost), 2)::text AS cost FROM reporting.fct_cost_workspace_daily
     WHERE usage_date >= '2026-10-01' AND usage_date < '2026-11-01' GROUP BY 1 ORDER BY 1`,
  );
  expect(totals).toEqual([
    { currency: "EUR", cost: "0.12" },
    { currency: "USD", cost: "1.62" },
  ]);
  for (const { currency, cost } of totals) {
    const cents = rows.filter((row) => row.currency === currency).map(({ amount }) => Number(amount) * 100);
    expect([currency, Math.round(cents.reduce((sum, one) => sum + one, 0))]).toEqual([
      currency,
      Math.round(Number(cost) * 100),
    ]);
  }
});

test("metabase-question.sql counts each trace once, with filters and without", async () => {
  const reader = await october();
  const question = await example("metabase-question.sql");
  const sumOf = async (text: string) => {
    const { rows } = await reader.query<{ traces: string | null }>(text);
    return rows.reduce((sum, { traces }) => sum + Number(traces ?? 0), 0);
  };
  const all = await sumOf(question.replaceAll(/\[\[.*?\]\]/g, ""));
  expect(all).toBe(78);
  const filled = question
    .replaceAll(/\[\[|\]\]/g, "")
    .replace("{{from}}", "DATE '2026-10-02'")
    .replace("{{to}}", "DATE '2026-10-20'")
    .replace("{{workspace}}", "'Research'");
  expect(await sumOf(filled)).toBe(67);
});
