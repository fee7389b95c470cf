import { readFileSync } from "node:fs";
import { parse } from "csv-parse/sync";
import type pg from "pg";

interface Fact {
  readonly column: string;
  readonly level: "Mandatory" | "Conditional" | "Recommended";
  readonly type: "String" | "Decimal" | "Date/Time" | "JSON";
  readonly format: string;
  readonly nullsAllowed: boolean;
  readonly allowed: readonly string[];
}

type FocusDataset = "CostAndUsage" | "BillingPeriod";

const MODEL = new URL("../reporting/focus/1.4.csv", import.meta.url);

export function factsOf(dataset: FocusDataset): Fact[] {
  const rows: Record<string, string>[] = parse(readFileSync(MODEL), { columns: true });
  return rows
    .filter((row) => row.dataset === dataset)
    .map((row) => {
      const allowed = row.allowed_values === "" ? [] : (row.allowed_values ?? "").split("|");
      return { ...row, nullsAllowed: row.nulls_allowed === "true", allowed } as unknown as Fact;
    });
}

const SQL_TYPES = {
  String: "text",
  Decimal: "numeric",
  "Date/Time": "timestamp with time zone",
  JSON: "text",
} as const;

export interface FocusCheck {
  readonly table: string;
  readonly dataset: FocusDataset;
  /** Conditional and recommended columns that must be there, because their condition holds. */
  readonly expected?: readonly string[];
}

export async function breachesOf(client: pg.ClientBase, check: FocusCheck): Promise<string[]> {
  const { rows } = await client.query<{ name: string; type: string }>(
    `SELECT attname AS name, format_type(atttypid, NULL) AS type FROM pg_attribute
     WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped`,
    [check.table],
  );
  const types = new Map(rows.map(({ name, type }) => [name, type]));
  return [...breachesOfColumns(types, check), ...(await breachesOfRows(client, types, check))];
}

function breachesOfColumns(
  types: ReadonlyMap<string, string>,
  { dataset, expected = [] }: FocusCheck,
): string[] {
  const facts = factsOf(dataset);
  const isWanted = ({ column, level }: Fact) => level === "Mandatory" || expected.includes(column);
  return [
    ...facts
      .filter((fact) => isWanted(fact) && !types.has(fact.column))
      .map(({ column }) => `${column} lacks`),
    ...[...types.keys()]
      .filter((name) => !facts.some(({ column }) => column === name) && !/^x_([A-Z][a-z0-9]*)+$/.test(name))
      .map((name) => `${name} is not of FOCUS and does not begin with x_`),
    ...[...types.keys()].filter((name) => name.length > 50).map((name) => `${name} is too long`),
    ...facts
      .filter(({ column, type }) => types.has(column) && types.get(column) !== SQL_TYPES[type])
      .map(({ column }) => `${column} is ${types.get(column)}`),
  ];
}

async function breachesOfRows(
  client: pg.ClientBase,
  types: ReadonlyMap<string, string>,
  { table, dataset }: FocusCheck,
): Promise<string[]> {
  const facts = factsOf(dataset).filter(({ column }) => types.has(column));
  const rules = Object.assign({}, ...facts.map(rulesOf)) as Record<string, string>;
  if (dataset === "CostAndUsage") Object.assign(rules, COST_RULES);
  if (dataset === "BillingPeriod") Object.assign(rules, PERIOD_RULES);
  const usable = Object.entries(rules).filter(([, breaks]) =>
    [...breaks.matchAll(/"(\w+)"/g)].every(([, name = ""]) => types.has(name)),
  );
  const counts = usable.map(([, breaks], at) => `count(*) FILTER (WHERE ${breaks})::integer AS rule_${at}`);
  try {
    const { rows } = await client.query(`SELECT ${counts.join(", ")} FROM ${table}`);
    return usable.flatMap(([rule], at) => {
      const broken = Number(rows[0]?.[`rule_${at}`]);
      return broken === 0 ? [] : [`${rule}: ${broken} rows do not`];
    });
  } catch (error) {
    return [`the rows cannot be read: ${(error as Error).message}`];
  }
}

