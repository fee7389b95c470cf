import fc from "fast-check";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { monthAt } from "../../../src/core/domain/months/month.ts";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { METER, METERS, type Meter } from "../../../src/core/domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../../src/core/domain/usage/record.ts";
import { type CloseRequest, closePeriod } from "../../../src/features/close/close-period.store.ts";
import { openDaysOf } from "../../../src/features/close/open-days.store.ts";
import {
  DISAGREEMENTS,
  OPEN_REASONS,
  type OpenDay,
  type OpenReason,
} from "../../../src/features/close/open-days.ts";
import { otherTraces } from "../../../src/features/costs/other-traces.store.ts";
import { otherUsage } from "../../../src/features/costs/other-usage.store.ts";
import { trustOfSources } from "../../../src/features/coverage/trust.store.ts";
import { KEEP_PROOF } from "../../support/by-hand.ts";
import { seed, times } from "../../support/drawn.ts";
import { acceptOpen } from "../../support/month.ts";
import { addSource } from "../../support/reporting.ts";
import { setupMigrated } from "../../support/store.ts";

const SEED = seed();
const RUNS = times(12);
const MOST_CLOSES = 5;

const WORKSPACES = ["a", "b"].map((n) => `00000000-0000-4000-8000-00000000000${n}`);
const OTHERS = ["longlived", "deployments", "sandboxes", "evaluators"] as const;
const KEPT = ["traces", ...OTHERS] as const;
type Kept = (typeof KEPT)[number];

const MONTH = "2026-03-01";
const DATA_START = "2026-03-03";
const DAYS = 31;
const dayOf = (nth: number) => new Date(Date.parse(MONTH) + nth * DAY_MS).toISOString().slice(0, 10);

const PROBLEMS = {
  gap: "missing",
  provisional: "provisional",
  failed: "failed",
  unverified: "unverified",
  open: "open",
  contradicted: "platform_disagrees",
  total: "total_differs",
  tiers: "tiers_differ",
} as const satisfies Record<string, OpenReason>;
type Problem = keyof typeof PROBLEMS;

interface Flawed {
  readonly problem: Problem;
  readonly meter: Kept;
  readonly workspace: string;
  readonly groupBy: GroupBy;
  readonly first: number;
  readonly days: number;
}

const problem: fc.Arbitrary<Flawed> = fc
  .record({
    problem: fc.constantFrom<Problem>(...(Object.keys(PROBLEMS) as Problem[])),
    meter: fc.constantFrom<Kept>(...KEPT),
    workspace: fc.constantFrom(...WORKSPACES),
    groupBy: fc.constantFrom(...GROUPINGS),
    first: fc.integer({ min: 0, max: DAYS - 1 }),
    days: fc.integer({ min: 1, max: 3 }),
  })
  .map((one) =>
    one.problem === "tiers" && one.meter !== "longlived" ? { ...one, problem: "total" as const } : one,
  )
  .map((one) =>
    METER[one.meter].groupings.includes(one.groupBy) ? one : { ...one, groupBy: "project" as const },
  );

interface Scenario {
  readonly problems: readonly Flawed[];
  readonly wanted: readonly Meter[];
  readonly available: readonly Kept[];
  readonly unknown: readonly Kept[];
  readonly startsOn: number;
  readonly accepts: boolean;
}

const scenario: fc.Arbitrary<Scenario> = fc.record({
  problems: fc.oneof(fc.constant([]), fc.array(problem, { minLength: 1, maxLength: 4 })),
  wanted: fc.subarray<Meter>([...KEPT]),
  available: fc.subarray<Kept>([...OTHERS]),
  unknown: fc.subarray<Kept>([...OTHERS]),
  startsOn: fc.constantFrom(-9, 0, 1, 12, 40),
  accepts: fc.boolean(),
});

