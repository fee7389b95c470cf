import { describe, expect, test } from "vitest";
import { type CalendarMonth, monthAt, monthBefore } from "../../../../src/core/domain/months/month.ts";
import { describeProviderMonth } from "../../../../src/core/domain/months/provider.ts";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { checkTotals } from "../../../../src/core/pipeline/proof/check-totals.ts";
import { learnMeters } from "../../../../src/core/pipeline/source/learn-meters.ts";
import { listDifferences } from "../../../../src/features/activity/difference-list.store.ts";
import { openIncidents } from "../../../../src/features/alerts/conditions.ts";
import { lookAtMonth } from "../../../../src/features/close/close-preview.ts";
import { unloadedWorkspaces } from "../../../../src/features/costs/bill-terms.store.ts";
import { checkProvider } from "../../../../src/features/costs/read-bill.ts";
import { describeBill } from "../../../../src/features/costs/totals.command.ts";
import { dice } from "../../../../src/features/standin/engine/random.ts";
import { now } from "../../../support/clock.ts";
import { seed } from "../../../support/drawn.ts";
import { type Bench, senderOn, setup } from "../../../support/source.ts";

const SEED = seed();

async function loaded(): Promise<Bench & { months: CalendarMonth[] }> {
  const last = monthBefore(monthAt(now() - 4 * DAY_MS));
  const first = monthBefore(last);
  const today = Math.floor(now() / DAY_MS);
  const days = today - Date.parse(first.start) / DAY_MS + 3;
  const bench = await setup({ days, workspaces: [0, 1], standin: { scale: 0.34 } });
  await load(bench);
  return { ...bench, months: [first, last] };
}

const load = (bench: Bench) =>
  bench.fetch({
    wanted: [{ stride: "day", range: { start: bench.dataStart, end: bench.today } }],
    reprocess: "all",
  });

const check = async (bench: Bench, reach: "month" | "all" = "all") => {
  const before = bench.standin.requests.count;
  const source = await bench.open();
  const contact = bench.standin.requests.count - before;
  const result = await checkProvider(source, reach);
  return { ...result, seen: bench.standin.requests.count - before - contact };
};

const outcomes = (result: Awaited<ReturnType<typeof check>>) =>
  Object.fromEntries(
    result.months.map(({ month, totals }) => [
      month,
      totals.filter((one) => one.meter === "traces" && one.workspaceId !== null).map((one) => one.outcome),
    ]),
  );

/** What a close of that month would find. */
const look = async (bench: Bench, month: CalendarMonth) =>
  lookAtMonth(bench.store.db, {
    month: month.name,
    now: bench.now,
    source: {
      workspaceIds: bench.workspaceIds,
      sourceId: (await bench.open()).sourceId,
      source: "default",
      dataStart: new Date(bench.dataStart).toISOString().slice(0, 10),
    },
  });

const dayOf = (month: CalendarMonth, nth: number) => Date.parse(month.start) + nth * DAY_MS;
const workspaceOf = (bench: Bench, nth: number) => bench.workspaceIds[nth] ?? "";

describe(`under random histories, seed ${SEED}`, () => {
  test("a meter that drifts is found and named until it agrees; one that does not never gives a finding", async () => {
    const bench = await loaded();
    const { next } = dice(SEED);
    const roll = (n: number) => Math.floor(next() * n);
    for (let step = 0; step < 10; step += 1) {
      const month = bench.months[roll(2)] as CalendarMonth;
      const nth = roll(2);
      const sender = senderOn(bench.standin, nth, dayOf(month, 1 + roll(26)));
      const { drifts } = bench.standin.bill;
      const what = ["restated", "loaded", "drifted", "agrees"][roll(4)];
      if (what === "restated") {
        bench.standin.ledger.change(sender, roll(2) === 0 ? -1 : 1 + roll(9));
        const other = senderOn(bench.standin, 1 - nth, sender.at - (sender.at % DAY_MS));
        if (roll(2) === 0) bench.standin.ledger.change(other, 1 + roll(9));
      }
      if (what === "loaded") await load(bench);
      if (what === "drifted") {
        const delta = (roll(2) === 0 ? -1 : 1) * 100 * (1 + roll(5));
        drifts.push({ metric: "traces", workspaceId: workspaceOf(bench, nth), at: sender.at, delta });
      }
      if (what === "agrees") drifts.length = 0;
      const { findings, failed } = await check(bench, roll(2) === 0 ? "month" : "all");
      const wrong = new Map<string, number>();
      for (const { workspaceId, at, delta } of drifts) {
        const key = `${workspaceId} ${monthAt(at).name}`;
        wrong.set(key, (wrong.get(key) ?? 0) + (delta ?? 0));
      }
      const named = findings.map((one) => [
        `${one.workspaceId} ${monthAt(one.start).name}`,
        (one.controlTraces ?? 0) - (one.storedTraces ?? 0),
      ]);
      const expected = [...wrong].filter(([, delta]) => delta !== 0);
      expect(named.sort(), `step ${step}: ${what}`).toEqual(expected.sort());
      expect(failed).toEqual([]);
      for (const one of findings)
        expect(one).toMatchObject({ kind: "provider_total", state: "platform_disagrees" });
    }
  });
});

