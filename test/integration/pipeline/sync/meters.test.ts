import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/domain/time/stride.ts";
import { METER, METERS } from "../../../../src/domain/usage/meter.ts";
import { learnMeters } from "../../../../src/pipeline/source/learn-meters.ts";
import { planSource, routineDemand } from "../../../../src/pipeline/sync/plan.ts";
import { storeNow } from "../../../../src/store/load/fetch-ledger.ts";
import { now } from "../../../support/clock.ts";
import { fewestRequests } from "../../../support/fewest-requests.ts";
import {
  ALL,
  answered,
  DAYS_OF_DEPLOYMENTS,
  meters,
  setupAll,
  stored,
} from "../../../support/meter-syncs.ts";
import { setup } from "../../../support/source.ts";

/** Long-lived traces and deployment usage beside traces of all tiers: what is learned of the server, planned and stored. */

test("a sync stores what the server counts of every meter, in the fewest requests, and traces as before", async () => {
  const bench = await setupAll();
  await bench.sync();
  const traces = async () => [...(await stored(bench))].filter(([key]) => key.startsWith("traces all"));
  const before = await traces();
  const source = await bench.open(ALL);
  await learnMeters(source);
  const start = source.meters.get("deployments") as number;
  expect(start).toBe(bench.today - DAYS_OF_DEPLOYMENTS * DAY_MS);
  const wanted = routineDemand(source, await storeNow(bench.store.db));
  const tasks = await planSource(source, { wanted, reprocess: "missing" });
  expect(tasks).toHaveLength(fewestRequests(tasks));

  const { run } = await bench.sync(ALL);
  expect(run.failures).toEqual([]);
  const starts = { traces: bench.dataStart, longlived: bench.dataStart, deployments: start };
  const expected = await answered(bench, starts);
  expect(await stored(bench)).toEqual(expected);
  for (const meter of ["traces", "longlived", "deployments"] as const) {
    const of = [...expected.keys()].filter((key) =>
      key.startsWith(`${METER[meter].kind} ${METER[meter].tier}`),
    );
    expect(of.length, meter).toBeGreaterThan(10);
  }
  // Traces of all tiers are what they were: the other meters went beside them.
  expect(new Map(await traces())).toEqual(new Map(before));
  const kinds = await bench.sql<{ dimension: string; kind: string }>(`
    SELECT DISTINCT e.dimension, c.kind FROM usage.series s JOIN usage.entity e USING (entity_id)
    JOIN usage.scope c USING (scope_id) WHERE c.group_by = 'project' ORDER BY 1`);
  expect(kinds).toEqual([
    { dimension: "deployment", kind: "langsmith_deployments" },
    { dimension: "project", kind: "traces" },
  ]);
});

