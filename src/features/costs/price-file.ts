import "../../core/base/validation.ts";
import { z } from "zod";
import { readGiven, refuseGiven } from "../../core/base/given-file.ts";
import { csvRows } from "../../terminal/csv-rows.ts";
import {
  COUNTED_OVER,
  measurePriceProblem,
  PRICED_MEASURES,
  type PriceLine,
  parseUnitPrice,
} from "./price.ts";

const REQUIRED = ["sku", "unit_price", "currency", "valid_from"];
const COLUMNS = [...REQUIRED, "valid_to", "source", "workspace", "from_quantity", "counted_over", "measure"];
const FORM = { columns: COLUMNS, required: REQUIRED, numbers: ["unit_price", "from_quantity"], trim: true };
const BLANK = Object.fromEntries(COLUMNS.map((name) => [name, ""]));

/** Reads a CSV file with a header. Errors: `file_unreadable`; `file_invalid`, with line and column of every problem. */
export async function readPriceFile(file: string): Promise<PriceLine[]> {
  const text = await readGiven(file, "a CSV file in UTF-8, which Excel saves as CSV UTF-8");
  const problems: string[] = [];
  const lines = csvRows(file, text, FORM).flatMap(({ line, cells }) => {
    const where = `line ${line}`;
    const parsed = priceSchema.safeParse({ ...BLANK, ...cells });
    if (parsed.success) return [{ where, price: parsed.data }];
    for (const { path, message } of parsed.error.issues) {
      const column = String(path[0]);
      problems.push(`${where}, column "${column}": ${JSON.stringify(cells[column] ?? "")} ${message}`);
    }
    return [];
  });
  refuseGiven(file, problems);
  return lines;
}

const CURRENCIES = Intl.supportedValuesOf("currency");

const NOT_A_DAY = "is not a day such as 2026-03-01";
// Earlier years are typing errors, and Postgres has no year 0.
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

const countedOver = orNull.pipe(z.enum(COUNTED_OVER, "is not source or workspace").nullable());

const measure = z
  .string()
  .transform((text) => text || "traces")
  .pipe(z.enum(PRICED_MEASURES, `is not one of ${PRICED_MEASURES.join(", ")}`));

const priceSchema = z
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
  .superRefine(({ unit_price, measure }, context) => {
    const problem = measurePriceProblem(unit_price, measure);
    if (problem !== undefined) context.addIssue({ code: "custom", path: ["unit_price"], message: problem });
  })
  .refine(({ valid_from, valid_to }) => valid_to === null || valid_to > valid_from, {
    path: ["valid_to"],
    error: "is not after valid_from (the end is not included)",
    when: ({ issues }) => issues.every(({ path }) => !String(path?.[0]).startsWith("valid_")),
  })
  .transform(
    ({ unit_price, valid_from, valid_to, from_quantity, counted_over, ...named }): PriceLine["price"] => ({
      ...named,
      unitPrice: unit_price,
      validFrom: valid_from,
      validTo: valid_to,
      fromQuantity: from_quantity,
      countedOver: counted_over,
    }),
  );

function currencyProblem(code: string): string {
  const upper = code.toUpperCase();
  const near = CURRENCIES.find((one) => one === upper) ?? CURRENCIES.find((one) => one === upper.slice(0, 3));
  return `is not a currency of ISO 4217${near === undefined ? "" : `; did you mean ${near}?`}`;
}
