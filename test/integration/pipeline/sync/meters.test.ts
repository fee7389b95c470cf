import { expect, test } from "vitest";
import { fewestRequests } from "../../../../src/domain/planning/request.ts";
import { DAY_MS, HOUR_MS } from "../../../../src/domain/time/stride.ts";
import { METER, METERS, type Meter } from "../../../../src/domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../../../src/domain/usage/record.ts";
import { learnMeters } from "../../../../src/pipeline/source/learn-meters.ts";
import { planSource, routineDemand } from "../../../../src/pipeline/sync/plan.ts";
import type { DeploymentMeasure } from "../../../../src/standin/engine/deployment-ledger.ts";
import { storeNow } from "../../../../src/store/load/fetch-ledger.ts";
import { type Bench, setup } from "../../../support/source.ts";

/** Long-lived traces and deployment usage beside traces of all tiers: what is learned of the server, planned and stored. */

const ALL = { settings: { meters: ["traces", "longlived", "deployments"] } } as const;
const DAYS_OF_DEPLOYMENTS = 9;

/** A server that counts everything; its deployment usage began before the data start. */
async function setupAll(standin: NonNullable<Parameters<typeof setup>[0]>["standin"] = {}): Promise<Bench> {
  const now = Date.now();
  const deploymentStart = new Date(now - DAYS_OF_DEPLOYMENTS * DAY_MS).toISOString().slice(0, 10);
  return setup({ standin: { contract: "day-granular", deploymentStart, ...standin } });
}

/** `meter dimension workspace id measure day` with the amount, as stored. Zeros are left out. */
async function stored(bench: Bench): Promise<Map<string, number>> {
  const rows = await bench.sql<{ key: string; amount: number }>(`
    SELECT concat_ws(' ', c.kind, c.trace_tier, c.group_by, w.external_id, coalesce(nullif(e.external_id, ''), '(none)'),
                     s.measure, r.bucket_start) AS key, r.traces AS amount
    FROM usage.every_scope c
    JOIN usage.entity w ON w.entity_id = c.workspace_id
    JOIN usage.series s USING (scope_id)
    JOIN usage.entity e ON e.entity_id = s.entity_id
    JOIN usage.dated_record r USING (series_id)
    WHERE c.stride = 'day' AND r.traces > 0`);
  return new Map(rows.map(({ key, amount }) => [key, Number(amount)]));
}

/** The same as the stand-in answers it, day by day. */
async function answered(bench: Bench, starts: Partial<Record<Meter, number>>): Promise<Map<string, number>> {
  const { standin, today } = bench;
  const found = new Map<string, number>();
  for (const [meter, start] of Object.entries(starts) as [Meter, number][]) {
    const { kind, tier, measures } = METER[meter];
    for (const { id } of standin.organisation.workspaces) {
      for (const groupBy of GROUPINGS) {
        const url = new URL("/api/v1/orgs/current/billing/granular-usage", standin.url);
        url.search = String(
          new URLSearchParams({
            start_time: new Date(start).toISOString(),
            end_time: new Date(today + DAY_MS).toISOString(),
            group_by: groupBy,
            workspace_ids: id,
            ...(kind === "traces" ? {} : { kind }),
            ...(tier === "all" ? {} : { trace_tier: tier }),
          }),
        );
        const response = await fetch(url, { headers: { "x-api-key": standin.apiKey } });
        const { usage } = (await response.json()) as { usage: Record<string, never>[] };
        for (const record of usage) {
          for (const measure of measures) {
            const { dimensions, time_bucket } = record as unknown as {
              dimensions: Record<string, string | null>;
              time_bucket: string;
            };
            const name = dimensions[ID[groupBy]] ?? "(none)";
            const key = [kind, tier, groupBy, id, name, measure, time_bucket.slice(0, 10)].join(" ");
            const amount = Number(record[measure]);
            if (amount > 0) found.set(key, (found.get(key) ?? 0) + amount);
          }
        }
      }
    }
  }
  return found;
}

const ID: Record<GroupBy, string> = {
  workspace: "workspace_id",
  project: "project_id",
  user: "user_id",
  api_key: "api_key_short_key",
};