test("once all is loaded, a sync asks for provisional time alone, of each meter", async () => {
  const bench = await setupAll();
  await bench.sync(ALL);
  const first = await stored(bench);
  const { run, source } = await bench.sync(ALL);
  expect(await stored(bench)).toEqual(first);
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

test("late upgrades move traces between tiers without changing their sum", async () => {
  const bench = await setupAll();
  await bench.sync(ALL);
  const sum = async () => {
    const rows = await bench.sql<{ tier: string; sum: number }>(`
      SELECT c.trace_tier AS tier, sum(r.traces)::bigint AS sum FROM usage.scope c JOIN usage.series s USING (scope_id)
      JOIN usage.dated_record r USING (series_id)
      WHERE c.kind = 'traces' AND c.group_by = 'workspace' AND c.stride = 'day' GROUP BY 1`);
    return Object.fromEntries(rows.map((row) => [row.tier, Number(row.sum)]));
  };
  const before = await sum();
  const { ledger, organisation } = bench.standin;
  const at = bench.today - DAY_MS;
  let moved = 0;
  for (const { project, user, key } of organisation.streams.slice(0, 40)) {
    const { before, after } = ledger.upgrade({ project, user, key, at: at + 3_600_000 * 12 }, 3);
    moved += after - before;
  }
  expect(moved).toBeGreaterThan(0);
  await bench.sync(ALL);
  const after = await sum();
  expect(after.all).toBe(before.all);
  expect(after.longlived).toBeGreaterThan(before.longlived as number);
  expect(await stored(bench)).toEqual(
    await answered(bench, {
      traces: bench.dataStart,
      longlived: bench.dataStart,
      deployments: bench.today - DAYS_OF_DEPLOYMENTS * DAY_MS,
    }),
  );
});

test("a tier that stays in sum is not asked for by other dimensions; an upgrade is, though all traces stay; deployments always are", async () => {
  const bench = await setupAll();
  const settings = { ...ALL.settings, syncEveryMs: 900_000, refreshAfterMs: 3_600_000 };
  const requestsOf = async () => {
    const { run } = await bench.sync({ ...ALL, settings });
    expect(run.failures).toEqual([]);
    return (meter: string) =>
      run.counts.filter((one) => one.meter === meter).reduce((sum, one) => sum + one.requests, 0);
  };
  await requestsOf();
  const again = await requestsOf();
  expect(again("longlived")).toBe(1);
  const workspaces = (await bench.open(ALL)).workspaceIds.length;
  expect(again("deployments")).toBe(1 + 3 * workspaces);
  const { ledger, organisation } = bench.standin;
  const at = bench.today - DAY_MS + 3_600_000 * 12;
  // At weekends not every stream has a trace at noon.
  const upgraded = organisation.streams.find(({ project, user, key }) => {
    const { before, after } = ledger.upgrade({ project, user, key, at }, 1);
    return after > before;
  });
  expect(upgraded).toBeDefined();
  const since = await requestsOf();
  expect([since("traces"), since("longlived")]).toEqual([again("traces"), 4]);
  expect(await stored(bench)).toEqual(
    await answered(bench, {
      traces: bench.dataStart,
      longlived: bench.dataStart,
      deployments: bench.today - DAYS_OF_DEPLOYMENTS * DAY_MS,
    }),
  );
});

test.each([
  ["a server that refuses the parameters", { contract: "tiered" }, /refuses/, /refuses/],
  [
    "a server that ignores the parameters",
    { contract: "tiered", unknownParameters: "ignore" },
    /all traces for each tier/,
    /no measure/,
  ],
  [
    "a self-hosted server of 0.16.0 without deployments",
    { contract: "day-granular", serverVersion: "0.16.0", deploymentUsage: "off" },
    /0\.16\.0/,
    /no deployment usage/,
  ],
] as const)(
  "%s is learned as such, and nothing of its answers is stored",
  async (_, settings, tiers, deployments) => {
    const bench = await setup({ standin: settings });
    const { run, source } = await bench.sync(ALL);
    expect([...source.meters.keys()]).toEqual(["traces"]);
    expect(new Set(run.counts.map(({ meter }) => meter))).toEqual(new Set(["traces"]));
    const learned = await meters(bench);
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
    // Asked again in a day, not with each sync.
    const again = await bench.open(ALL);
    const before = bench.standin.requests.count;
    await learnMeters(again);
    expect(bench.standin.requests.count).toBe(before);
  },
);

test("an update to a server that tracks no long-lived traces leaves what is stored", async () => {
  const bench = await setupAll();
  await bench.sync(ALL);
  const before = await stored(bench);
  bench.standin.settings.serverVersion = "0.16.0";
  await bench.passTime();
  const { source, run } = await bench.sync(ALL);
  expect(source.meters.has("longlived")).toBe(false);
  expect(run.counts.some(({ meter }) => meter === "longlived")).toBe(false);
  expect(await stored(bench)).toEqual(before);
  expect((await meters(bench)).map((one) => one.state)).toEqual(["counted", "not_known"]);
});

test("deployment usage that begins later than traces is asked for from then on alone", async () => {
  const late = new Date(now() - 2 * DAY_MS).toISOString().slice(0, 10);
  const bench = await setup({ standin: { contract: "day-granular", deploymentStart: late } });
  await bench.sync(ALL);
  expect((await meters(bench))[0]).toMatchObject({ meter: "deployments", starts_on: late });
  const [first] = await bench.sql<{ start: Date }>(`
    SELECT min(period_start) AS start FROM usage.coverage JOIN usage.scope USING (scope_id)
    WHERE kind = 'langsmith_deployments'`);
  expect(first?.start.toISOString().slice(0, 10)).toBe(late);
});

test("every meter has terms of its own", () => {
  const terms = METERS.map((meter) => `${METER[meter].kind} ${METER[meter].tier}`);
  expect(new Set(terms).size).toBe(METERS.length);
});
