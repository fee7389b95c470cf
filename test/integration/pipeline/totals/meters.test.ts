import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../../src/core/domain/time/stride.ts";
import { METER } from "../../../../src/core/domain/usage/meter.ts";
import { checkTotals } from "../../../../src/core/pipeline/proof/check-totals.ts";
import { describeTotals } from "../../../../src/features/costs/totals.command.ts";
import { seed } from "../../../support/drawn.ts";
import { EVERYTHING, inMeterLedger, inMeterStore, LOADED, setupMeters } from "../../../support/meters.ts";
import type { Bench } from "../../../support/source.ts";
import { differences } from "../../../support/tables.ts";
import { dayInside } from "./bench.ts";

const SEED = seed(20_260_105);

async function loadedMeters(scale = 0.34): Promise<Bench> {
  const bench = await setupMeters({ days: 60, workspaces: [0], hourlyForMs: HOUR_MS, standin: { scale } });
  await bench.sync(EVERYTHING);
  return bench;
}

const check = async (bench: Bench, reach: "quarter" | "all" = "all") =>
  checkTotals(await bench.open(EVERYTHING), reach);

const senders = ({ standin, workspaceIds }: Bench) =>
  standin.organisation.streams.filter(
    ({ project, weight, ends }) => project.workspace.id === workspaceIds[0] && weight > 20 && ends > 20_000,
  );

const kinds = (findings: Awaited<ReturnType<typeof check>>["findings"]) =>
  findings
    .filter(({ state }) => state !== "unattributed")
    .map(({ kind, meter, measure }) => `${kind} ${meter} ${measure}`);

test(`tiers add up and days are their totals, whatever is upgraded late (seed ${SEED})`, async () => {
  const bench = await loadedMeters(1);
  const { standin, today, dataStart, workspaceIds } = bench;
  const range = { start: dataStart, end: dayInside(bench, 1, 0) };
  const streams = senders(bench);
  const runs = standin.organisation.deploymentStreams.filter(({ project }) =>
    workspaceIds.includes(project.workspace.id),
  );
  let restated = 0;
  const step = fc.record({
    what: fc.constantFrom("upgrade", "upgrade", "restate", "deployment"),
    n: fc.nat({ max: 999 }),
    day: fc.integer({ min: 7, max: 45 }),
    by: fc.integer({ min: 1, max: 30 }),
  });
  for (const [round, steps] of fc
    .sample(fc.array(step, { minLength: 2, maxLength: 5 }), { seed: SEED, numRuns: 4 })
    .entries()) {
    const about = `seed ${SEED}, round ${round}: ${JSON.stringify(steps)}`;
    for (const { what, n, day, by } of steps) {
      const at = dataStart + day * DAY_MS + 12 * HOUR_MS;
      const stream = streams[n % streams.length] as (typeof streams)[number];
      const deployed = runs[n % runs.length] as (typeof runs)[number];
      if (what === "upgrade")
        for (let hour = 0; hour < 12; hour++)
          standin.ledger.upgrade({ ...stream, at: at + hour * HOUR_MS }, by);
      if (what === "restate")
        standin.ledger.change({ ...stream, at }, by, n % 2 ? "longlived" : "shortlived");
      if (what === "deployment") {
        const measure = METER.deployments.measures[n % 3] as "agent_runs";
        standin.deploymentLedger.change({ ...deployed, at }, measure, by);
      }
    }
    const result = await check(bench);
    expect(kinds(result.findings), about).toEqual([]);
    expect(result, about).toMatchObject({ failures: 0, differences: 0, unverified: 0 });
    expect(result.others.map(({ meter }) => meter)).toEqual(["longlived", "deployments"]);
    for (const one of [result, ...result.others]) expect(one.daysProved, about).toBeGreaterThan(100);
    expect(result.tierDays, about).toBeGreaterThan(30);
    restated += result.restated;
    for (const meter of LOADED) {
      const book = inMeterLedger(standin, { meter, range, workspaceIds });
      expect(differences(await inMeterStore(bench, { meter, range }), book), `${meter}, ${about}`).toEqual(
        [],
      );
    }
  }
  expect(restated).toBeGreaterThan(4);
  const cell = {
    ...(runs.find(({ weight }) => weight > 0) as (typeof runs)[number]),
    at: dayInside(bench, 4),
  };
  standin.discrepancies.push({ stride: "week", groupBy: "user", measure: "agent_runs", cell, delta: 9 });
  const found = await check(bench);
  expect(kinds(found.findings)).toEqual(["stride_total deployments agent_runs"]);
  expect(describeTotals(found)).toMatch(/^agent_runs +stride_total +platform_disagrees +user/m);
  expect(describeTotals(found)).toContain("--group-by user --kind langsmith_deployments");
  standin.discrepancies.length = 0;
  expect(kinds((await check(bench)).findings)).toEqual([]);
  expect(today).toBeGreaterThan(0);
});

