import fc from "fast-check";
import type pg from "pg";
import { expect, test } from "vitest";
import { type CalendarMonth, monthNamed } from "../../src/core/domain/months/month.ts";
import { amountCut, amountOf, roundedTo } from "../../src/core/domain/usage/amount.ts";
import type { Store } from "../../src/core/store/db/database.ts";
import { type BillLine, billTotals } from "../../src/features/costs/bill.ts";
import {
  chargesByWorkspace,
  monthBill,
  monthBillByOwner,
} from "../../src/features/costs/bill-lines.store.ts";
import { billByOwner } from "../../src/features/costs/owner-bill.ts";
import { applyOwners } from "../../src/features/owners/apply-owners.ts";
import {
  DIVIDING_DIMENSIONS,
  type DividingDimension,
  type OwnerRule,
} from "../../src/features/owners/owner.ts";
import type { OwnerChange } from "../../src/features/owners/owner-changes.store.ts";
import { replaceOwners } from "../../src/features/owners/owners.store.ts";
import { anyPrices, anyUsage, clearUsage } from "../support/any-charges.ts";
import { ALL_DUE } from "../support/by-hand.ts";
import {
  CLOSE_MARCH,
  createDimension,
  createMonths,
  createPrices,
  DAYS,
  dayOf,
  type IdUsage,
} from "../support/charges.ts";
import { seed, times } from "../support/drawn.ts";
import { breachesOf } from "../support/focus.ts";
import { setOwners } from "../support/owners.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadDeploymentRows, windowOf } from "../support/store.ts";
import { BY_RESOURCE, COST } from "./focus/bench.ts";

const [WORKSPACE, OTHER] = WORKSPACES;
const IDS = ["a", "b", "c"] as const;
const RENAMED_AT = 35;
const NAMES: Readonly<Record<string, (at: number) => string>> = {
  a: (at) => (at < RENAMED_AT ? "chat-old" : "agent_50%"),
  b: () => "chat-b",
  c: () => "other",
};
const TAGGED_AT = 40;

const day = fc.option(fc.integer({ min: 0, max: DAYS }).map(dayOf), { nil: null });
const often = <T>(first: T, ...others: T[]) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(first) }, fc.constantFrom(...others));
const share = fc.constantFrom([10_000], [2500, 7500], [3333, 3333, 3334], [1, 9999]);
const anyRule = (divideBy: DividingDimension): fc.Arbitrary<OwnerRule> =>
  fc
    .record({
      source: often(null, "default", "no such source"),
      workspace: often(null, WORKSPACE, OTHER, "no such workspace"),
      about: fc.oneof(
        fc.constantFrom(...IDS, "no such id").map((id) => ({ of: { dimension: divideBy, id } })),
        fc.constant({ of: { dimension: "deployment" as const, id: "d" } }),
        fc.constantFrom("chat*", "*b", "agent_50%", "agent*", "*", "chat_b").map((name) => ({ name })),
        fc.constantFrom("Team", "none such").map((key) => ({ tag: { key, value: null } })),
        fc.constantFrom("red", "blue").map((value) => ({ tag: { key: "Team", value } })),
        fc.constant({}),
      ),
      days: fc.oneof({ weight: 2, arbitrary: fc.constant([null, null] as const) }, fc.tuple(day, day)),
      shares: share,
      owners: fc.uniqueArray(fc.constantFrom("x", "y", "z", "w"), { minLength: 3, maxLength: 3 }),
      costCenter: fc.constantFrom(null, "cc"),
    })
    .map(({ source, workspace, about, days, shares, owners, costCenter }) => {
      const [from, to] = days;
      const isReversed = from !== null && to !== null && from >= to;
      const rule = { of: null, name: null, tag: null, ...about };
      const isFromTag = rule.tag !== null && rule.tag.value === null;
      return {
        line: 1,
        source,
        workspace,
        ...rule,
        from,
        to: isReversed ? null : to,
        shares: isFromTag
          ? [{ owner: null, costCenter, share: 10_000 }]
          : shares.map((part, n) => ({ owner: owners[n] as string, costCenter, share: part })),
      };
    });

interface Part {
  readonly day: string;
  readonly workspace: string;
  readonly dimension: string;
  readonly id: string;
}

function tagOf(dimension: string, id: string, at: number): string | undefined {
  if (dimension !== "project") return undefined;
  if (id === "b") return at < TAGGED_AT ? "red" : "blue";
  return id === "c" && at >= 10 && at < 20 ? "red" : undefined;
}