test("a difference is asked about twice once, stays while it is not compared, and ends when both agree", async () => {
  const bench = await loaded();
  const [month] = bench.months as [CalendarMonth, CalendarMonth];
  const workspaceId = workspaceOf(bench, 0);
  const drift = { metric: "traces" as const, workspaceId, at: dayOf(month, 3), delta: 7 };
  bench.standin.bill.drifts.push(drift);
  const [first, second] = [await check(bench), await check(bench)];
  expect(first.findings).toMatchObject([
    { workspaceId, groupBy: "workspace", start: Date.parse(month.start) },
  ]);
  expect(first.requests).toBeGreaterThan(2);
  expect(second).toMatchObject({ requests: 2, seen: 2 });
  expect(outcomes(second)[month.name]).toEqual(expect.arrayContaining(["unknown_workspace", "equal"]));
  expect(second.findings).toEqual(first.findings);
  const { organisation, ledger } = bench.standin;
  const lacking = organisation.workspaces
    .filter((one) => !bench.workspaceIds.includes(one.id))
    .map(({ id }) => ({
      workspaceId: id,
      name: null,
      traces: organisation.streams
        .filter(({ project }) => project.workspace.id === id && !project.dropped)
        .reduce(
          (sum, one) => sum + (ledger.counts(one, [Date.parse(month.start), Date.parse(month.end)])[0] ?? 0),
          0,
        ),
    }))
    .filter(({ traces }) => traces > 0)
    .sort((one, other) => other.traces - one.traces);
  expect(lacking.length).toBeGreaterThan(0);
  const named = await unloadedWorkspaces(bench.store.db, { source: "default", monthStart: month.start });
  expect(named).toMatchObject(lacking);

  const totals = await checkTotals(await bench.open(), "all");
  expect(totals).toMatchObject({ differences: 0, daysDisproved: 0 });

  // It is shown wherever differences are, and keeps its month open until somebody accepts it.
  const [shown] = await listDifferences(bench.store.db, {
    source: "default",
    onlyLeft: true,
    most: 5,
    masked: false,
  });
  expect(shown).toMatchObject({
    says: "total",
    kind: "provider_total",
    stride: "calendar month",
    workspaceId,
  });
  const alerts = await openIncidents(bench.store.db, { staleAfterMs: DAY_MS, firstSource: "default" });
  expect(alerts.get("default")?.map(({ kind }) => kind)).toEqual(["provider_total"]);
  await bench.reconcile({ range: { start: dayOf(month, 0), end: Date.parse(month.end) } });
  const looked = await look(bench, month);
  const days = (Date.parse(month.end) - Date.parse(month.start)) / DAY_MS;
  expect(looked.open).toHaveLength(days);
  expect(looked.open).toSatisfy((open: typeof looked.open) =>
    open.every((one) => one.reason === "provider_differs" && one.workspaceId === workspaceId),
  );
  expect(describeProviderMonth(looked.provider)).toMatch(
    /traces of 1 workspace equal; traces of 1 workspace DIFFERENT|traces of 1 workspace DIFFERENT; traces of 1 workspace equal/,
  );

  bench.standin.bill.drifts.splice(0, 1, { ...drift, delta: null });
  const unknown = await check(bench);
  expect(unknown.findings).toEqual(first.findings);
  expect(outcomes(unknown)[month.name]?.filter((one) => one === "unknown_value")).toHaveLength(1);

  bench.standin.bill.drifts.length = 0;
  expect((await check(bench)).findings).toEqual([]);
  const states = await bench.sql("SELECT kind, state FROM reporting_detail.usage_reconciliation");
  expect(states).toEqual([{ kind: "provider_total", state: "closed" }]);
});