function rulesOf({ column, type, format, nullsAllowed, allowed }: Fact): Record<string, string> {
  const name = `"${column}"`;
  const list = allowed.map((value) => `'${value}'`).join(", ");
  return {
    ...(nullsAllowed ? {} : { [`${column} has a value`]: `${name} IS NULL` }),
    ...(type === "String" ? { [`${column} is not an empty text`]: `${name} = ''` } : {}),
    ...(allowed.length === 0 ? {} : { [`${column} has an allowed value`]: `${name} NOT IN (${list})` }),
    ...(format === "Currency" ? { [`${column} is a code of ISO 4217`]: `${name} !~ '^[A-Z]{3}$'` } : {}),
    ...(format === "Unit"
      ? { [`${column} is a unit`]: `${name} !~ '^([1-9][0-9]* )?[A-Z][A-Za-z]*([-/][A-Z][a-z]*)?$'` }
      : {}),
    ...(format === "Decimal (non-negative)" ? { [`${column} is not negative`]: `${name} < 0` } : {}),
    ...(type === "JSON"
      ? { [`${column} is a JSON object`]: `jsonb_typeof(${name}::jsonb) <> 'object'` }
      : {}),
    ...(format === "Key-Value"
      ? {
          [`${column} has plain values`]: `EXISTS (
            SELECT FROM jsonb_each(CASE jsonb_typeof(${name}::jsonb) WHEN 'object' THEN ${name}::jsonb END) p
            WHERE jsonb_typeof(p.value) IN ('object', 'array'))`,
        }
      : {}),
  };
}

const COST_RULES: Readonly<Record<string, string>> = {
  "ListCost is ListUnitPrice x PricingQuantity": `"ListCost" <> "ListUnitPrice" * "PricingQuantity"`,
  "ContractedCost is ContractedUnitPrice x PricingQuantity": `"ContractedCost" <> "ContractedUnitPrice" * "PricingQuantity"`,
  "quantities are positive, but in a correction": `
    "ChargeClass" IS NULL AND NOT ("ConsumedQuantity" > 0 AND "PricingQuantity" > 0)`,
  "usage is not charged once": `"ChargeCategory" = 'Usage' AND "ChargeFrequency" = 'One-Time'`,
  "a subcategory is of its category": `("ServiceCategory", "ServiceSubcategory") <> ('AI and Machine Learning', 'AI Platforms')`,
  "the charge's period is half-open": `NOT "ChargePeriodStart" < "ChargePeriodEnd"`,
  "the billing period is a UTC month": `"BillingPeriodStart" <> date_trunc('month', "BillingPeriodStart", 'UTC')
    OR "BillingPeriodEnd" <> ("BillingPeriodStart" AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC'`,
  "the charge lies in its billing period, but for a correction": `"ChargeClass" IS NULL
    AND NOT ("BillingPeriodStart" <= "ChargePeriodStart" AND "ChargePeriodEnd" <= "BillingPeriodEnd")`,
  "a name has an id": `("BillingAccountName" IS NOT NULL AND "BillingAccountId" IS NULL)
    OR ("SubAccountName" IS NOT NULL AND "SubAccountId" IS NULL)`,
  "a type has an id": `("SubAccountType" IS NULL) <> ("SubAccountId" IS NULL)`,
  "a quantity has a unit": `("ConsumedQuantity" IS NULL) <> ("ConsumedUnit" IS NULL)
    OR ("PricingQuantity" IS NULL) <> ("PricingUnit" IS NULL)`,
  "usage has its SKU and price": `"ChargeCategory" = 'Usage' AND "ChargeClass" IS NULL AND ("SkuId" IS NULL
    OR "SkuPriceId" IS NULL OR "ListUnitPrice" IS NULL OR "ContractedUnitPrice" IS NULL OR "PricingCategory" IS NULL)`,
  "SkuPriceDetails belong to a SkuPriceId": `"SkuPriceDetails" IS NOT NULL AND "SkuPriceId" IS NULL`,
  "keys of SkuPriceDetails that are ours begin with x_": `EXISTS (
    SELECT FROM jsonb_object_keys("SkuPriceDetails"::jsonb) k WHERE k !~ '^x_([A-Z][a-z0-9]*)+$')`,
  "nothing is invoiced": `"InvoiceId" IS NOT NULL`,
  "a correction is in a later billing period than its charge": `"ChargeClass" = 'Correction'
    AND NOT "ChargePeriodEnd" <= "BillingPeriodStart"`,
  "another currency than the billing one is not used": `"PricingCurrency" <> "BillingCurrency"
    OR "PricingCurrencyEffectiveCost" <> "EffectiveCost"`,
};

const PERIOD_RULES: Readonly<Record<string, string>> = {
  "the period is a UTC month": `"BillingPeriodStart" <> date_trunc('month', "BillingPeriodStart", 'UTC')
    OR "BillingPeriodEnd" <> ("BillingPeriodStart" AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC'`,
  "it is updated after it is made": `"BillingPeriodLastUpdated" < "BillingPeriodCreated"`,
  "it is closed after its end": `"BillingPeriodStatus" = 'Closed' AND "BillingPeriodLastUpdated" < "BillingPeriodEnd"`,
};