function shareOf(rules: readonly OwnerRule[], { day, workspace, dimension, id }: Part) {
  const at = Math.round((Date.parse(day) - Date.parse(dayOf(0))) / 86_400_000);
  const tag = tagOf(dimension, id, at);
  const rule = rules.find((one) => {
    if (one.source !== null && one.source !== "default") return false;
    if (one.workspace !== null && one.workspace !== workspace) return false;
    if ((one.from ?? "") > day || (one.to ?? "9999") <= day) return false;
    if (one.of !== null) return one.of.dimension === dimension && one.of.id === id;
    if (one.tag !== null) {
      return one.tag.key === "Team" && tag !== undefined && (one.tag.value ?? tag) === tag;
    }
    if (one.name === null) return true;
    const name = dimension === "deployment" ? undefined : NAMES[id]?.(at);
    if (name === undefined) return false;
    const [head = "", tail] = one.name.split("*");
    return tail === undefined ? name === head : name.startsWith(head) && name.endsWith(tail);
  });
  if (rule === undefined) return [{ owner: "(unallocated)", costCenter: "(none)", share: 10_000n }];
  return rule.shares.map((one) => ({
    owner: one.owner ?? (tag as string),
    costCenter: one.costCenter ?? "(none)",
    share: BigInt(one.share),
  }));
}

const unscaled = (text: string) => BigInt(text.replace(".", ""));

function exact(text: string): bigint {
  const [whole = "", fraction = ""] = text.split(".");
  return BigInt(whole + fraction.padEnd(14, "0"));
}

async function checkOwners(client: pg.Client, rules: readonly OwnerRule[], divideBy: DividingDimension) {
  const rowsOf = async (statement: string) => (await client.query<Record<string, string>>(statement)).rows;
  const column = `${divideBy}_id`;
  const whole = await rowsOf(
    `SELECT usage_date::text AS day, workspace_id AS workspace, traces::text FROM reporting.fct_usage_workspace_daily WHERE traces > 0`,
  );
  const ids = await rowsOf(
    `SELECT usage_date::text AS day, workspace_id AS workspace, ${column} AS id, traces::text
     FROM reporting.fct_usage_${divideBy}_daily WHERE traces > 0 AND ${column} <> '(none)'`,
  );
  const costs = await rowsOf(
    `SELECT usage_date::text AS day, workspace_id AS workspace, sku, currency,
            CASE WHEN dimension_id IN ('(none)', '(adjustment)') OR dimension_id IS NULL THEN '' ELSE dimension_id END AS id,
            sum(estimated_cost)::text AS cost
     FROM reporting_detail.fct_cost_by_id_daily WHERE group_by = '${divideBy}' AND measure = 'traces' GROUP BY 1, 2, 3, 4, 5
     UNION ALL
     SELECT usage_date::text, workspace_id, sku, currency,
            CASE WHEN dimension_id IN ('(none)', '(adjustment)') OR dimension_id IS NULL THEN '' ELSE 'd' END, sum(estimated_cost)::text
     FROM reporting_detail.fct_cost_by_id_daily WHERE group_by = 'deployment' GROUP BY 1, 2, 3, 4, 5`,
  );
  const loaded = new Set(whole.map(({ day, workspace }) => `${day} ${workspace}`));
  const expected = new Map<string, bigint>();
  const add = (part: Part, what: string, amount: bigint) => {
    for (const { owner, costCenter, share } of shareOf(rules, part)) {
      const key = [part.day, part.workspace, owner, costCenter, what].join(" ");
      expected.set(key, (expected.get(key) ?? 0n) + amount * share);
    }
  };
  for (const { day = "", workspace = "", traces = "0" } of whole) {
    add({ day, workspace, dimension: "", id: "" }, "traces", BigInt(traces));
  }
  for (const { day = "", workspace = "", id = "", traces = "0" } of ids) {
    if (!loaded.has(`${day} ${workspace}`)) continue;
    add({ day, workspace, dimension: divideBy, id }, "traces", BigInt(traces));
    add({ day, workspace, dimension: "", id: "" }, "traces", -BigInt(traces));
  }
  for (const { day = "", workspace = "", sku = "", currency = "", id = "", cost = "0" } of costs) {
    const dimension = id === "" ? "" : sku === "runs" ? "deployment" : divideBy;
    add({ day, workspace, dimension, id }, `${sku} ${currency}`, unscaled(cost));
  }
  const found = await rowsOf(
    `SELECT usage_date::text AS day, workspace_id AS workspace, owner, cost_center AS center, 'traces' AS what, traces::text AS amount
     FROM reporting.fct_usage_owner_daily WHERE traces IS NOT NULL
     UNION ALL
     SELECT usage_date::text, workspace_id, owner, cost_center, sku || ' ' || currency, estimated_cost::text
     FROM reporting.fct_cost_owner_daily`,
  );
  const actual = found.map(({ day, workspace, owner, center, what, amount = "0" }) => [
    [day, workspace, owner, center, what].join(" "),
    unscaled(amount),
  ]);
  const isSomething = ([key, amount]: readonly unknown[]) =>
    amount !== 0n || !String(key).endsWith(" traces");
  const sorted = (rows: readonly (readonly unknown[])[]) =>
    rows
      .filter(isSomething)
      .map(([key, amount]) => `${key} ${amount}`)
      .sort();
  expect(sorted(actual)).toEqual(sorted([...expected]));
  const wrong = await rowsOf(
    `SELECT * FROM (
       SELECT usage_date, workspace_id, sum(traces) AS owned FROM reporting.fct_usage_owner_daily GROUP BY 1, 2
     ) o FULL JOIN (SELECT usage_date, workspace_id, traces FROM reporting.fct_usage_workspace_daily WHERE traces > 0) w
     USING (usage_date, workspace_id) WHERE coalesce(owned, 0) <> coalesce(traces, 0)
     UNION ALL
     SELECT usage_date, workspace_id, owned, cost FROM (
       SELECT usage_date, workspace_id, sku, sum(estimated_cost) AS owned FROM reporting.fct_cost_owner_daily GROUP BY 1, 2, 3
     ) o FULL JOIN (
       SELECT usage_date, workspace_id, sku, sum(estimated_cost) AS cost FROM reporting.fct_cost_workspace_daily GROUP BY 1, 2, 3
     ) w USING (usage_date, workspace_id, sku) WHERE owned IS DISTINCT FROM cost`,
  );
  expect(wrong).toEqual([]);
  await checkFocus(client, divideBy);
  return actual.length;
}

