import { existsSync, readFileSync } from "node:fs";
import type pg from "pg";
import { describe, expect, test } from "vitest";
import { GROUPINGS } from "../../src/domain/usage/record.ts";
import { importPrices } from "../../src/pipeline/import-prices.ts";
import { migrate } from "../../src/store/db/migrate.ts";
import { closeMonth } from "../../src/store/report/month-close.ts";
import { breachesOf, type FocusCheck, factsOf } from "../support/focus.ts";
import { addSource, connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { type AnswerRow, loadRows, windowOf } from "../support/store.ts";

const [WORKSPACE, OTHER] = WORKSPACES;
const MONTHS = ["2026-03-01", "2026-04-01", "2026-05-01", "2026-06-01"] as const;

const COST_1_2 = {
  ...{ table: "reporting.focus_cost_usage_estimated", version: "1.2", dataset: "CostAndUsage" },
} as const satisfies FocusCheck;
const COST_1_4 = {
  ...{ table: "reporting.focus_1_4_cost_and_usage", version: "1.4", dataset: "CostAndUsage" },
} as const satisfies FocusCheck;
const PERIOD_1_4 = {
  ...{ table: "reporting.focus_1_4_billing_period", version: "1.4", dataset: "BillingPeriod" },
} as const satisfies FocusCheck;

/** The view of 1.2 has these although their condition does not hold. */
const FILLED_1_2 = ["BillingAccountType", "InvoiceId"];

type Bench = Awaited<ReturnType<typeof setup>>;

async function setup() {
  const bench = await setupSource();
  return {
    ...bench,
    owner: await connectPlain(bench.url),
    reader: await connectPlain(bench.url, "usage_reader"),
  };
}

/** A month of a workspace by the workspace; other dimensions are loaded empty, so that the month can be closed. */
async function loadMonth(bench: Bench, month: number, workspaceId: string, rows: readonly AnswerRow[]) {
  const window = windowOf("day", MONTHS[month] ?? "", MONTHS[month + 1] ?? "");
  const { store, sourceId } = bench;
  for (const groupBy of GROUPINGS) {
    const given = groupBy === "workspace" ? rows : [];
    await loadRows(store, { sourceId, workspaceId, groupBy, window, rows: given });
  }
}

/** One day of a workspace anew. */
async function loadDay(
  { store, sourceId }: Bench,
  day: string,
  workspaceId: string,
  traces: number,
  name?: string,
) {
  const next = new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);
  const row: AnswerRow = name === undefined ? [day, workspaceId, traces] : [day, workspaceId, traces, name];
  await loadRows(store, {
    ...{ sourceId, workspaceId, groupBy: "workspace", window: windowOf("day", day, next) },
    rows: [row],
  });
}

interface GivenPrice {
  readonly unitPrice: string;
  readonly sku?: string;
  readonly currency?: string;
}

async function enterPrices({ store }: Bench, given: readonly GivenPrice[]) {
  const lines = given.map(({ sku = "traces", currency = "USD", unitPrice }, at) => ({
    where: `line ${at}`,
    price: {
      sku,
      unitPrice,
      currency,
      validFrom: "2026-01-01",
      validTo: null,
      source: null,
      workspace: null,
    },
  }));
  await importPrices(store, { file: "prices", lines, replace: true });
}

/** Marks a month as reconciled, as a reconciliation without differences does, and closes it. */
async function close({ store, sourceId, owner }: Bench, month: number, without: readonly string[] = []) {
  await owner.query(
    `INSERT INTO usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
     SELECT scope_id, $1::date, $2::date, 1000, clock_timestamp() FROM usage.scope WHERE stride = 'day'`,
    [MONTHS[month], MONTHS[month + 1]],
  );
  const monthStart = MONTHS[month] ?? "";
  expect(await closeMonth(store, { sourceId, monthStart, settleAfterMs: 0, without })).toMatchObject({
    state: "closed",
  });
}

const columnsOf1_2 = factsOf("1.2", "CostAndUsage").map(({ column }) => column);

