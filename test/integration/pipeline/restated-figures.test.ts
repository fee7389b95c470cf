import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../src/core/domain/time/stride.ts";
import { METER, METER_NAME, METERS, type Meter } from "../../../src/core/domain/usage/meter.ts";
import { openIncidents } from "../../../src/features/alerts/conditions.ts";
import { adjustmentsOf } from "../../../src/features/costs/month-adjustments.store.ts";
import type { Sandbox } from "../../../src/features/standin/engine/organisation.ts";
import { metricFacts } from "../../../src/web/metric-facts.ts";
import { usageEtl } from "../../support/cli.ts";
import { now } from "../../support/clock.ts";
import { overHttp, response } from "../../support/mcp.ts";
import { setupMeters } from "../../support/meters.ts";
import { setupPages } from "../../support/pages.ts";
import { type Bench, senderOn } from "../../support/source.ts";

const EVERY = { settings: { meters: METERS } };

async function setupEvery(prepare: (bench: Bench) => void = () => {}): Promise<Bench> {
  const bench = await setupMeters({
    workspaces: [0],
    hourlyForMs: HOUR_MS,
    standin: { sandboxes: "on", evaluators: "on" },
  });
  prepare(bench);
  await bench.sync(EVERY);
  return bench;
}

const sandboxesOf = ({ standin: { organisation } }: Bench) =>
  organisation.sandboxes
    .filter(({ type, workspace }) => type === "SANDBOX" && workspace === organisation.workspaces[0])
    .slice(0, 2) as [Sandbox, Sandbox];

const CHANGES: readonly { meter: Meter; measure: string; by: number; dimensions: number }[] = [
  { meter: "traces", measure: "traces", by: 8, dimensions: 4 },
  { meter: "longlived", measure: "traces", by: 5, dimensions: 4 },
  { meter: "shortlived", measure: "traces", by: 3, dimensions: 4 },
  { meter: "deployments", measure: "agent_uptime_seconds", by: 77, dimensions: 4 },
  { meter: "sandboxes", measure: "lcu", by: 0.123457, dimensions: 2 },
  { meter: "evaluators", measure: "spend_usd", by: 0.123456789, dimensions: 2 },
];

async function restate(bench: Bench): Promise<void> {
  const { standin, workspaceIds, dataStart: day, fetch } = bench;
  const sender = senderOn(standin, 0, day);
  standin.ledger.change(sender, 5, "longlived");
  standin.ledger.change(sender, 3);
  const [workspaceId = ""] = workspaceIds;
  const range = { start: day, end: day + DAY_MS };
  const deployed = standin.organisation.deploymentStreams.find(
    ({ project, weight }) => project.workspace.id === workspaceId && weight > 0,
  );
  if (deployed === undefined) throw new Error("the workspace has no deployment");
  standin.deploymentLedger.change({ ...deployed, at: day + 12 * HOUR_MS }, "agent_uptime_seconds", 77);
  const [{ id: resourceId }] = sandboxesOf(bench);
  standin.sandboxLedger.change({ resourceId, at: day, measure: "lcu", delta: 123_457 });
  const rule = standin.organisation.evaluators.find(
    ({ type, workspace, rules }) => type === "llm" && workspace.id === workspaceId && rules.length > 0,
  )?.rules[0];
  const spent = { ruleId: rule?.id ?? "", at: day, measure: "spend_usd" } as const;
  standin.evaluatorLedger.change({ ...spent, delta: 123_456_789 });
  const wanted = METERS.map((meter) => ({ meter, stride: "day", range }) as const);
  const { run } = await fetch({ wanted, reprocess: "all" }, EVERY);
  expect(run.failures).toEqual([]);
}

const nameOf = ({ meter, measure }: { meter: Meter; measure: string }) =>
  METER[meter].measures.length > 1 ? `${METER_NAME[meter]} (${measure})` : METER_NAME[meter];

