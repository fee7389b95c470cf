import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { learnMeters } from "../../../../src/core/pipeline/source/learn-meters.ts";
import { planSource, routineDemand } from "../../../../src/core/pipeline/sync/plan.ts";
import { storeNow } from "../../../../src/core/store/work/fetch-ledger.ts";
import { now } from "../../../support/clock.ts";
import { fewestRequests } from "../../../support/fewest-requests.ts";
import {
  EVERYTHING,
  inMeterLedgers,
  inMeterStore,
  knownMeters,
  setupEarlyDeployments,
} from "../../../support/meters.ts";
import { setup } from "../../../support/source.ts";

test("a sync stores what the server counts of every meter, in the fewest requests, and traces as before", async () => {
  const bench = await setupEarlyDeployments();
  await bench.sync();
  const before = await inMeterStore(bench);
  const source = await bench.open(EVERYTHING);
  await learnMeters(source);
  const start = source.meters.get("deployments") as number;
  expect(start).toBeLessThan(bench.dataStart);
  const wanted = routineDemand(source, await storeNow(bench.store.db));
  const tasks = await planSource(source, { wanted, reprocess: "missing" });
  expect(tasks).toHaveLength(fewestRequests(tasks));

  const { run } = await bench.sync(EVERYTHING);
  expect(run.failures).toEqual([]);
  const expected = inMeterLedgers(bench);
  expect(await inMeterStore(bench)).toEqual(expected);
  for (const meter of ["traces", "longlived", "deployments"] as const) {
    const of = [...expected.keys()].filter((key) => key.startsWith(`${meter} `));
    expect(of.length, meter).toBeGreaterThan(10);
  }
  expect(new Map([...expected].filter(([key]) => key.startsWith("traces ")))).toEqual(before);
  const kinds = await bench.sql<{ dimension: string; kind: string }>(`
    SELECT DISTINCT e.dimension, c.kind FROM usage.series s JOIN usage.entity e USING (entity_id)
    JOIN usage.scope c USING (scope_id) WHERE c.group_by = 'project' ORDER BY 1`);
  expect(kinds).toEqual([
    { dimension: "deployment", kind: "langsmith_deployments" },
    { dimension: "project", kind: "traces" },
  ]);
});

test("once all is loaded, a sync asks for provisional time alone, of each meter", async () => {
  const bench = await setupEarlyDeployments();
  await bench.sync(EVERYTHING);
  const first = await inMeterStore(bench);
  const { run, source } = await bench.sync(EVERYTHING);
  expect(await inMeterStore(bench)).toEqual(first);
  for (const { rows } of run.counts) expect(rows).toMatchObject({ inserted: 0, updated: 0, retired: 0 });
  // One window of days for each dimension and workspace, or for all workspaces at once. One workspace has no traces, and so none of
  // a tier by another dimension.
  for (const [meter, workspaces] of [
    ["longlived", source.workspaceIds.length - 1],
    ["deployments", source.workspaceIds.length],
  ] as const) {
    const each = 1 + 3 * workspaces;
    const requests = run.counts.filter((one) => one.meter === meter).map((one) => one.requests);
    expect(requests.reduce((sum, one) => sum + one, 0)).toBe(each);
  }
});

test("a tier that stays in sum is not asked for by other dimensions; an upgrade is, though all traces stay; deployments always are", async () => {
  const bench = await setupEarlyDeployments();
  const settings = { ...EVERYTHING.settings, syncEveryMs: 900_000, refreshAfterMs: 3_600_000 };
  const requestsOf = async () => {
    const { run } = await bench.sync({ ...EVERYTHING, settings });
    expect(run.failures).toEqual([]);
    return (meter: string) =>
      run.counts.filter((one) => one.meter === meter).reduce((sum, one) => sum + one.requests, 0);
  };
  await requestsOf();
  const again = await requestsOf();
  expect(again("longlived")).toBe(1);
  const workspaces = (await bench.open(EVERYTHING)).workspaceIds.length;
  expect(again("deployments")).toBe(1 + 3 * workspaces);
  const { ledger, organisation } = bench.standin;
  const at = bench.today - DAY_MS + 3_600_000 * 12;
  const upgraded = organisation.streams.find(({ project, user, key }) => {
    const { before, after } = ledger.upgrade({ project, user, key, at }, 1);
    return after > before;
  });
  expect(upgraded).toBeDefined();
  const since = await requestsOf();
  expect([since("traces"), since("longlived")]).toEqual([again("traces"), 4]);
  expect(await inMeterStore(bench)).toEqual(inMeterLedgers(bench));
});

test.each([
  ["a server that refuses the parameters", { contract: "tiered" }, /refuses/, /refuses/],
  [
    "a server that ignores the parameters",
    { contract: "tiered", unknownParameters: "ignore" },
    /each tier has all traces/,
    /no measure/,
  ],
  [
    "a self-hosted server of 0.16.0 without deployments",
    { contract: "day-granular", serverVersion: "0.16.0", deploymentUsage: "off" },
    /0\.16\.0/,
    /no deployment usage/,
  ],
] as const)(
  "%s is learned as such, and nothing of its responses is stored",
  async (_, settings, tiers, deployments) => {
    const bench = await setup({ standin: settings });
    const { run, source } = await bench.sync(EVERYTHING);
    expect([...source.meters.keys()]).toEqual(["traces"]);
    expect(new Set(run.counts.map(({ meter }) => meter))).toEqual(new Set(["traces"]));
    const learned = await knownMeters(bench);
    expect(learned.map(({ meter, state }) => [meter, state])).toEqual([
      ["deployments", "not_counted"],
      ["longlived", "not_counted"],
    ]);
    expect(learned.map(({ evidence }) => evidence)).toEqual([
      expect.stringMatching(deployments),
      expect.stringMatching(tiers),
    ]);
    const scopes = await bench.sql("SELECT FROM usage.scope WHERE kind <> 'traces' OR trace_tier <> 'all'");
    expect(scopes).toEqual([]);
    const again = await bench.open(EVERYTHING);
    const before = bench.standin.requests.count;
    await learnMeters(again);
    expect(bench.standin.requests.count).toBe(before);
  },
);

test("deployment usage that begins later than traces is asked for from then on alone", async () => {
  const late = new Date(now() - 2 * DAY_MS).toISOString().slice(0, 10);
  const bench = await setup({ standin: { contract: "day-granular", deploymentStart: late } });
  await bench.sync(EVERYTHING);
  expect((await knownMeters(bench))[0]).toMatchObject({ meter: "deployments", starts_on: late });
  const [first] = await bench.sql<{ start: Date }>(`
    SELECT min(period_start) AS start FROM usage.coverage JOIN usage.scope USING (scope_id)
    WHERE kind = 'langsmith_deployments'`);
  expect(first?.start.toISOString().slice(0, 10)).toBe(late);
});