/** Charges that are divided are the charges, to the last digit; an owner has in open months what its costs say, but for rounding. */
async function checkFocus(client: pg.Client, divideBy: DividingDimension) {
  const charge = `"x_SourceId", "x_BillingMonth", "x_UsageDate", "SubAccountId", "SkuId", "SkuPriceId", "ContractedUnitPrice", "ChargeClass"`;
  const sums = `${charge}, sum("PricingQuantity") AS quantity, sum("BilledCost")::numeric(38, 14) AS cost`;
  const { rows } = await client.query(
    `SELECT * FROM (
       (SELECT ${sums} FROM ${COST.table} GROUP BY ${charge} EXCEPT ALL SELECT ${sums} FROM ${BY_RESOURCE.table} GROUP BY ${charge})
       UNION ALL
       (SELECT ${sums} FROM ${BY_RESOURCE.table} GROUP BY ${charge} EXCEPT ALL SELECT ${sums} FROM ${COST.table} GROUP BY ${charge})
     ) t`,
  );
  expect(rows).toEqual([]);
  expect(await breachesOf(client, BY_RESOURCE)).toEqual([]);
  const types = await client.query(
    `SELECT DISTINCT "ResourceType" AS type FROM ${BY_RESOURCE.table} WHERE "ResourceType" IS NOT NULL`,
  );
  const known = divideBy === "project" ? ["Deployment", "Project"] : ["Deployment"];
  expect(known).toEqual(expect.arrayContaining(types.rows.map(({ type }) => type)));
  const differ = await client.query(
    `SELECT * FROM (
       SELECT usage_date, workspace_id, sku, owner, cost_center, sum(cost) AS cost FROM (
         SELECT usage_date, workspace_id, sku, owner, cost_center, estimated_cost AS cost
         FROM reporting.fct_cost_owner_daily
         WHERE usage_date >= (SELECT coalesce(max(month_start) + interval '1 month', '-infinity') FROM usage.close)
         UNION ALL
         SELECT "x_UsageDate", "SubAccountId", "SkuId", coalesce("Tags"::jsonb ->> 'usage-etl/owner', '(unallocated)'),
                coalesce("Tags"::jsonb ->> 'usage-etl/cost_center', '(none)'), -"BilledCost"
         FROM ${BY_RESOURCE.table}
         WHERE "x_UsageDate" >= (SELECT coalesce(max(month_start) + interval '1 month', '-infinity') FROM usage.close)
       ) t GROUP BY 1, 2, 3, 4, 5
     ) t
     -- Ids that have more than their workspace, as no server says, share it: their costs say more, and less than nothing of the rest.
     WHERE (usage_date, workspace_id, sku) NOT IN (SELECT usage_date, workspace_id, sku FROM usage.owned_cost WHERE quantity < 0)
       AND abs(cost) > 0.00000001 + 0.01 * (
         SELECT max(c.unit_price) FROM usage.charge c WHERE c.usage_date = t.usage_date AND c.sku = t.sku
       )`,
  );
  expect(differ.rows).toEqual([]);
}