const meters = (bench: Bench) =>
  bench.sql<{ meter: string; is_available: boolean; evidence: string; starts_on: string | null }>(
    "SELECT meter, is_available, evidence, starts_on::text FROM usage.source_meter ORDER BY meter",
  );

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
  const slices = await planSource(source, { wanted, reprocess: "missing" });
  expect(slices).toHaveLength(fewestRequests(slices));

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
    JOIN usage.every_scope c USING (scope_id) WHERE c.group_by = 'project' ORDER BY 1`);
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
  // One window of days for each dimension and workspace, or for all workspaces at once.
  const each = 1 + 3 * source.workspaces.length;
  for (const meter of ["longlived", "deployments"] as const) {
    const requests = run.counts.filter((one) => one.meter === meter).map((one) => one.requests);
    expect(requests.reduce((sum, one) => sum + one, 0)).toBe(each);
  }
});

test("late upgrades move traces between tiers without changing their sum", async () => {
  const bench = await setupAll();
  await bench.sync(ALL);
  const sum = async () => {
    const rows = await bench.sql<{ tier: string; sum: number }>(`
      SELECT c.trace_tier AS tier, sum(r.traces)::bigint AS sum FROM usage.every_scope c JOIN usage.series s USING (scope_id)
      JOIN usage.dated_record r USING (series_id)
      WHERE c.kind = 'traces' AND c.group_by = 'workspace' AND c.stride = 'day' GROUP BY 1`);
    return Object.fromEntries(rows.map((row) => [row.tier, Number(row.sum)]));
  };
  const before = await sum();
  const { ledger, organisation } = bench.standin;
  const at = bench.today - DAY_MS;
  let moved = 0;
  for (const { project, user, key } of organisation.streams.slice(0, 40)) {
    moved += ledger.upgrade({ project, user, key, at: at + 3_600_000 * 12 }, 3) === undefined ? 0 : 1;
  }
  expect(moved).toBeGreaterThan(0);
  await bench.sync(ALL);
  const after = await sum();
  expect(after.all).toBe(before.all);
  expect(after.longlived).toBeGreaterThan(before.longlived as number);
  expect(await stored(bench)).toEqual(
    await answered(bench, {
      ...{ traces: bench.dataStart, longlived: bench.dataStart },
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
    expect(learned.map(({ meter, is_available }) => [meter, is_available])).toEqual([
      ["deployments", false],
      ["longlived", false],
    ]);
    expect(learned.map(({ evidence }) => evidence)).toEqual([
      expect.stringMatching(deployments),
      expect.stringMatching(tiers),
    ]);
    const scopes = await bench.sql(
      "SELECT FROM usage.every_scope WHERE kind <> 'traces' OR trace_tier <> 'all'",
    );
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
  expect((await meters(bench)).map((one) => one.is_available)).toEqual([true, false]);
});

test("deployment usage that begins later than traces is asked for from then on alone", async () => {
  const late = new Date(Date.now() - 2 * DAY_MS).toISOString().slice(0, 10);
  const bench = await setup({ standin: { contract: "day-granular", deploymentStart: late } });
  await bench.sync(ALL);
  expect((await meters(bench))[0]).toMatchObject({ meter: "deployments", starts_on: late });
  const [first] = await bench.sql<{ start: Date }>(`
    SELECT min(period_start) AS start FROM usage.coverage JOIN usage.every_scope USING (scope_id)
    WHERE kind = 'langsmith_deployments'`);
  expect(first?.start.toISOString().slice(0, 10)).toBe(late);
});

test("every meter has terms of its own", () => {
  const terms = METERS.map((meter) => `${METER[meter].kind} ${METER[meter].tier}`);
  expect(new Set(terms).size).toBe(METERS.length);
});

test.each([
  [403, false, false],
  [500, false, true],
] as const)(
  "a server that answers %i for other usage alone still has its traces loaded",
  async (status, available, asksAgain) => {
    const bench = await setupAll();
    for (const query of [{ trace_tier: "longlived" }, { kind: "langsmith_deployments" }]) {
      bench.standin.faults.script({ fault: { kind: "status", status }, times: 1000, match: { query } });
    }
    const { run, source } = await bench.sync(ALL);
    expect([...source.meters.keys()]).toEqual(["traces"]);
    expect(run.counts.length).toBeGreaterThan(3);
    expect(run.failures).toEqual([]);
    expect(await meters(bench)).toMatchObject([{ is_available: available }, { is_available: available }]);
    const [state] = await bench.sql<{ refused: boolean; due: boolean }>(`
    SELECT refused_at IS NOT NULL AS refused, (SELECT bool_and(ask_again_at <= now()) FROM usage.source_meter) AS due
    FROM usage.source`);
    expect(state).toEqual({ refused: false, due: asksAgain });
  },
);

test("a meter that the key may no longer read ends by itself, and traces go on", async () => {
  const bench = await setupAll();
  await bench.sync(ALL);
  const before = await stored(bench);
  bench.standin.faults.script({
    ...{ fault: { kind: "status", status: 403 }, times: 1000 },
    match: { query: { trace_tier: "longlived" } },
  });
  const { run, source } = await bench.sync(ALL);
  expect(source.meters.has("longlived")).toBe(false);
  expect(run.failures).toEqual([]);
  expect(await stored(bench)).toEqual(before);
  const [refused] = await bench.sql("SELECT refused_at FROM usage.source WHERE refused_at IS NOT NULL");
  expect(refused).toBeUndefined();
});

test("an update that nobody has noticed yet turns no long-lived count into zero", async () => {
  const bench = await setupAll();
  await bench.sync(ALL);
  const before = await stored(bench);
  // It is not due to be learned again: the first answers tell.
  bench.standin.settings.serverVersion = "0.16.0";
  const { source } = await bench.sync(ALL);
  expect(source.meters.has("longlived")).toBe(false);
  expect(await stored(bench)).toEqual(before);
});

test("zeros that an updated server sends for ever replace nothing", async () => {
  const bench = await setupAll({ omitZero: false, scale: 0.34 });
  await bench.sync(ALL);
  const before = await stored(bench);
  bench.standin.settings.serverVersion = "0.16.0";
  const { source } = await bench.sync(ALL);
  expect(source.meters.has("longlived")).toBe(false);
  expect(await stored(bench)).toEqual(before);
});

test("a server that does not say whether it is self-hosted, and answers no long-lived trace, is not known to count them", async () => {
  const bench = await setup({ standin: { contract: "day-granular", serverVersion: "0.16.0" } });
  // As of an installation that names neither itself nor its license.
  const open = async () => {
    const source = await bench.open(ALL);
    const { info } = source.billing;
    const unnamed = async (io?: Parameters<typeof info>[0]) => {
      const { version = null } = (await info(io)) ?? {};
      return { version };
    };
    return { ...source, billing: { ...source.billing, info: unnamed } };
  };
  const source = await open();
  await learnMeters(source);
  expect(source.meters.has("longlived")).toBe(false);
  expect((await meters(bench)).find(({ meter }) => meter === "longlived")).toMatchObject({
    is_available: false,
    evidence: expect.stringMatching(/^version 0\.16\.0 answers no long-lived trace, and it is not known/),
  });
  // Not for a day: the next sync asks again, and it may name itself then.
  await learnMeters(await bench.open(ALL));
  expect((await meters(bench)).find(({ meter }) => meter === "longlived")?.evidence).toMatch(
    /self-hosted servers do not track them/,
  );
});

test("an answer without any deployment usage ends nothing that was counted", async () => {
  const bench = await setupAll();
  await bench.sync(ALL);
  bench.standin.settings.deploymentUsage = "off";
  await bench.passTime();
  const source = await bench.open(ALL);
  const start = source.meters.get("deployments");
  await learnMeters(source);
  expect(source.meters.get("deployments")).toBe(start);
  expect((await meters(bench))[0]).toMatchObject({ meter: "deployments", is_available: true });
});

test("a zero that may be the end of a meter is stored once the server is seen to count it", async () => {
  const bench = await setupAll();
  await bench.sync(ALL);
  const before = await stored(bench);
  const { deploymentLedger, organisation, faults } = bench.standin;
  for (const { project, user, key } of organisation.deploymentStreams) {
    for (let at = bench.today - 3 * DAY_MS; at < bench.now; at += HOUR_MS) {
      for (const measure of METER.deployments.measures)
        deploymentLedger.change({ project, user, key, at }, measure as DeploymentMeasure, -1_000_000_000);
    }
  }
  // Only what is asked over years, to learn whether deployment usage is counted.
  const match = { query: { kind: "langsmith_deployments" }, stride: "year" } as const;
  faults.script({ fault: { kind: "status", status: 500 }, times: 1_000, match });
  const { run } = await bench.sync(ALL);
  expect(run.failures.length).toBeGreaterThan(0);
  expect(new Set(run.failures.map(({ code }) => code))).toEqual(new Set(["meter_doubtful"]));
  expect(await stored(bench)).toEqual(before);

  faults.clear();
  await bench.passTime();
  const again = await bench.sync(ALL);
  expect(again.run.failures).toEqual([]);
  const start = bench.today - DAYS_OF_DEPLOYMENTS * DAY_MS;
  const expected = await answered(bench, {
    ...{ traces: bench.dataStart, longlived: bench.dataStart, deployments: start },
  });
  expect(await stored(bench)).toEqual(expected);
  expect(expected.size).toBeLessThan(before.size);
  expect(await bench.sql("SELECT * FROM usage.failure")).toEqual([]);
});