test("short-lived traces that are not the rest are a finding of both numbers, and nothing is changed", async () => {
  const bench = await loadedMeters();
  const cell = { ...(senders(bench)[0] as ReturnType<typeof senders>[number]), at: dayInside(bench, 4) };
  const before = await inMeterStore(bench, {
    meter: "longlived",
    range: { start: bench.dataStart, end: bench.today },
  });
  bench.standin.discrepancies.push({
    stride: "week",
    groupBy: "workspace",
    tier: "shortlived",
    cell,
    delta: 6,
  });
  for (const reach of ["all", "quarter", "all"] as const) {
    const { findings, others, differences: left } = await check(bench, reach);
    expect(kinds(findings)).toEqual(["tier_total longlived traces"]);
    const [one] = findings.filter(({ kind }) => kind === "tier_total");
    expect((one?.controlTraces ?? 0) - (one?.storedTraces ?? 0)).toBe(6);
    expect(one).toMatchObject({ groupBy: "workspace", dimensionId: bench.workspaceIds[0] });
    expect(left).toBe(1);
    expect(others.find(({ meter }) => meter === "longlived")?.daysDisproved).toBe(7);
  }
  expect(
    await bench.sql("SELECT count(*)::integer AS n FROM usage.difference WHERE kind = 'tier_total'"),
  ).toEqual([{ n: 1 }]);
  expect(
    await inMeterStore(bench, { meter: "longlived", range: { start: bench.dataStart, end: bench.today } }),
  ).toEqual(before);
  bench.standin.discrepancies.push({
    stride: "week",
    groupBy: "workspace",
    tier: "longlived",
    cell,
    delta: 6,
  });
  const { findings } = await check(bench, "quarter");
  expect(kinds(findings).sort()).toEqual(["stride_total longlived traces", "tier_total longlived traces"]);
  const [total, tier] = ["stride_total", "tier_total"].map((kind) =>
    findings.find((one) => one.kind === kind),
  );
  expect(total?.storedTraces).toBe(
    [...before].reduce((sum, [line, traces]) => {
      const [, , groupBy, on = ""] = line.split(" ");
      const at = Date.parse(`${on}T00:00:00Z`);
      const isIn = groupBy === "workspace" && at >= (total?.start ?? 0) && at < (total?.end ?? 0);
      return isIn ? sum + Number(traces) : sum;
    }, 0),
  );
  expect(tier).toMatchObject({ start: total?.start, end: total?.end });
  bench.standin.discrepancies.length = 0;
  expect(kinds((await check(bench)).findings)).toEqual([]);
});

test("a tier that is larger than all is one finding, once", async () => {
  const bench = await loadedMeters();
  const at = dayInside(bench, 4);
  const cell = { ...(senders(bench)[0] as ReturnType<typeof senders>[number]), at: at + 12 * HOUR_MS };
  for (const stride of ["day", "week"] as const) {
    bench.standin.discrepancies.push({ stride, tier: "longlived", cell, delta: 1_000_000 });
  }
  await bench.fetch(
    {
      wanted: [{ meter: "longlived", stride: "day", range: { start: at, end: at + DAY_MS } }],
      reprocess: "all",
    },
    EVERYTHING,
  );
  for (const reach of ["quarter", "quarter", "all"] as const) {
    const { findings, restated } = await check(bench, reach);
    expect(kinds(findings)).toEqual(["tier_exceeds longlived traces"]);
    expect(findings.find(({ kind }) => kind === "tier_exceeds")).toMatchObject({
      start: at,
      end: at + DAY_MS,
    });
    expect(restated).toBe(0);
  }
  bench.standin.discrepancies.length = 0;
  expect(kinds((await check(bench)).findings)).toEqual([]);
});
