import { beforeEach, expect, test } from "vitest";
import { GROUPINGS } from "../../../src/domain/usage/record.ts";
import { TOOLS } from "../../../src/service/mcp/tools.ts";
import { usageSources } from "../../../src/store/figures/sources.ts";
import { closeMonth } from "../../../src/store/months/month-close.ts";
import { enterPrices } from "../../support/charges.ts";
import { client, setUpEachSource, sourceId, store } from "../../support/each-source.ts";
import type { Answer } from "../../support/mcp.ts";
import { WORKSPACES } from "../../support/reporting.ts";
import { loadDeploymentRows, loadRows, windowOf } from "../../support/store.ts";

/** What the tools say of a month that a close kept in part, or that changed since. */

const [FIRST, SECOND] = WORKSPACES;
const DAY = "2026-03-02";
const MARCH = { from: "2026-03-01", to: "2026-04-01" };
const [NEVER, ALWAYS] = [10 * 365 * 86_400_000, 0];

setUpEachSource();

beforeEach(async () => {
  for (const groupBy of GROUPINGS)
    for (const workspaceId of WORKSPACES) await loadTraces(workspaceId, 10, groupBy);
  await client.query(`INSERT INTO usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
    SELECT scope_id, '2026-03-01Z', '2026-04-01Z', 999, now() FROM usage.trace_scope WHERE stride = 'day'`);
});

const march = windowOf("day", MARCH.from, MARCH.to);

const loadTraces = (workspaceId: string, traces: number, groupBy: (typeof GROUPINGS)[number] = "workspace") =>
  loadRows(store, {
    ...{ sourceId, groupBy, workspaceId, window: march },
    rows: [[DAY, groupBy === "workspace" ? workspaceId : "a", traces]],
  });

const loadRuns = async (runs: number, settleAfterMs: number) => {
  for (const workspaceId of WORKSPACES) {
    const counts = workspaceId === FIRST ? runs : 0;
    await loadDeploymentRows(store, {
      ...{ sourceId, groupBy: "workspace" as const, workspaceId, window: march, settleAfterMs },
      rows: [[DAY, workspaceId, [0, counts, 0]]],
    });
  }
};

const close = (without: readonly string[] = []) =>
  closeMonth(store, {
    ...{ sourceId, monthStart: MARCH.from, settleAfterMs: 0, without },
    by: { name: "ada", role: "operator", via: "command" },
  });

async function answer(tool: keyof typeof TOOLS, given: Record<string, unknown>): Promise<Answer> {
  const { input, answer } = TOOLS[tool];
  const asked = {
    ...{ db: store.db, now: Date.now(), masked: false, sources: await usageSources(store.db) },
  };
  return (await answer(asked, input.parse(given))) as unknown as Answer;
}

test("costs are closed only where the close kept all of them, and what came later is said", async () => {
  await loadRuns(1, NEVER);
  await enterPrices(store, [
    { sku: "base", unitPrice: "1" },
    { sku: "runs", unitPrice: "3", measure: "agent_runs" },
  ]);
  expect(await close()).toMatchObject({ state: "closed" });
  const [ofFirst, ofSecond] = [
    { ...MARCH, workspace: FIRST },
    { ...MARCH, workspace: SECOND },
  ];
  // What is not final yet is in no closed cost, and may still change.
  for (const about of [MARCH, ofFirst, ofSecond]) {
    expect(await answer("cost", about)).toMatchObject({ is_final: false, is_closed: false });
  }
  expect(await answer("bill", { month: "2026-03" })).toMatchObject({ is_closed: false });
  expect(await answer("usage", MARCH)).toMatchObject({ is_closed: true });
  await loadRuns(1, ALWAYS);
  for (const [about, amount] of [
    [MARCH, "20"],
    [ofFirst, "10"],
  ] as const) {
    const said = await answer("cost", about);
    expect(said).toMatchObject({ total: { amount }, is_final: true, is_closed: false });
    expect(said.notes).toEqual([
      "What was asked for of March 2026 costs 3 USD more now than its close kept. These costs are those of the close: bills of later months have the difference as corrections.",
    ]);
  }
  expect(await answer("bill", { month: "2026-03" })).toMatchObject({ is_closed: false });
  // Of the others it kept all.
  const rest = { ...MARCH, from: "2026-03-03" };
  for (const about of [ofSecond, rest])
    expect(await answer("cost", about)).toMatchObject({ is_closed: true, notes: [] });
  // A restatement changes no kept cost, and is said with what it costs.
  await loadTraces(SECOND, 8);
  const said = await answer("cost", ofSecond);
  expect(said).toMatchObject({ total: { amount: "10" }, is_closed: true });
  expect(said.notes).toEqual([
    "March 2026 was closed with 10 traces of this workspace, and has 2 fewer now. Closed costs are those of the close.",
    expect.stringContaining("costs 2 USD less now than its close kept"),
  ]);
});

test("what is said of a close is about the workspace that was asked for", async () => {
  await enterPrices(store, [{ sku: "base", unitPrice: "1" }]);
  expect(await close([SECOND])).toMatchObject({ state: "closed" });
  await loadTraces(FIRST, 12);
  await loadTraces(SECOND, 7);
  const note = (of: string) =>
    `March 2026 was closed with 10 traces of ${of}, and has 2 more now. These figures are those of now.`;
  for (const [workspace, isClosed, notes] of [
    [undefined, false, [note("all workspaces")]],
    [FIRST, true, [note("this workspace")]],
    [SECOND, false, []],
  ] as const) {
    expect(await answer("usage", { ...MARCH, workspace })).toMatchObject({ is_closed: isClosed, notes });
    expect(await answer("differences", { ...MARCH, workspace })).toMatchObject({ is_closed: isClosed });
  }
});