async function checkBills(store: Store, client: pg.Client): Promise<number> {
  let divided = 0;
  for (const name of ["2026-03", "2026-04"]) {
    const month = monthNamed(name) as NonNullable<ReturnType<typeof monthNamed>>;
    const lines = await monthBill(store.db, { source: "default", monthStart: month.start });
    const owners = await monthBillByOwner(store.db, { source: "default", month, lines });
    const sums = new Map<string, bigint>();
    const add = (what: string, amount: string | null, sign: 1n | -1n) =>
      sums.set(what, (sums.get(what) ?? 0n) + sign * exact(amount ?? "0"));
    for (const { currency, cost } of lines) if (currency !== null) add(currency, cost, -1n);
    for (const { costs, traces } of owners) {
      for (const { currency, cost } of costs) add(currency, cost, 1n);
      add("traces", traces, 1n);
      divided++;
    }
    const { rows } = await client.query<{ traces: string }>(
      "SELECT sum(traces)::text AS traces FROM reporting.fct_usage_workspace_daily WHERE usage_date >= $1 AND usage_date < $2",
      [month.start, month.end],
    );
    add("traces", rows[0]?.traces ?? null, -1n);
    expect(
      [...sums].filter(([, difference]) => difference !== 0n),
      name,
    ).toEqual([]);
    const corrected = owners.flatMap(({ costs }) => costs.filter(({ correction }) => correction !== null));
    if (lines.every(({ line }) => line !== "correction")) expect(corrected).toEqual([]);
    else expect(corrected).not.toEqual([]);
    await checkCents(store, month);
    await checkWorkspaces(store, month, lines);
  }
  return divided;
}

const CENT = amountOf("0.01");

async function checkCents(store: Store, month: CalendarMonth): Promise<void> {
  const now = Date.parse("2026-06-01");
  const { bill, owners } = await billByOwner(store.db, {
    source: "default",
    dataStart: month.start,
    month,
    now,
  });
  const costs = owners.flatMap((one) => one.costs);
  for (const { currency, cost } of billTotals(bill.lines)) {
    const some = costs.filter((one) => one.currency === currency);
    const cents = some.reduce((sum, { rounded }) => sum + rounded, 0n);
    expect(cents, `${month.name} ${currency}`).toBe(roundedTo(currency, cost));
    for (const one of some) {
      const away = one.rounded - amountCut(one.cost);
      expect(away <= CENT && away >= -CENT, one.cost).toBe(true);
    }
  }
}

async function checkWorkspaces(
  store: Store,
  month: CalendarMonth,
  lines: readonly BillLine[],
): Promise<void> {
  const keyOf = (one: BillLine) =>
    [one.line, one.measure, one.sku, one.unitPrice, one.currency, one.fromQuantity, one.correctedMonth].join(
      " ",
    );
  const sumsOf = (some: readonly BillLine[]) => {
    const sums = new Map<string, bigint[]>();
    for (const one of some) {
      const [quantity = 0n, cost = 0n, unproved = 0n] = sums.get(keyOf(one)) ?? [];
      sums.set(keyOf(one), [
        quantity + exact(one.quantity ?? "0"),
        cost + exact(one.cost ?? "0"),
        unproved + exact(one.unprovedCost ?? "0"),
      ]);
    }
    return new Map([...sums].sort());
  };
  const divided = await chargesByWorkspace(store.db, { source: "default", monthStart: month.start });
  expect(divided.every(({ workspaceId }) => workspaceId !== null)).toBe(true);
  expect(sumsOf(divided)).toEqual(sumsOf(lines.filter(({ cost }) => cost !== null)));
}

