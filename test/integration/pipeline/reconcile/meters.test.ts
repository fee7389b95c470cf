import { expect, test } from "vitest";
import { describeReconcile, exitOfReconcile } from "../../../../src/app/commands/reconcile.ts";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { GROUPINGS } from "../../../../src/core/domain/usage/record.ts";
import { EVERYTHING, setupMeters } from "../../../support/meters.ts";
import type { Bench } from "../../../support/source.ts";

const aDeployment = ({ standin, workspaceIds, dataStart }: Bench) => {
  const stream = standin.organisation.deploymentStreams.find(
    ({ project, user, weight }) => project.workspace.id === workspaceIds[0] && user !== null && weight > 0,
  );
  if (stream === undefined) throw new Error("no deployment");
  return { ...stream, at: dataStart + 12 * 3_600_000 };
};

test("each measure of a deployment differs, is repaired and is contradicted by itself", async () => {
  const bench = await setupMeters();
  const { standin, dataStart } = bench;
  await bench.sync(EVERYTHING);
  const cell = aDeployment(bench);
  const reconcile = (more: Parameters<Bench["reconcile"]>[0] = {}) =>
    bench.reconcile({ groupings: ["project"], ...more }, EVERYTHING);
  const clean = await reconcile();
  expect(clean.strides.map(({ meter, stride }) => `${meter} ${stride}`)).toEqual([
    "traces day",
    "longlived day",
    "deployments day",
  ]);
  expect(clean).toMatchObject({ differences: [], failures: [], open: 0 });
  for (const { compared } of clean.strides) expect(compared).toBeGreaterThan(10);

  standin.discrepancies.push({
    format: "csv",
    stride: "day",
    groupBy: "project",
    measure: "agent_runs",
    cell,
    delta: 5,
  });
  standin.deploymentLedger.change(cell, "nodes_executed", 7);
  const found = await reconcile();
  const about = {
    meter: "deployments",
    groupBy: "project",
    dimensionId: cell.project.id,
    bucketStart: dataStart,
  };
  const shown = found.differences.map(({ storedTraces, exportTraces, ...one }) => ({
    ...one,
    by: (exportTraces ?? 0) - (storedTraces ?? 0),
  }));
  expect(shown).toMatchObject([
    { ...about, measure: "agent_runs", state: "open", by: 5 },
    { ...about, measure: "nodes_executed", state: "open", by: 7 },
  ]);
  expect(describeReconcile(found)).toMatch(/^agent_runs +traces_differ +open +project/m);
  expect(describeReconcile(found)).toMatch(/^deployment usage, day: [\d,]+ records .* 2 differences left$/m);

  const repaired = await reconcile({ repair: true });
  expect(repaired.repaired).toMatchObject({ differences: 2, mended: 1 });
  expect(repaired.differences).toMatchObject([
    { ...about, measure: "agent_runs", state: "platform_disagrees" },
  ]);
  standin.deploymentLedger.change(cell, "nodes_executed", -3);
  expect((await reconcile({ repair: true })).repaired).toMatchObject({ differences: 1, mended: 1 });
  standin.discrepancies.length = 0;
  expect(await reconcile()).toMatchObject({ differences: [], open: 0, platformDisagrees: 0 });
  expect(
    await bench.sql(
      "SELECT measure, state FROM usage.difference WHERE compared_with = 'export' ORDER BY measure",
    ),
  ).toEqual([
    { measure: "agent_runs", state: "closed" },
    { measure: "nodes_executed", state: "repaired" },
  ]);
});