const scenarioOf = (...problems: Omit<Flawed, "workspace" | "groupBy">[]): Scenario => ({
  problems: problems.map((one) => ({ ...one, workspace: WORKSPACES[0] as string, groupBy: "workspace" })),
  wanted: KEPT,
  available: [...OTHERS],
  unknown: [],
  startsOn: -9,
  accepts: false,
});
/** Those that chance may leave out. */
const EXAMPLES: readonly Scenario[] = [
  scenarioOf({ problem: "gap", meter: "deployments", first: 0, days: 2 }),
  scenarioOf({ problem: "gap", meter: "longlived", first: 3, days: 1 }),
  scenarioOf(
    { problem: "tiers", meter: "longlived", first: 5, days: 1 },
    { problem: "total", meter: "longlived", first: 5, days: 1 },
  ),
  scenarioOf(
    { problem: "total", meter: "deployments", first: 5, days: 2 },
    { problem: "open", meter: "deployments", first: 5, days: 1 },
    { problem: "provisional", meter: "deployments", first: 6, days: 1 },
    { problem: "failed", meter: "traces", first: 5, days: 1 },
  ),
  // Disagreements are accepted, and nothing else is.
  {
    ...scenarioOf(
      { problem: "total", meter: "traces", first: 4, days: 1 },
      { problem: "provisional", meter: "traces", first: 5, days: 1 },
      { problem: "failed", meter: "traces", first: 6, days: 1 },
      { problem: "gap", meter: "traces", first: 7, days: 1 },
    ),
    accepts: true,
  },
];

const stateOf = ({ available, unknown }: Scenario, meter: Kept) => {
  if (available.includes(meter)) return "counted";
  return unknown.includes(meter) ? "not_known" : "not_counted";
};
const isKept = (given: Scenario, meter: Kept) =>
  meter === "traces" || (stateOf(given, meter) !== "not_counted" && given.wanted.includes(meter));

function expected(given: Scenario): string[] {
  const found = new Map<string, OpenReason>();
  for (const { problem: what, meter, workspace, groupBy, first, days } of given.problems) {
    const start = meter === "traces" ? 2 : 0;
    const isUnknown = meter !== "traces" && stateOf(given, meter) === "not_known";
    const begins = Math.max(start, meter === "deployments" && !isUnknown ? given.startsOn : 2);
    for (let nth = first; nth < Math.min(first + days, DAYS); nth++) {
      const reason = isUnknown && what === "gap" ? "not_known" : PROBLEMS[what];
      const isGap = (
        ["not_known", "missing", "provisional", "failed", "unverified"] as OpenReason[]
      ).includes(reason);
      if (isGap ? !isKept(given, meter) || nth < begins : nth < start) continue;
      const cell = `${meter} ${groupBy} ${workspace} ${dayOf(nth)}`;
      const before = found.get(cell);
      if (before === undefined || OPEN_REASONS.indexOf(reason) < OPEN_REASONS.indexOf(before))
        found.set(cell, reason);
    }
  }
  return [...found].map(([cell, reason]) => `${reason} ${cell}`).sort();
}

/** Loaded intervals of every cell: the whole month of others than traces, but for gaps, and where it is provisional. */
function coverageOf(problems: readonly Flawed[]) {
  return KEPT.flatMap((meter) =>
    METER[meter].groupings.flatMap((groupBy) =>
      WORKSPACES.flatMap((workspace) => {
        const own = problems.filter(
          (one) => one.meter === meter && one.groupBy === groupBy && one.workspace === workspace,
        );
        const has = (what: Problem, nth: number) =>
          own.some((one) => one.problem === what && nth >= one.first && nth < one.first + one.days);
        const days = Array.from({ length: DAYS }, (_, nth) => nth)
          .filter((nth) => (meter !== "traces" || dayOf(nth) >= DATA_START) && !has("gap", nth))
          .map((nth) => ({ nth, final: !has("provisional", nth) }));
        const runs: { first: number; last: number; final: boolean }[] = [];
        for (const { nth, final } of days) {
          const run = runs.at(-1);
          if (run?.last === nth - 1 && run.final === final) run.last = nth;
          else runs.push({ first: nth, last: nth, final });
        }
        const { kind, tier } = METER[meter];
        return runs.map(({ first, last, final }) => ({
          kind,
          tier,
          groupBy,
          workspace,
          final,
          from: dayOf(first),
          to: dayOf(last + 1),
        }));
      }),
    ),
  );
}

