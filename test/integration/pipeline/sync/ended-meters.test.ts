import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../../src/core/domain/time/stride.ts";
import { METER } from "../../../../src/core/domain/usage/meter.ts";
import { learnMeters } from "../../../../src/core/pipeline/source/learn-meters.ts";
import type { DeploymentMeasure } from "../../../../src/features/standin/engine/ledger.ts";
import {
  EVERYTHING,
  inMeterLedgers,
  inMeterStore,
  knownMeters,
  setupEarlyDeployments,
} from "../../../support/meters.ts";

test.each([
  ["an update that nobody has noticed yet turns no long-lived count into zero", {}],
  ["zeros that an updated server sends for ever replace nothing", { omitZero: false, scale: 0.34 }],
])("%s", async (_title, standin) => {
  const bench = await setupEarlyDeployments(standin);
  await bench.sync(EVERYTHING);
  const before = await inMeterStore(bench);
  bench.standin.settings.serverVersion = "0.16.0";
  const { source } = await bench.sync(EVERYTHING);
  expect(source.meters.has("longlived")).toBe(false);
  expect(await inMeterStore(bench)).toEqual(before);
});

test("a response without any deployment usage ends nothing that was counted", async () => {
  const bench = await setupEarlyDeployments();
  await bench.sync(EVERYTHING);
  bench.standin.settings.deploymentUsage = "off";
  await bench.passTime();
  const source = await bench.open(EVERYTHING);
  const start = source.meters.get("deployments");
  await learnMeters(source);
  expect(source.meters.get("deployments")).toBe(start);
  expect((await knownMeters(bench))[0]).toMatchObject({ meter: "deployments", state: "counted" });
});

test("a zero that may be the end of a meter is stored once the server is seen to count it", async () => {
  const bench = await setupEarlyDeployments();
  await bench.sync(EVERYTHING);
  const before = await inMeterStore(bench);
  const { deploymentLedger, organisation, faults } = bench.standin;
  for (const { project, user, key } of organisation.deploymentStreams) {
    for (let at = bench.today - 3 * DAY_MS; at < bench.now; at += HOUR_MS) {
      for (const measure of METER.deployments.measures)
        deploymentLedger.change({ project, user, key, at }, measure as DeploymentMeasure, -1_000_000_000);
    }
  }
  const match = { query: { kind: "langsmith_deployments" }, stride: "year" } as const;
  faults.script({ fault: { kind: "status", status: 500 }, times: 1_000, match });
  const { run } = await bench.sync(EVERYTHING);
  expect(run.failures.length).toBeGreaterThan(0);
  expect(new Set(run.failures.map(({ code }) => code))).toEqual(new Set(["meter_doubtful"]));
  expect(await inMeterStore(bench)).toEqual(before);

  faults.clear();
  await bench.passTime();
  const again = await bench.sync(EVERYTHING);
  expect(again.run.failures).toEqual([]);
  const expected = inMeterLedgers(bench);
  expect(await inMeterStore(bench)).toEqual(expected);
  expect(expected.size).toBeLessThan(before.size);
  expect(await bench.sql("SELECT * FROM usage.failure")).toEqual([]);
});