test("a late upgrade of a final day is found in the tier alone, and ends its proof", async () => {
  const bench = await setupMeters({ workspaces: [0] });
  const { standin } = bench;
  await bench.sync(EVERYTHING);
  await bench.reconcile({}, EVERYTHING);
  const proofs = () =>
    bench.sql<{ trace_tier: string; days: number }>(
      `SELECT trace_tier, (sum(extract(epoch FROM period_end - period_start)) / 86400)::integer AS days
       FROM usage.reconciled JOIN usage.scope USING (scope_id) WHERE kind = 'traces' GROUP BY 1 ORDER BY 1`,
    );
  const before = await proofs();
  const sender = standin.organisation.streams.find(
    ({ project, user, key, weight }) =>
      project.workspace.id === bench.workspaceIds[0] && user !== null && key !== null && weight > 5,
  );
  if (sender === undefined) throw new Error("no sender");
  for (let hour = 0; hour < 24; hour++)
    standin.ledger.upgrade({ ...sender, at: bench.dataStart + hour * 3_600_000 }, 1);
  const one = await bench.reconcile({ meter: "longlived" }, EVERYTHING);
  expect(one.strides.map(({ meter }) => meter)).toEqual(["longlived"]);
  expect(one.otherStrides).toEqual([
    { meter: "traces", stride: "day", differences: 0 },
    { meter: "deployments", stride: "day", differences: 0 },
  ]);
  expect(one.differences.map(({ meter, groupBy }) => `${meter} ${groupBy}`)).toEqual(
    GROUPINGS.map((groupBy) => `longlived ${groupBy}`),
  );
  await bench.fetch(
    {
      wanted: [
        {
          meter: "longlived",
          stride: "day",
          range: { start: bench.dataStart, end: bench.dataStart + DAY_MS },
        },
      ],
      reprocess: "all",
    },
    EVERYTHING,
  );
  const [all, longlived] = await proofs();
  expect(all).toEqual(before[0]);
  expect(longlived?.days).toBe((before[1]?.days ?? 0) - GROUPINGS.length);
});

test("what is not loaded of a kind is not compared, and is said so where it was asked for", async () => {
  const bench = await setupMeters({ workspaces: [0] });
  await bench.sync();
  expect((await bench.reconcile()).strides.map(({ meter }) => meter)).toEqual(["traces"]);
  const requested = await bench.reconcile({ meter: "deployments" }, EVERYTHING);
  expect(requested).toMatchObject({ windows: 0, strides: [{ meter: "deployments", stride: "day" }] });
  expect(describeReconcile(requested)).toMatch(
    /^not compared: deployment usage, stride day, 24 daily figures: not available/m,
  );
});

test("buckets that nobody keeps are named, and a command that compared nothing else does not end with 0", async () => {
  const bench = await setupMeters({ workspaces: [0] });
  await bench.sync(EVERYTHING);
  const days = await bench.reconcile({ meter: "deployments" }, EVERYTHING);
  expect([days.windows > 0, exitOfReconcile(days)]).toEqual([true, 0]);
  const young = { start: bench.today, end: bench.today + DAY_MS };
  const waiting = await bench.reconcile({ meter: "deployments", range: young }, EVERYTHING);
  expect([waiting.windows, exitOfReconcile(waiting)]).toEqual([0, 0]);
  for (const [meter, stride] of [
    ["deployments", "hour"],
    ["longlived", "hour"],
    ["deployments", "week"],
    ["traces", "month"],
  ] as const) {
    const none = await bench.reconcile({ meter, stride }, EVERYTHING);
    expect([none.windows, exitOfReconcile(none)], `${meter} ${stride}`).toEqual([0, 3]);
    const said = describeReconcile(none);
    expect(said).toContain("so nothing is proved");
    expect(said).toMatch(
      new RegExp(`^not compared: .*stride ${stride}, [\\d,]+ \\w+ figures: not kept`, "m"),
    );
    expect(said).toMatch(/^not compared: deployment usage, stride day\. Run reconcile with .* --stride day/m);
  }
});

test("an export that the key may not read, of other usage alone, keeps nothing else from being compared", async () => {
  const bench = await setupMeters();
  await bench.sync(EVERYTHING);
  bench.standin.faults.script({
    fault: { kind: "status", status: 403 },
    times: 1000,
    match: { path: "export", query: { trace_tier: "longlived" } },
  });
  const { strides, failures } = await bench.reconcile({ groupings: ["project"] }, EVERYTHING);
  const compared = strides.map(({ meter, compared: records }) => [meter, records > 0]);
  expect(compared).toEqual([
    ["traces", true],
    ["longlived", false],
    ["deployments", true],
  ]);
  expect(failures.map(({ code }) => code)).toContain("forbidden");
  expect(await bench.sql("SELECT FROM usage.source WHERE refused_at IS NOT NULL")).toEqual([]);
});