test(`close accepts what nothing of any kept meter contradicts (seed ${SEED})`, async () => {
  const { store } = await setupMigrated();
  const { db } = store;
  const sourceId = await addSource(store, {
    slug: "default",
    workspaceIds: WORKSPACES,
    dataStart: DATA_START,
    strides: ["day"],
  });
  await sql`
    insert into usage.scope (source_id, kind, trace_tier, group_by, workspace_id, stride)
    select ${sourceId}, m.kind, m.tier, g, w.entity_id, 'day'
    from unnest(${KEPT.map((meter) => METER[meter].kind)}::text[], ${KEPT.map((meter) => METER[meter].tier)}::text[]) m (kind, tier)
    join usage.meter_dimension d on d.kind = m.kind and d.trace_tier = m.tier
    cross join lateral (select d.group_by) g (g)
    cross join usage.workspace w
    on conflict do nothing`.execute(db);

  const plant = async (given: Scenario) => {
    for (const table of [
      "coverage",
      "failure",
      "reconciled",
      "difference",
      "source_meter",
      "closed_workspace",
      "close",
    ])
      await sql`delete from ${sql.table(`usage.${table}`)}`.execute(db);
    await sql`update usage.source set wanted_meters = ${[...given.wanted]}::text[]`.execute(db);
    for (const meter of OTHERS) {
      const state = stateOf(given, meter);
      const startsOn = meter === "deployments" && state === "counted" ? dayOf(given.startsOn) : null;
      await sql`insert into usage.source_meter (source_id, meter, state, evidence, starts_on, request_again_at)
        values (${sourceId}, ${meter}, ${state}, 'test', ${startsOn}::date, now())`.execute(db);
    }
    await sql`
      insert into usage.coverage (scope_id, period_start, period_end, final, fetch_number, fetched_at, traced)
      select c.scope_id, x."from"::timestamp at time zone 'UTC', x."to"::timestamp at time zone 'UTC', x.final, 1, now(), '{}'
      from json_to_recordset(${JSON.stringify(coverageOf(given.problems))}::json)
        x (kind text, tier text, "groupBy" text, workspace text, "from" text, "to" text, final boolean)
      join usage.entity w on w.external_id = x.workspace
      join usage.scope c
        on c.kind = x.kind and c.trace_tier = x.tier and c.group_by = x."groupBy" and c.workspace_id = w.entity_id`.execute(
      db,
    );
    await sql`
      insert into usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
      select scope_id, ${DATA_START}::timestamp at time zone 'UTC', ${dayOf(DAYS)}::timestamp at time zone 'UTC', 1, now()
      from usage.trace_scope`.execute(db);
    for (const one of given.problems) {
      const { kind, tier, measures } = METER[one.meter];
      const scope = sql`(select scope_id from usage.scope join usage.entity w on w.entity_id = workspace_id
        where kind = ${kind} and trace_tier = ${tier} and group_by = ${one.groupBy} and w.external_id = ${one.workspace})`;
      const last = Math.min(one.first + one.days, DAYS);
      const [from, to] = [dayOf(one.first), dayOf(last)].map(
        (day) => sql`${day}::timestamp at time zone 'UTC'`,
      );
      const measure = measures[0] ?? "traces";
      if (one.problem === "gap" || one.problem === "provisional") continue;
      if (one.problem === "failed" || one.problem === "unverified") {
        await sql`
          insert into usage.failure (scope_id, period_start, period_end, state, code, message, fetch_number, attempts, failed_at, retry_at)
          select ${scope}, day, day + interval '24 hours', ${one.problem}, 'x', 'x', 2, 1, now(), now()
          from generate_series(${from}, ${to} - interval '1 hour', interval '24 hours') day
          where not exists (select from usage.failure f where f.scope_id = ${scope} and f.period_start = day)`.execute(
          db,
        );
      } else if (one.problem === "open" || one.problem === "contradicted") {
        const state = PROBLEMS[one.problem];
        await sql`
          insert into usage.difference
            (scope_id, compared_with, external_id, period_start, period_end, measure, kind, stored_traces, other_traces, state, fetch_number)
          select ${scope}, 'export', ${state}, day, day + interval '24 hours', ${measure}, 'traces_differ', 1, 2, ${state}, 1
          from generate_series(${from}, ${to} - interval '1 hour', interval '24 hours') day
          on conflict do nothing`.execute(db);
      } else {
        const found = one.problem === "tiers" ? "tier_total" : "stride_total";
        await sql`
          insert into usage.difference
            (scope_id, compared_with, kind, period_start, period_end, external_id, measure, stored_traces, other_traces, state, fetch_number)
          values (${scope}, ${found}, ${found}, ${from}, ${to}, 'x', ${measure}, 1, 2, 'platform_disagrees', 1)
          on conflict do nothing`.execute(db);
      }
    }
    await sql.raw(KEEP_PROOF).execute(db);
  };

  const close = (accept: Pick<CloseRequest, "accept">) =>
    closePeriod(store, {
      sourceId,
      period: monthAt(Date.parse(MONTH)),
      settleAfterMs: 0,
      withoutCosts: true,
      by: { name: null, role: "operator", via: "command" },
      ...accept,
    });
  let closes = 0;
  const states = { closed: 0, open: 0 };
  await fc.assert(
    fc.asyncProperty(scenario, async (given) => {
      const failures = given.problems.filter(
        ({ problem: what }) => what === "failed" || what === "unverified",
      );
      // One failure a day is kept, so two of them would be about the order in which they came.
      fc.pre(new Set(failures.map(({ problem: what }) => what)).size < 2);
      await plant(given);
      const reasons = expected(given);
      const [trust] = await trustOfSources(db);
      const sinceStart = reasons.filter((one) => one.slice(-10) >= DATA_START);
      expect((trust?.reconciledUntil ?? "") >= "2026-04-01", "what status offers to close").toBe(
        sinceStart.length === 0,
      );

      const blocking = reasons.filter(
        (one) => !given.accepts || !DISAGREEMENTS.includes(one.split(" ")[0] as OpenReason),
      );
      const ranges = [
        { start: Date.parse(DATA_START), end: Date.parse("2026-04-01"), othersStart: Date.parse(MONTH) },
      ];
      const requested = { sourceId, ranges };
      const [check] = await openDaysOf(db, requested);
      expect(check?.open.length).toBe(reasons.length);
      const orderOf = ({ day, meter, groupBy, workspaceId }: OpenDay) =>
        `${new Date(day).toISOString()} ${METERS.indexOf(meter)} ${groupBy} ${workspaceId}`;
      const order = check?.open.map(orderOf);
      expect(order).toEqual(order?.toSorted());
      const middle = Date.parse("2026-03-15");
      const halves = ranges.flatMap((range) => [
        { ...range, end: middle },
        { start: middle, end: range.end },
      ]);
      const parts = await openDaysOf(db, { ...requested, ranges: halves });
      expect(parts.flatMap(({ open }) => open)).toEqual(check?.open);
      if (blocking.length === 0 && closes++ >= MOST_CLOSES) return;
      const result = await (given.accepts && blocking.length === 0 ? acceptOpen(close) : close({}));
      expect(result.state).toBe(blocking.length === 0 ? "closed" : "open");
      if (result.state === "open") {
        const listed = result.open.map(
          ({ reason, meter, groupBy, workspaceId, day }) =>
            `${reason} ${meter} ${groupBy} ${workspaceId} ${new Date(day).toISOString().slice(0, 10)}`,
        );
        expect(listed.sort()).toEqual(reasons);
        states.open++;
      } else if (result.state === "closed") {
        expect(result.accepted).toBe(reasons.length);
        states.closed++;
      }

      const range = { start: Date.parse(MONTH), end: Date.parse("2026-04-01") };
      const said = await otherUsage(db, { sourceId, range });
      expect((await otherTraces(db, { sourceId, monthStart: MONTH, range })).others).toEqual(said);
      expect(said.map(({ meter, state }) => `${meter} ${state}`)).toEqual(
        METERS.flatMap((meter) => {
          if (meter === "traces" || meter === "shortlived") return [];
          if (!given.wanted.includes(meter)) return `${meter} not_wanted`;
          const state = stateOf(given, meter);
          return `${meter} ${state === "counted" ? "checked" : state}`;
        }),
      );
    }),
    {
      seed: SEED,
      numRuns: RUNS + EXAMPLES.length,
      endOnFailure: true,
      examples: EXAMPLES.map((one): [Scenario] => [one]),
    },
  );
  expect(Math.min(states.open, states.closed), JSON.stringify(states)).toBeGreaterThan(0);
});
