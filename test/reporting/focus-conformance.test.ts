import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { migrate } from "../../src/store/db/migrate.ts";
import { enterPrices } from "../support/charges.ts";
import { breachesOf, type FocusCheck, factsOf } from "../support/focus.ts";
import { addSource, WORKSPACES } from "../support/reporting.ts";
import { COST_1_2, COST_1_4, fill, loadDay, loadMonth, PERIOD_1_4, setup } from "./focus/bench.ts";

const [WORKSPACE] = WORKSPACES;
/** The view of 1.2 has these although their condition does not hold. */
const FILLED_1_2 = ["BillingAccountType", "InvoiceId"];

const columnsOf1_4 = factsOf("1.4", "CostAndUsage").map(({ column }) => column);
const columnsOf1_2 = factsOf("1.2", "CostAndUsage").map(({ column }) => column);

/** Conditional and recommended columns by the table of docs/focus.md, which says whether their condition holds. */
function conditional(...holds: ("yes" | "filled" | "no")[]): string[] {
  const text = readFileSync(new URL("../../docs/focus.md", import.meta.url), "utf8");
  return [...text.matchAll(/^\|[^|]+\|(?<columns> `[^|]+)\| (?<holds>yes|filled|no) \|/gm)]
    .filter(({ groups }) => holds.some((one) => one === groups?.holds))
    .flatMap(({ groups }) => [...(groups?.columns ?? "").matchAll(/`(\w+)`/g)].map(([, name = ""]) => name));
}

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
    await enterPrices(bench.store, [{ unitPrice: "1" }]);
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

test("every conditional column is in docs/focus.md, and is null exactly where its condition does not hold", async () => {
  const facts = factsOf("1.4", "CostAndUsage").filter(({ level }) => level !== "Mandatory");
  expect(conditional("yes", "filled", "no").sort()).toEqual(facts.map(({ column }) => column).sort());
  const bench = await setup();
  await fill(bench);
  for (const [table, columns] of [
    [COST_1_4.table, columnsOf1_4],
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
    await enterPrices(bench.store, [{ unitPrice: "2" }]);
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
