import { z } from "zod";
import { type Price, parseUnitPrice } from "../../domain/price.ts";

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
  })
  .refine(({ valid_from, valid_to }) => valid_to === null || valid_to > valid_from, {
    path: ["valid_to"],
    error: "is not after valid_from (the end is not included)",
    // Also beside problems of other columns.
    when: ({ issues }) => issues.every(({ path }) => !String(path?.[0]).startsWith("valid_")),
  })
  .transform(({ unit_price, valid_from, valid_to, ...rest }): Price => {
    return { ...rest, unitPrice: unit_price, validFrom: valid_from, validTo: valid_to };
  });

export const REQUIRED = ["sku", "unit_price", "currency", "valid_from"];
export const COLUMNS = [...REQUIRED, "valid_to", "source", "workspace"];

function currencyProblem(code: string): string {
  const upper = code.toUpperCase();
  const near = CURRENCIES.find((one) => one === upper) ?? CURRENCIES.find((one) => one === upper.slice(0, 3));
  return `is not a currency of ISO 4217${near === undefined ? "" : `; did you mean ${near}?`}`;
}