async function amountsByMonth(client: pg.Client): Promise<Map<string, bigint>> {
  const { rows } = await client.query<{ key: string; amount: string }>(
    `SELECT concat_ws(' ', to_char(usage_date, 'YYYY-MM'), owner, cost_center, 'traces') AS key, sum(traces)::text AS amount
     FROM reporting.fct_usage_owner_daily WHERE traces IS NOT NULL GROUP BY 1
     UNION ALL
     SELECT concat_ws(' ', to_char(usage_date, 'YYYY-MM'), owner, cost_center, currency), sum(estimated_cost)::text
     FROM reporting.fct_cost_owner_daily GROUP BY 1`,
  );
  return new Map(rows.map(({ key, amount }) => [key, exact(amount)]));
}

/** What a plan says must be the difference of the views, and all of it. */
function expectDifference(
  changes: readonly OwnerChange[],
  { before, after }: Readonly<Record<"before" | "after", ReadonlyMap<string, bigint>>>,
): void {
  const expected = [...new Set([...before.keys(), ...after.keys()])].flatMap((key) => {
    const [had, has] = [before.get(key) ?? 0n, after.get(key) ?? 0n];
    return had === has ? [] : [`${key}: ${had} ${has} ${has - had}`];
  });
  const found = changes.map((one) => {
    const key = [one.month, one.owner, one.costCenter, one.currency ?? "traces"].join(" ");
    return `${key}: ${exact(one.before)} ${exact(one.after)} ${exact(one.change)}`;
  });
  expect(found.sort()).toEqual(expected.sort());
}

const SEED = seed();