test("a month that is not wholly loaded and final is not compared; a server that refuses is asked no more, and usage goes on", async () => {
  const bench = await loaded();
  const [month] = bench.months as [CalendarMonth, CalendarMonth];
  await bench.sql("UPDATE usage.coverage SET final = false WHERE period_end > $1 AND period_start < $2", [
    month.start,
    new Date(dayOf(month, 2)).toISOString(),
  ]);
  bench.standin.bill.drifts.push({
    metric: "traces",
    workspaceId: workspaceOf(bench, 0),
    at: dayOf(month, 3),
    delta: 7,
  });
  const result = await check(bench);
  expect(result.findings).toEqual([]);
  expect(outcomes(result)[month.name]?.filter((one) => one === "not_final")).toHaveLength(2);

  for (const status of [401, 403, 404]) {
    bench.standin.faults.set({
      script: [{ fault: { kind: "status", status }, match: { path: "/billing/usage" }, times: 1 }],
    });
    const refused = await check(bench);
    expect(refused).toMatchObject({ months: [], findings: [], failed: [], seen: 1 });
    expect(refused.refusal).toContain(`${status}`);
    const [source] = await bench.sql<{ refused_at: Date | null }>("SELECT refused_at FROM usage.source");
    expect(source?.refused_at).toBeNull();
  }
});

test("extended traces are compared with long-lived ones: a late upgrade is loaded again, a drift is named with its tier", async () => {
  const month = monthBefore(monthAt(now() - 4 * DAY_MS));
  const days = Math.floor(now() / DAY_MS) - Date.parse(month.start) / DAY_MS + 1;
  const standin = { scale: 0.34, contract: "day-granular" } as const;
  const bench = await setup({ days, workspaces: [0], standin });
  const all = { settings: { meters: ["traces", "longlived"] } } as const;
  const range = { start: bench.dataStart, end: bench.today };
  await learnMeters(await bench.open(all));
  await bench.fetch(
    {
      wanted: [
        { stride: "day", range },
        { stride: "day", range, meter: "longlived" },
      ],
      reprocess: "missing",
    },
    all,
  );
  const compare = async () => {
    const { months, findings, restated } = await checkProvider(await bench.open(all), "all");
    const own = months
      .flatMap(({ totals }) => totals)
      .filter((one) => one.workspaceId === workspaceOf(bench, 0));
    return { restated, findings, own: own.map(({ meter, outcome }) => `${meter} ${outcome}`).sort() };
  };
  expect((await compare()).own).toEqual(["longlived equal", "traces equal"]);

  const sender = senderOn(bench.standin, 0, dayOf(month, 5));
  bench.standin.ledger.upgrade(sender, 1);
  const upgraded = await compare();
  expect(upgraded.own).toEqual(["longlived equal", "traces equal"]);
  expect(upgraded.restated).toBeGreaterThan(0);

  bench.standin.bill.drifts.push({
    metric: "longlived",
    workspaceId: workspaceOf(bench, 0),
    at: sender.at,
    delta: 3,
  });
  expect((await compare()).own).toEqual(["longlived differs", "traces equal"]);
  const provider = await check(bench);
  expect(describeBill("default", { provider, parts: {}, failed: [] })).toMatch(
    /month +workspace +usage +stored +provider\n.*\n?\d{4}-\d\d +\S+ +extended traces /,
  );
  expect(
    await bench.sql(
      "SELECT kind, trace_tier, (other_amount - stored_amount)::bigint AS more FROM reporting_detail.usage_reconciliation",
    ),
  ).toEqual([{ kind: "provider_total", trace_tier: "longlived", more: 3 }]);
  const incidents = await openIncidents(bench.store.db, { staleAfterMs: DAY_MS, firstSource: "default" });
  expect(incidents.get("default")).toMatchObject([{ kind: "provider_total" }, { kind: "final_changed" }]);

  const looked = await look(bench, month);
  const differing = looked.open.filter(({ reason }) => reason === "provider_differs");
  expect(differing).toHaveLength((Date.parse(month.end) - Date.parse(month.start)) / DAY_MS);
  expect(new Set(differing.map(({ meter }) => meter))).toEqual(new Set(["longlived"]));
});
