import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../../src/core/domain/time/stride.ts";
import { learnMeters, metersToLearn } from "../../../../src/core/pipeline/source/learn-meters.ts";
import { unknownMeters } from "../../../../src/core/store/catalog/source-meters.ts";
import type { FaultStep } from "../../../../src/features/standin/engine/faults.ts";
import { now } from "../../../support/clock.ts";
import { inMeterStore, knownMeters, setupEarlyDeployments } from "../../../support/meters.ts";
import { PATH, ALL as SANDBOXES, setupSandboxes } from "../../../support/sandboxes.ts";
import { type Bench, setReadable, setup } from "../../../support/source.ts";
import { SANDBOX_FAULTS } from "../../../support/wrong-bodies.ts";

const statesOf = async (bench: Bench) =>
  Object.fromEntries((await knownMeters(bench)).map(({ meter, state }) => [meter, state]));
const refuse = (status: number, match: FaultStep["match"], more: Partial<FaultStep> = {}) =>
  ({ fault: { kind: "status", status }, match, ...more }) as FaultStep;
const LONGLIVED = { query: { trace_tier: "longlived" } };

test("a new organization without any trace or other usage lacks nothing", async () => {
  const bench = await setup({
    workspaces: [4],
    hourlyForMs: HOUR_MS,
    standin: { contract: "day-granular", sandboxes: "on", evaluators: "off" },
  });
  const meters = ["traces", "longlived", "deployments", "sandboxes", "evaluators"] as const;
  const { source } = await bench.sync({ settings: { meters } });
  expect(await statesOf(bench)).toEqual({
    longlived: "nothing_yet",
    deployments: "not_counted",
    sandboxes: "not_counted",
    evaluators: "not_counted",
  });
  expect(await unknownMeters(bench.store.db, source.sourceId)).toEqual([]);
});

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

test("a record that cannot be read shows that there is such usage", async () => {
  const bench = await setupSandboxes();
  bench.standin.faults.script({ fault: SANDBOX_FAULTS.null, match: { path: PATH }, times: 1 });
  await learnMeters(await bench.open(SANDBOXES));
  expect(await statesOf(bench)).toEqual({ sandboxes: "counted" });
});

test("one workspace without a usable response does not hide the usage of another, nor its own", async () => {
  const bench = await setupSandboxes({ workspaces: [4, 0] });
  const [unused, used] = bench.workspaceIds as [string, string];
  expect(bench.standin.sandboxLedger.hours({ workspaceId: unused, start: 0, end: bench.now })).toEqual([]);
  const ordered = [unused, used].toSorted();
  bench.standin.faults.script(refuse(503, { path: PATH }, { times: 3 }));
  await learnMeters(await bench.open(SANDBOXES));
  // The first one asked has no response: it counts only if the other shows usage.
  expect(await statesOf(bench)).toEqual({ sandboxes: ordered[0] === used ? "not_known" : "counted" });
  await learnMeters(await bench.open(SANDBOXES));
  expect(await statesOf(bench)).toEqual({ sandboxes: "counted" });
});

test("a workspace of which the server knows nothing does not hide the usage of another", async () => {
  const bench = await setupSandboxes();
  for (const workspaceId of bench.workspaceIds)
    expect(
      bench.standin.sandboxLedger.hours({ workspaceId, start: 0, end: bench.now }).length,
    ).toBeGreaterThan(0);
  bench.standin.faults.script(refuse(404, { path: PATH }, { times: 1 }));
  await learnMeters(await bench.open(SANDBOXES));
  expect(await statesOf(bench)).toEqual({ sandboxes: "counted" });
});

test("a server without any response is not asked about each of its workspaces", async () => {
  const bench = await setupSandboxes({ workspaces: [0, 1, 2, 3, 4] });
  bench.standin.faults.script(refuse(503, { path: PATH }, { times: 1000 }));
  await learnMeters(await bench.open(SANDBOXES));
  expect(await statesOf(bench)).toEqual({ sandboxes: "not_known" });
  expect(bench.standin.faults.fired).toBe(9);
});

test("what is counted is tested where it was found, not in every workspace", async () => {
  const bench = await setupSandboxes({ workspaces: [4, 0] });
  const [, used] = bench.workspaceIds as [string, string];
  await bench.sync(SANDBOXES);
  await bench.passTime();
  const source = await bench.open(SANDBOXES);
  for (const workspaceIds of [bench.workspaceIds, bench.workspaceIds.toReversed()]) {
    const requested: (string | undefined)[] = [];
    const { billing } = source;
    const usage: typeof billing.usage = (query, io) => {
      requested.push(...query.workspaceIds);
      return billing.usage(query, io);
    };
    await learnMeters({ ...source, workspaceIds, billing: { ...billing, usage } }, new Set(["sandboxes"]));
    expect(requested).toEqual([used]);
  }
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

test("a refusal that names no parameter says nothing", async () => {
  const how = { settings: { meters: ["traces", "deployments"] } } as const;
  const bench = await setupEarlyDeployments();
  bench.standin.faults.script(refuse(400, { query: { kind: "langsmith_deployments" } }));
  await learnMeters(await bench.open(how));
  expect(await statesOf(bench)).toEqual({ deployments: "not_known" });
});