test(`owners have what the first rule gives them, and together all there is [seed ${SEED}]`, async () => {
  const bench = await setupSource();
  const { store, sourceId } = bench;
  const client = await connectPlain(bench.url);
  let seen = 0;
  const drawn = fc.constantFrom("project" as const, "user" as const).chain((divideBy) =>
    fc.record({
      divideBy: fc.constant(divideBy),
      usage: anyUsage,
      prices: anyPrices,
      isClosed: fc.boolean(),
      leavesOut: fc.boolean(),
      lost: fc.nat(),
      rules: fc.array(fc.array(anyRule(divideBy), { maxLength: 8 }), { minLength: 3, maxLength: 3 }),
    }),
  );
  await fc.assert(
    fc.asyncProperty(drawn, async ({ divideBy, usage, prices, isClosed, leavesOut, lost, rules }) => {
      await client.query(
        "DELETE FROM usage.closed_charge; DELETE FROM usage.closed_workspace; DELETE FROM usage.close; DELETE FROM usage.resource_tag; DELETE FROM usage.entity_name",
      );
      await clearUsage(client);
      const used = Object.keys(usage[WORKSPACE] ?? {});
      const lostDays = used
        .slice(lost % Math.max(used.length, 1))
        .slice(0, 1)
        .map(Number);
      await createMonths(bench, usage, { [WORKSPACE]: lostDays });
      const records: IdUsage = Object.entries(usage).flatMap(([workspace, days]) =>
        Object.entries(days).flatMap(([at, traces]) =>
          IDS.map((id, n) => [workspace, Number(at), id, Math.floor((traces * (n + 1)) / 7)] as const),
        ),
      );
      const fifths = Array.from({ length: 12 }, (_, at) => at * 5);
      await createDimension(bench, divideBy, {
        workspaces: Object.keys(usage),
        records,
        leftOut: { [OTHER]: fifths },
      });
      const window = windowOf("day", dayOf(0), dayOf(DAYS));
      for (const [groupBy, id] of [
        ["workspace", WORKSPACE],
        ["project", "d"],
      ] as const) {
        const rows = [3, 12, 36].map((at) => [dayOf(at), id, [4, 3, groupBy === "project" ? 2 : 5]] as const);
        await loadDeploymentRows(store, { sourceId, workspaceId: WORKSPACE, groupBy, window, rows });
      }
      await client.query(
        `INSERT INTO usage.entity_name
         SELECT e.entity_id, n.number, '${dayOf(RENAMED_AT)}T12:00Z', n.name
         FROM usage.entity e JOIN (VALUES ('a', 1, 'chat-old'), ('a', 2, 'agent_50%'), ('b', 1, 'chat-b'), ('c', 1, 'other')) n (id, number, name)
           ON n.id = e.external_id AND e.dimension = '${divideBy}'`,
      );
      await client.query(
        `INSERT INTO usage.resource_tag (workspace_id, dimension, external_id, tag_key, tag_value, valid_from, valid_to)
         SELECT w.entity_id, 'project', t.id, 'Team', t.value, t.starts::date, t.ends::date
         FROM usage.workspace w, (VALUES ('b', 'red', '1900-01-01', '${dayOf(TAGGED_AT)}'), ('b', 'blue', '${dayOf(TAGGED_AT)}', NULL),
           ('c', 'red', '${dayOf(10)}', '${dayOf(20)}')) t (id, value, starts, ends)`,
      );
      await createPrices(store, [...prices, { sku: "runs", measure: "agent_runs", unitPrice: "0.37" }]);
      if (isClosed) {
        await client.query(CLOSE_MARCH);
        if (leavesOut) {
          const isOther = `workspace_id = (SELECT entity_id FROM usage.entity WHERE dimension = 'workspace' AND external_id = '${OTHER}')`;
          await client.query(`DELETE FROM usage.closed_charge WHERE ${isOther}`);
          await client.query(`UPDATE usage.closed_workspace SET is_left_out = true WHERE ${isOther}`);
        }
        await client.query(`UPDATE usage.dated_record SET traces = traces + 3; ${ALL_DUE}`);
      }
      for (const one of rules) {
        const owners = { content: "", divideBy, rules: one, budgets: [], routes: [] };
        const before = await client.query("SELECT * FROM usage.owner_rule ORDER BY 1");
        const had = await amountsByMonth(client);
        const plan = await applyOwners(store, { name: "test", owners, by: undefined });
        expect((await client.query("SELECT * FROM usage.owner_rule ORDER BY 1")).rows).toEqual(before.rows);
        const by = { name: "test", role: "operator", via: "command" } as const;
        expect(await applyOwners(store, { name: "test", owners, by })).toEqual(plan);
        expectDifference(plan.changes, { before: had, after: await amountsByMonth(client) });
        for (const { isClosed: closed, month } of plan.changes) {
          expect(closed).toBe(isClosed && month === "2026-03");
        }
        seen += await checkOwners(client, one, divideBy);
        seen += await checkBills(store, client);
        expect((await applyOwners(store, { name: "test", owners, by })).changes).toEqual([]);
      }
    }),
    { seed: SEED, numRuns: times(1), endOnFailure: true },
  );
  // Three days of deployments have an owner by each of the three lists of rules, however little else is drawn.
  expect(seen).toBeGreaterThanOrEqual(9);
  await store.transaction(({ db }) =>
    replaceOwners(db, { content: "", divideBy: "project", rules: [], budgets: [], routes: [] }),
  );
});

test("a deployment and a sandbox have the owner of their id, whatever divides traces", async () => {
  const bench = await setupSource();
  const client = await connectPlain(bench.url);
  const of = { sourceId: bench.sourceId, workspaceId: WORKSPACE };
  const window = windowOf("day", dayOf(0), dayOf(1));
  await createMonths(bench, { [WORKSPACE]: { 0: 8 } });
  for (const meter of ["deployments", "sandboxes"] as const) {
    for (const [groupBy, id] of [
      ["workspace", WORKSPACE],
      ["project", meter],
    ] as const) {
      const rows = [[dayOf(0), id, [1_000_000, 2_000_000, 0]]] as const;
      await loadDeploymentRows(bench.store, { ...of, meter, groupBy, window, rows });
    }
  }
  await createPrices(bench.store, [
    { sku: "runs", measure: "agent_runs", unitPrice: "1" },
    { sku: "units", measure: "lcu", unitPrice: "1" },
  ]);
  for (const divideBy of DIVIDING_DIMENSIONS) {
    await setOwners(
      bench.store,
      `divide_by: ${divideBy}\nrules: [{ deployment: deployments, owner: agents }, { sandbox: sandboxes, owner: labs }]`,
    );
    const { rows } = await client.query("SELECT sku, owner FROM reporting.fct_cost_owner_daily ORDER BY 1");
    expect(rows, divideBy).toEqual([
      { sku: "runs", owner: "agents" },
      { sku: "units", owner: "labs" },
    ]);
  }
});
