import { expect, test } from "vitest";
import { monthAt } from "../../../src/core/domain/months/month.ts";
import { GROUPINGS } from "../../../src/core/domain/usage/record.ts";
import { closePeriod } from "../../../src/features/close/close-period.store.ts";
import { KEEP_PROOF } from "../../support/by-hand.ts";
import { createPrices } from "../../support/charges.ts";
import { overHttp, response } from "../../support/mcp.ts";
import { acceptOpen } from "../../support/month.ts";
import { setupPages } from "../../support/pages.ts";
import { connectPlain, setupSource, WORKSPACES } from "../../support/reporting.ts";
import { loadDeploymentRows, loadRows, windowOf } from "../../support/store.ts";

const [FIRST, SECOND] = WORKSPACES;
const MARCH = { from: "2026-03-01", to: "2026-04-01" };
const window = windowOf("day", MARCH.from, MARCH.to);

/** Both workspaces have 10 final and proved traces. */
async function setup() {
  const { store, url, sourceId } = await setupSource();
  const loadTraces = (
    workspaceId: string,
    traces: number,
    groupBy: (typeof GROUPINGS)[number] = "workspace",
  ) => {
    const id = groupBy === "workspace" ? workspaceId : "a";
    return loadRows(store, { sourceId, groupBy, workspaceId, window, rows: [["2026-03-02", id, traces]] });
  };
  for (const groupBy of GROUPINGS)
    for (const workspaceId of WORKSPACES) await loadTraces(workspaceId, 10, groupBy);
  const owner = await connectPlain(url);
  await owner.query(`INSERT INTO usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
    SELECT scope_id, '2026-03-01Z', '2026-04-01Z', 999, now() FROM usage.trace_scope WHERE stride = 'day'; ${KEEP_PROOF}`);
  const close = async () => {
    const by = { name: "ada", role: "operator", via: "command" } as const;
    const period = monthAt(Date.parse(MARCH.from));
    const closed = await acceptOpen((accept) =>
      closePeriod(store, { sourceId, period, settleAfterMs: 0, by, ...accept }),
    );
    expect(closed).toMatchObject({ state: "closed" });
  };
  const standin = { url: "http://127.0.0.1:9", apiKey: "platform-key" };
  const client = await overHttp((await setupPages({ databaseUrl: url, store, standin })).url);
  const changes = async (workspace_id?: string) => {
    const said = await response(client, "why_changed", {
      from_day: MARCH.from,
      to_day: MARCH.to,
      workspace_id,
    });
    return { traces: said.closed_months_with_other_traces, costs: said.closed_months_with_other_costs };
  };
  return { store, sourceId, owner, loadTraces, close, changes };
}

test("a closed month's later costs are those of the workspace that was asked for", async () => {
  const { store, sourceId, loadTraces, close, changes } = await setup();
  await createPrices(store, [
    { sku: "base", unitPrice: "1" },
    { sku: "runs", unitPrice: "3", measure: "agent_runs" },
  ]);
  await close();
  expect(await changes()).toEqual({ traces: [], costs: [] });
  // Runs that are loaded after the close are in no closed cost.
  const part = { sourceId, groupBy: "workspace", workspaceId: FIRST, window } as const;
  await loadDeploymentRows(store, { ...part, rows: [["2026-03-02", FIRST, [0, 1, 0]]] });
  const runs = { month: "2026-03", currency: "USD", more: "3", isUnkept: true };
  expect(await changes()).toEqual({ traces: [], costs: [runs] });
  expect(await changes(FIRST)).toEqual({ traces: [], costs: [runs] });
  expect(await changes(SECOND)).toEqual({ traces: [], costs: [] });
  await loadTraces(SECOND, 8);
  expect(await changes(SECOND)).toEqual({
    traces: [{ month: "2026-03", closedTraces: 10, netTraces: -2, hasCosts: true }],
    costs: [{ month: "2026-03", currency: "USD", more: "-2", isUnkept: false }],
  });
});

test("a workspace that a close left out has no changes since it", async () => {
  const { store, owner, loadTraces, close, changes } = await setup();
  await createPrices(store, [{ sku: "base", unitPrice: "1" }]);
  await owner.query(
    `DELETE FROM usage.reconciled r USING usage.scope c JOIN usage.entity e ON e.entity_id = c.workspace_id
     WHERE c.scope_id = r.scope_id AND e.external_id = $1`,
    [SECOND],
  );
  await owner.query(KEEP_PROOF);
  await close();
  await loadTraces(FIRST, 12);
  await loadTraces(SECOND, 7);
  const changed = { month: "2026-03", closedTraces: 10, netTraces: 2, hasCosts: true };
  expect((await changes()).traces).toEqual([changed]);
  expect((await changes(FIRST)).traces).toEqual([changed]);
  expect(await changes(SECOND)).toEqual({ traces: [], costs: [] });
});