test("a final figure of any meter that changes is in the view, status, pages, alerts, metrics and MCP", async () => {
  const bench = await setupEvery();
  const { store, sql } = bench;
  const environment = { USAGE_WORKSPACE_IDS: bench.workspaceIds.join(), USAGE_METERS: METERS.join() };
  const pages = await setupPages(bench, { environment });
  const overview = async () => (await pages.read("/")).text;
  expect(await overview()).toMatch(/Restated\s+no final figure/);
  const month = new Date(bench.dataStart).toISOString().slice(0, 7);
  const [close] = await sql<{ closeId: number }>(
    `INSERT INTO usage.close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements)
     SELECT source_id, $1::date, $1::date + interval '1 month', 0, 0 FROM usage.source RETURNING close_id AS "closeId"`,
    [`${month}-01`],
  );
  await restate(bench);

  const counts = CHANGES.map(({ meter, measure, dimensions }) => ({
    meter,
    measure,
    restatements: dimensions,
  }));
  const inWords = CHANGES.map((one) => `${one.dimensions} of ${nameOf(one)}`);
  expect(
    await sql(
      `SELECT usage_kind AS kind, trace_tier AS tier, measure, sum(coalesce(new_amount, 0) - coalesce(old_amount, 0))::float8 AS by
       FROM reporting_detail.usage_restatement WHERE group_by = 'workspace' AND stride = 'day' GROUP BY 1, 2, 3`,
    ),
  ).toEqual(
    expect.arrayContaining(
      CHANGES.map(({ meter, measure, by }) => {
        const { kind, tier } = METER[meter];
        return { kind, tier, measure, by };
      }),
    ),
  );

  const client = {
    ...environment,
    DATABASE_URL: bench.databaseUrl,
    USAGE_BASE_URL: bench.standin.url,
    USAGE_API_KEY: bench.standin.apiKey,
  };
  const said = (await usageEtl(["status"], client)).stdout.replaceAll(/\s+/g, " ");
  expect(
    inWords.filter((one) => !said.includes(one.replace(/^4 of traces/, "4 final figures of traces"))),
  ).toEqual([]);

  const incidents = await openIncidents(store.db, { firstSource: "default", staleAfterMs: DAY_MS });
  const changed = incidents.get("default")?.find(({ kind }) => kind === "final_changed");
  expect(changed).toMatchObject({ count: 20, message: expect.stringContaining("2 of sandbox usage (lcu)") });
  const { finalChanges } = await metricFacts(store.db);
  expect(finalChanges).toMatchObject(counts);

  expect(await overview()).toContain("2 of sandbox usage (lcu)");
  const [row] = (await pages.read("/timeline?kind=restatements")).table("Timeline");
  expect(row?.What).toContain("+0.123457 sandbox usage (lcu)");
  const differences = await pages.read("/differences?says=restatement&meter=sandboxes&group_by=workspace");
  expect(differences.text).toContain("compute units (LCU) of sandboxes");

  const others = "4 final figures of long-lived traces, 4 of short-lived traces";
  expect((await pages.read(`/months?source=default&newest=${month}`)).text).toContain(others);
  const { closeId = 0 } = close ?? {};
  const adjusted = await adjustmentsOf(store.db, { closeId, most: 1, masked: true });
  expect(adjusted.others).toMatchObject(counts.slice(1));

  const mcp = await overHttp(pages.url);
  const [told] = (await response(mcp, "status")).sources;
  expect(told.restatements).toMatchObject(counts);
  const day = (at: number) => new Date(at).toISOString().slice(0, 10);
  const why = await response(mcp, "why_changed", { from_day: day(bench.dataStart), to_day: day(now()) });
  expect(why.restatements).toMatchObject(counts);
  const moved = why.changes.filter(({ meter }: { meter?: Meter }) => meter !== undefined);
  expect(moved.map(nameOf)).toEqual(expect.arrayContaining(CHANGES.map(nameOf)));
});
