import { z } from "zod";
import {
  COUNTED_OVER,
  type CountedOver,
  PRICED_MEASURES,
  type PricedMeasure,
  type PriceLine,
  parseUnitPrice,
} from "../../domain/bill/price.ts";

const CURRENCIES = Intl.supportedValuesOf("currency");

const NOT_A_DAY = "is not a day such as 2026-03-01";
// Years before 1000 are typing errors, and Postgres has no year 0.
const day = z.iso.date({ error: NOT_A_DAY, abort: true }).refine((text) => text >= "1000", NOT_A_DAY);

const unitPrice = z.string().transform((text, context) => {
  const parsed = parseUnitPrice(text);
  if ("price" in parsed) return parsed.price;
  context.issues.push({ code: "custom", input: text, message: parsed.why });
  return z.NEVER;
});

const orNull = z.string().transform((text) => (text === "" ? null : text));

const NOT_A_QUANTITY = "is not a whole number of traces, at most 15 digits, such as 100000";
const quantity = z
  .string()
  .regex(/^\d{0,15}$/, NOT_A_QUANTITY)
  .transform(Number);

const countedOver = z
  .string()
  .refine((text) => text === "" || COUNTED_OVER.includes(text as CountedOver), "is not source or workspace")
  .transform((text) => (text === "" ? null : (text as CountedOver)));

const measure = z
  .string()
  .refine(
    (text) => text === "" || PRICED_MEASURES.includes(text as PricedMeasure),
    `is not one of ${PRICED_MEASURES.join(", ")}`,
  )
  .transform((text) => (text === "" ? "traces" : (text as PricedMeasure)));

/** One line of a price file: texts, empty if not given. A message follows the column and its value. */
export const priceSchema = z
  .object({
    sku: z
      .string()
      .min(1, "is not a SKU")
      .max(200, "has more than 200 characters")
      .regex(/^\P{Cc}*$/u, "has a control character"),
    unit_price: unitPrice,
    currency: z
      .string()
      .refine((code) => CURRENCIES.includes(code), { error: ({ input }) => currencyProblem(String(input)) }),
    valid_from: day,
    valid_to: orNull.pipe(day.nullable()),
    source: orNull,
    workspace: orNull.transform((id) => id?.toLowerCase() ?? null),
    from_quantity: quantity,
    counted_over: countedOver,
    measure,
  })
  .refine(({ valid_from, valid_to }) => valid_to === null || valid_to > valid_from, {
    path: ["valid_to"],
    error: "is not after valid_from (the end is not included)",
    // Also beside problems of other columns.
    when: ({ issues }) => issues.every(({ path }) => !String(path?.[0]).startsWith("valid_")),
  })
  .transform(({ sku, currency, source, workspace, measure, ...named }): PriceLine["price"] => {
    const { unit_price: unitPrice, valid_from: validFrom, valid_to: validTo } = named;
    const { from_quantity: fromQuantity, counted_over: countedOver } = named;
    return {
      ...{ sku, currency, source, workspace, measure },
      ...{ unitPrice, validFrom, validTo, fromQuantity, countedOver },
    };
  });

export const REQUIRED = ["sku", "unit_price", "currency", "valid_from"];
export const COLUMNS = [
  ...REQUIRED,
  "valid_to",
  "source",
  "workspace",
  "from_quantity",
  "counted_over",
  "measure",
];

function currencyProblem(code: string): string {
  const upper = code.toUpperCase();
  const near = CURRENCIES.find((one) => one === upper) ?? CURRENCIES.find((one) => one === upper.slice(0, 3));
  return `is not a currency of ISO 4217${near === undefined ? "" : `; did you mean ${near}?`}`;
}
