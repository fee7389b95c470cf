import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../../src/core/domain/time/stride.ts";
import { learnMeters, metersToLearn } from "../../../../src/core/pipeline/source/learn-meters.ts";
import type { FaultStep } from "../../../../src/features/standin/engine/faults.ts";
import { now } from "../../../support/clock.ts";
import { inMeterStore, knownMeters, setupEarlyDeployments } from "../../../support/meters.ts";
import { PATH, ALL as SANDBOXES, setupSandboxes } from "../../../support/sandboxes.ts";
import { type Bench, setReadable, setup } from "../../../support/source.ts";

const statesOf = async (bench: Bench) =>
  Object.fromEntries((await knownMeters(bench)).map(({ meter, state }) => [meter, state]));
const refuse = (status: number, match: FaultStep["match"], more: Partial<FaultStep> = {}) =>
  ({ fault: { kind: "status", status }, match, ...more }) as FaultStep;
const LONGLIVED = { query: { trace_tier: "longlived" } };

test("one refusal of what was counted makes it not known, the next sync counts it again, and nothing is lost", async () => {
  const how = { settings: { meters: ["traces", "longlived"] } } as const;
  const bench = await setupEarlyDeployments();
  await bench.sync(how);
  const before = await inMeterStore(bench);
  for (const isDue of [false, true]) {
    if (isDue) await bench.passTime();
    bench.standin.faults.script(refuse(403, LONGLIVED));
    await bench.sync(how);
    expect([isDue, await statesOf(bench)]).toEqual([isDue, { longlived: "not_known" }]);
    if (!isDue) await bench.sync(how);
  }
  await bench.sync(how);
  expect(await statesOf(bench)).toEqual({ longlived: "counted" });
  expect(await inMeterStore(bench)).toEqual(before);

  bench.standin.faults.script(refuse(403, LONGLIVED, { times: 1000 }));
  await bench.sync(how);
  await bench.sync(how);
  expect(await statesOf(bench)).toEqual({ longlived: "not_counted" });
  expect(await inMeterStore(bench)).toEqual(before);
});

test("a server without any response is not asked about each of its workspaces", async () => {
  const bench = await setupSandboxes({ workspaces: [0, 1, 2, 3, 4] });
  bench.standin.faults.script(refuse(503, { path: PATH }, { times: 1000 }));
  await learnMeters(await bench.open(SANDBOXES));
  expect(await statesOf(bench)).toEqual({ sandboxes: "not_known" });
  expect(bench.standin.faults.fired).toBe(9);
});

test("what was asked before a workspace could be read is asked again, even if that was known before the response", async () => {
  const bench = await setupSandboxes({ workspaces: [4] });
  const source = await bench.open(SANDBOXES);
  const { billing } = source;
  const usage: typeof billing.usage = async (query, io) => {
    const response = await billing.usage(query, io);
    await bench.sql("UPDATE usage.workspace SET readable_since = clock_timestamp()");
    return response;
  };
  await learnMeters({ ...source, billing: { ...billing, usage } });
  expect(await statesOf(bench)).toEqual({ sandboxes: "not_counted" });
  expect(await metersToLearn(source)).toEqual(new Set(["sandboxes"]));
  await learnMeters(source);
  expect(await metersToLearn(source)).toEqual(new Set());
});

test.each([
  ["an empty response", "deployments"],
  ["a refusal", "sandboxes"],
] as const)(
  "%s says nothing while the key does not read a workspace, and all is there after",
  async (_, meter) => {
    const how = { settings: { meters: ["traces", meter] } } as const;
    const start = new Date(now() - 6 * DAY_MS).toISOString().slice(0, 10);
    const bench = await setup({
      workspaces: [0],
      hourlyForMs: HOUR_MS,
      standin: { contract: "day-granular", deploymentStart: start, sandboxes: "on" },
    });
    await bench.sync({ settings: { meters: ["traces"] } });
    setReadable(bench.standin, 0, false);
    await learnMeters(await bench.open(how));
    expect(await statesOf(bench)).toEqual({ [meter]: "not_known" });
    setReadable(bench.standin, 0, true);
    await bench.sync(how);
    expect(await statesOf(bench)).toEqual({ [meter]: "counted" });
  },
);