/** Conditional and recommended columns by the table of docs/focus.md, which says whether their condition holds. */
function conditional(...holds: ("yes" | "filled" | "no")[]): string[] {
  const text = readFileSync(new URL("../../docs/focus.md", import.meta.url), "utf8");
  return [...text.matchAll(/^\|[^|]+\|(?<columns> `[^|]+)\| (?<holds>yes|filled|no) \|/gm)]
    .filter(({ groups }) => holds.some((one) => one === groups?.holds))
    .flatMap(({ groups }) => [...(groups?.columns ?? "").matchAll(/`(\w+)`/g)].map(([, name = ""]) => name));
}

const charges = async (client: pg.Client) =>
  (
    await client.query<Record<string, string>>(`
      SELECT to_char("x_BillingMonth", 'YYYY-MM') AS month, "x_UsageDate" AS day, right("SubAccountId", 1) AS of,
             coalesce("ChargeClass", '-') AS class, "PricingQuantity" AS traces,
             trim_scale("ContractedUnitPrice") AS price, trim_scale("BilledCost") AS cost
      FROM reporting.focus_1_4_cost_and_usage ORDER BY "x_BillingMonth", 2, 3, "ContractedUnitPrice"`)
  ).rows.map((row) => Object.values(row).join(" "));

describe("FOCUS 1.2", () => {
  const expected = conditional("yes").filter((column) => columnsOf1_2.includes(column));

  test("the view breaks nothing that a strict check reads, with tiers, renames and two currencies", async () => {
    const bench = await setup();
    await fill(bench);
    expect(await breachesOf(bench.reader, { ...COST_1_2, expected })).toEqual([]);
    expect((await bench.reader.query(`SELECT FROM ${COST_1_2.table}`)).rowCount).toBeGreaterThan(10);
  });

  test("the columns of 1.3 are renamed in the view of an earlier release, and views of customers on them go on working", async () => {
    const bench = await setup();
    await fill(bench);
    await bench.owner.query(`
      ALTER VIEW ${COST_1_2.table} RENAME COLUMN "x_ServiceProviderName" TO "ServiceProviderName";
      ALTER VIEW ${COST_1_2.table} RENAME COLUMN "x_HostProviderName" TO "HostProviderName";
      CREATE VIEW public.mine AS SELECT "ServiceProviderName" AS provider, "SubAccountId" FROM ${COST_1_2.table}`);
    for (const time of ["first", "again"]) {
      await migrate(bench.store);
      expect(await breachesOf(bench.reader, { ...COST_1_2, expected }), time).toEqual([]);
      const { rows } = await bench.owner.query("SELECT DISTINCT provider FROM public.mine");
      expect(rows, time).toEqual([{ provider: "billing.platform.test" }]);
    }
  });

  test("workspaces are named as on the day, whatever they are called now", async () => {
    const bench = await setup();
    await enterPrices(bench, [{ unitPrice: "1" }]);
    await loadDay(bench, "2026-03-01", WORKSPACE, 1, "first");
    await loadDay(bench, "2026-03-03", WORKSPACE, 1, "first");
    await loadDay(bench, "2026-03-04", WORKSPACE, 1, "second");
    await loadDay(bench, "2026-03-06", WORKSPACE, 1, "first");
    // A later fetch of days that had another name.
    await loadDay(bench, "2026-03-03", WORKSPACE, 2, "third");
    await loadDay(bench, "2026-03-07", WORKSPACE, 2, "third");
    const names = async (view: string) =>
      (
        await bench.reader.query(`SELECT right("x_UsageDate"::text, 1) || ' ' || "SubAccountName" AS named,
          "ChargeDescription" LIKE '%of ' || "SubAccountName" || ' on%' AS told FROM ${view} ORDER BY 1`)
      ).rows.map(({ named, told }) => `${named} ${told}`);
    const asOnTheDay = ["1 first t", "3 first t", "4 second t", "6 first t", "7 third t"];
    expect(await names(COST_1_2.table)).toEqual(asOnTheDay);
    expect(await names(COST_1_4.table)).toEqual(asOnTheDay);
  });

  test("providers are those of the settings, and by default the host of the billing API", async () => {
    const bench = await setup();
    await fill(bench);
    const another = { slug: "another", workspaceIds: ["00000000-0000-4000-8000-000000000003"] };
    const sourceId = await addSource(bench.store, {
      ...another,
      ...{ providerName: "Agents Inc", invoiceIssuerName: "Market" },
    });
    await loadDay({ ...bench, sourceId }, "2026-03-01", another.workspaceIds[0] ?? "", 1);
    const { rows } = await bench.reader.query(`
      SELECT DISTINCT "x_SourceId", "ProviderName", "PublisherName", "InvoiceIssuerName", "x_ServiceProviderName", "x_HostProviderName"
      FROM ${COST_1_2.table} ORDER BY 1`);
    const host = "billing.platform.test";
    expect(rows.map((row) => Object.values(row))).toEqual([
      ["another", "Agents Inc", "Agents Inc", "Market", "Agents Inc", "Agents Inc"],
      ["default", host, host, host, host, host],
    ]);
    const { rows: periods } = await bench.reader.query(
      `SELECT DISTINCT "InvoiceIssuerName" AS issuer FROM ${PERIOD_1_4.table} ORDER BY 1`,
    );
    expect(periods.map(({ issuer }) => issuer).sort()).toEqual(["Market", host]);
  });
});

/** Prices with tiers and in two currencies, counts at the limit of floats, a free SKU, two months. */
async function fill(bench: Bench) {
  await enterPrices(bench, [
    { unitPrice: "99999999.9999999999" },
    { unitPrice: "0", sku: "free" },
    { unitPrice: "0.25", sku: "tiered", currency: "EUR" },
  ]);
  await bench.owner.query(
    "INSERT INTO usage.price_tier SELECT price_id, 3, 0.125 FROM usage.price WHERE currency = 'EUR'",
  );
  await loadMonth(bench, 0, WORKSPACE, [
    ["2026-03-01", WORKSPACE, 5, "before"],
    ["2026-03-05", WORKSPACE, 9_007_199_254_740_900, "after"],
  ]);
  await loadMonth(bench, 0, OTHER, [["2026-03-02", OTHER, 2]]);
  await loadMonth(bench, 1, WORKSPACE, [["2026-04-30", WORKSPACE, 4, "after"]]);
  await loadMonth(bench, 1, OTHER, []);
}

describe("FOCUS 1.4", () => {
  const everything = factsOf("1.4", "CostAndUsage").map(({ column }) => column);

  test("the facts are those of the public model", ({ skip }) => {
    const [own, shared] = ["focus/1.4.csv", "../../../shared/focus-1.4.csv"].map(
      (path) => new URL(path, import.meta.url),
    );
    if (own === undefined || shared === undefined || !existsSync(shared))
      return skip("no copy beside the project");
    expect(readFileSync(own, "utf8")).toBe(readFileSync(shared, "utf8"));
  });

  test("both views have every column of the model and break nothing, open, closed and corrected", async () => {
    const bench = await setup();
    await fill(bench);
    const check = async () => [
      ...(await breachesOf(bench.reader, { ...COST_1_4, expected: everything })),
      ...(await breachesOf(bench.reader, PERIOD_1_4)),
    ];
    expect(everything).toHaveLength(65);
    expect(await check()).toEqual([]);
    await close(bench, 0);
    await loadDay(bench, "2026-03-01", WORKSPACE, 3, "before");
    expect(await check()).toEqual([]);
    const { rows } = await bench.reader.query(
      `SELECT array_agg(attname::text ORDER BY attnum) AS names FROM pg_attribute WHERE attrelid = $1::regclass AND attname !~ '^x_'`,
      [COST_1_4.table],
    );
    expect(rows[0].names).toBe(`{${everything.join(",")}}`);
  });

  test("every conditional column is in docs/focus.md, and is null exactly where its condition does not hold", async () => {
    const facts = factsOf("1.4", "CostAndUsage").filter(({ level }) => level !== "Mandatory");
    expect(conditional("yes", "filled", "no").sort()).toEqual(facts.map(({ column }) => column).sort());
    const bench = await setup();
    await fill(bench);
    for (const [table, columns] of [
      [COST_1_4.table, everything],
      [
        COST_1_2.table,
        columnsOf1_2.filter(
          (column) => !conditional("no", "filled").includes(column) || FILLED_1_2.includes(column),
        ),
      ],
    ] as const) {
      const counts = columns.map((column) => `count("${column}")::integer AS "${column}"`);
      const { rows } = await bench.reader.query<Record<string, string>>(
        `SELECT ${counts.join(", ")} FROM ${table}`,
      );
      const nulls = columns.filter((column) => rows[0]?.[column] === "0");
      const expected = [...conditional("no"), "ChargeClass"].filter((column) => columns.includes(column));
      expect(nulls.sort(), table).toEqual(expected.sort());
    }
  });

  test("a closed month keeps its charges; what changes later is a correction in the first open month", async () => {
    const bench = await setup();
    await enterPrices(bench, [{ unitPrice: "2" }]);
    await loadMonth(bench, 0, WORKSPACE, [
      ["2026-03-01", WORKSPACE, 5],
      ["2026-03-02", WORKSPACE, 7],
    ]);
    await loadMonth(bench, 0, OTHER, [["2026-03-01", OTHER, 1]]);
    await loadMonth(bench, 1, WORKSPACE, [["2026-04-01", WORKSPACE, 10]]);
    await loadMonth(bench, 1, OTHER, []);
    const march = [
      "2026-03 2026-03-01 1 - 5 2 10",
      "2026-03 2026-03-01 2 - 1 2 2",
      "2026-03 2026-03-02 1 - 7 2 14",
    ];
    expect(await charges(bench.reader)).toEqual([...march, "2026-04 2026-04-01 1 - 10 2 20"]);

    await close(bench, 0);
    expect(await charges(bench.reader)).toEqual([...march, "2026-04 2026-04-01 1 - 10 2 20"]);
    await loadDay(bench, "2026-03-01", WORKSPACE, 4);
    await loadDay(bench, "2026-03-03", OTHER, 6);
    const april = [
      "2026-04 2026-03-01 1 Correction -1 2 -2",
      "2026-04 2026-03-03 2 Correction 6 2 12",
      "2026-04 2026-04-01 1 - 10 2 20",
    ];
    expect(await charges(bench.reader)).toEqual([...march, ...april]);
    expect(await conservation(bench.reader)).toEqual([]);

    // A closed month keeps the corrections too: what comes after goes to the next one.
    await close(bench, 1);
    expect(await charges(bench.reader)).toEqual([...march, ...april]);
    await loadDay(bench, "2026-03-03", OTHER, 5);
    await enterPrices(bench, [{ unitPrice: "3" }]);
    const may = [
      "2026-05 2026-03-01 1 Correction -4 2 -8",
      "2026-05 2026-03-01 1 Correction 4 3 12",
      "2026-05 2026-03-01 2 Correction -1 2 -2",
      "2026-05 2026-03-01 2 Correction 1 3 3",
      "2026-05 2026-03-02 1 Correction -7 2 -14",
      "2026-05 2026-03-02 1 Correction 7 3 21",
      "2026-05 2026-03-03 2 Correction -6 2 -12",
      "2026-05 2026-03-03 2 Correction 5 3 15",
      "2026-05 2026-04-01 1 Correction -10 2 -20",
      "2026-05 2026-04-01 1 Correction 10 3 30",
    ];
    expect(await charges(bench.reader)).toEqual([...march, ...april, ...may]);
    expect(await conservation(bench.reader)).toEqual([]);
    expect(await breachesOf(bench.reader, { ...COST_1_4, expected: everything })).toEqual([]);
    // Importing the same amount anew corrects nothing.
    await enterPrices(bench, []);
    await enterPrices(bench, [{ unitPrice: "2" }]);
    expect((await charges(bench.reader)).filter((line) => line.startsWith("2026-05"))).toEqual([
      "2026-05 2026-03-03 2 Correction -1 2 -2",
    ]);
    const { rows } = await bench.reader.query(
      `SELECT to_char("x_BillingMonth", 'MM') || ' ' || "BillingPeriodStatus" || ' ' || "x_SourcesClosed" AS period
       FROM ${PERIOD_1_4.table} WHERE "x_BillingMonth" < '2026-06-01' ORDER BY 1`,
    );
    expect(rows.map(({ period }) => period)).toEqual(["03 Closed 1", "04 Closed 1", "05 Open 0"]);
  });

  test("what a close left out is charged in the next month; a month closed by an earlier release stays open", async () => {
    const bench = await setup();
    await enterPrices(bench, [{ unitPrice: "2" }]);
    await loadMonth(bench, 0, WORKSPACE, [["2026-03-01", WORKSPACE, 5]]);
    await loadMonth(bench, 0, OTHER, [["2026-03-01", OTHER, 1]]);
    await close(bench, 0, [OTHER]);
    expect(await charges(bench.reader)).toEqual([
      "2026-03 2026-03-01 1 - 5 2 10",
      "2026-04 2026-03-01 2 Correction 1 2 2",
    ]);
    await bench.owner.query("UPDATE usage.month_close SET keeps_charges = false");
    expect(await charges(bench.reader)).toEqual([
      "2026-03 2026-03-01 1 - 5 2 10",
      "2026-03 2026-03-01 2 - 1 2 2",
    ]);
    expect(await conservation(bench.reader)).toEqual([]);
    const { rows } = await bench.reader.query(
      `SELECT DISTINCT "BillingPeriodStatus" AS status FROM ${PERIOD_1_4.table}`,
    );
    expect(rows).toEqual([{ status: "Open" }]);
  });
});

/** Where the charges of all billing months are not those of today, and periods that charges have and the dataset lacks. */
async function conservation(client: pg.Client) {
  const { rows } = await client.query(`
    SELECT "x_SourceId", "x_UsageDate", "SubAccountId", "SkuId", "BillingCurrency", sum(cost) AS difference
    FROM (
      SELECT "x_SourceId", "x_UsageDate", "SubAccountId", "SkuId", "BillingCurrency", "BilledCost" AS cost
      FROM ${COST_1_4.table}
      UNION ALL
      SELECT "x_SourceId", "x_UsageDate", "SubAccountId", "SkuId", "BillingCurrency", -"BilledCost" FROM ${COST_1_2.table}
    ) t
    GROUP BY 1, 2, 3, 4, 5 HAVING sum(cost) <> 0
    UNION ALL
    SELECT "InvoiceIssuerName", "x_BillingMonth", NULL, NULL, NULL, NULL
    FROM ${COST_1_4.table} c
    WHERE NOT EXISTS (
      SELECT FROM ${PERIOD_1_4.table} p
      WHERE p."BillingPeriodStart" = c."BillingPeriodStart" AND p."InvoiceIssuerName" = c."InvoiceIssuerName"
    )`);
  return rows;
}

describe("the check", () => {
  const planted: readonly [string, FocusCheck, string, string][] = [
    [
      "an unknown category",
      COST_1_2,
      `'Meter' AS "ChargeCategory"`,
      "ChargeCategory has an allowed value: 2 rows do not",
    ],
    [
      "a null in a mandatory column",
      COST_1_4,
      `NULLIF("BilledCost", "BilledCost") AS "BilledCost"`,
      "BilledCost has a value: 2 rows do not",
    ],
    [
      "a column of 1.3",
      COST_1_2,
      `'x' AS "HostProviderName"`,
      "HostProviderName is not of FOCUS 1.2 and does not begin with x_",
    ],
    ["a float", COST_1_4, `"ListCost"::float8 AS "ListCost"`, "ListCost is double precision"],
    [
      "an empty id",
      COST_1_4,
      `''::text AS "SubAccountId"`,
      "SubAccountId is not an empty text: 2 rows do not",
    ],
    [
      "a currency in words",
      COST_1_4,
      `'euro' AS "BillingCurrency"`,
      "BillingCurrency is a code of ISO 4217: 2 rows do not",
    ],
    ["an array of tags", COST_1_4, `'[]' AS "Tags"`, "Tags is a JSON object: 2 rows do not"],
    [
      "nested details",
      COST_1_4,
      `'{"x_A": {}}' AS "SkuPriceDetails"`,
      "SkuPriceDetails has plain values: 2 rows do not",
    ],
    [
      "text that is no JSON",
      COST_1_2,
      `'tier 1' AS "SkuPriceDetails"`,
      "the rows cannot be read: invalid input syntax for type json",
    ],
    [
      "a cost that is not price x quantity",
      COST_1_2,
      `"ListCost" + 1 AS "ListCost"`,
      "ListCost is ListUnitPrice x PricingQuantity: 2 rows do not",
    ],
    [
      "a third status",
      PERIOD_1_4,
      `'Ended' AS "BillingPeriodStatus"`,
      "BillingPeriodStatus has an allowed value",
    ],
  ];

  test("names each planted fault", async () => {
    const bench = await setup();
    await enterPrices(bench, [{ unitPrice: "2" }]);
    await loadMonth(bench, 0, WORKSPACE, [
      ["2026-03-01", WORKSPACE, 5],
      ["2026-03-02", WORKSPACE, 6],
    ]);
    for (const [fault, check, column, said] of planted) {
      const name = /"(\w+)"$/.exec(column)?.[1];
      const { rows } = await bench.owner.query<{ columns: string }>(
        `SELECT string_agg(quote_ident(attname), ', ') AS columns FROM pg_attribute
         WHERE attrelid = $1::regclass AND attnum > 0 AND attname <> $2`,
        [check.table, name],
      );
      await bench.owner.query(
        `DROP VIEW IF EXISTS pg_temp.planted; CREATE TEMP VIEW planted AS SELECT ${rows[0]?.columns}, ${column} FROM ${check.table}`,
      );
      expect(await breachesOf(bench.owner, { ...check, table: "pg_temp.planted" }), fault).toContainEqual(
        expect.stringContaining(said),
      );
    }
    await bench.owner.query(
      `DROP VIEW planted; CREATE TEMP VIEW planted AS SELECT "BilledCost" FROM ${COST_1_2.table}`,
    );
    expect(await breachesOf(bench.owner, { ...COST_1_2, table: "pg_temp.planted" })).toContain(
      "ProviderName lacks",
    );
  });
});
