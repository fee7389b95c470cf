import "../../core/base/validation.ts";
import { z } from "zod";
import { readGiven, refuseGiven } from "../../core/base/given-file.ts";
import { csvRows } from "../../terminal/csv-rows.ts";
import { csvCell } from "../export/table-file.ts";
import { LINE_KINDS } from "./invoice.ts";
import { type InvoiceRule, ROUNDINGS, RULE_MEASURES, RULE_PERIODS } from "./rule.ts";

/** Keys of a rule by column. */
const COLUMNS = {
  text: "text",
  measure: "measure",
  sku: "sku",
  kind: "kind",
  unit: "unit",
  from: "from",
  to: "to",
  period: "period",
  rounding: "rounding",
  tolerance_amount: "toleranceAmount",
  tolerance_percent: "tolerancePercent",
  divide: "divide",
} as const satisfies Record<string, keyof InvoiceRule>;

const NAMES = Object.keys(COLUMNS) as (keyof typeof COLUMNS)[];
const FORM = {
  columns: NAMES,
  required: ["text"],
  numbers: ["tolerance_amount", "tolerance_percent"],
  trim: true,
};
const BLANK = Object.fromEntries(NAMES.map((name) => [name, ""]));

/** Reads a CSV file with a rule on each line. Errors: `file_unreadable`; `file_invalid`, with line and column of every problem. */
export async function readRuleFile(file: string): Promise<InvoiceRule[]> {
  const text = await readGiven(file, "a CSV file in UTF-8, which Excel saves as CSV UTF-8");
  const problems: string[] = [];
  const rules = csvRows(file, text, FORM).flatMap(({ line, cells }) => {
    const parsed = schema.safeParse({ ...BLANK, ...cells });
    if (parsed.success) return [parsed.data];
    for (const { path, message } of parsed.error.issues) {
      const column = String(path[0]);
      problems.push(`line ${line}, column "${column}": ${JSON.stringify(cells[column] ?? "")} ${message}`);
    }
    return [];
  });
  refuseGiven(file, problems);
  return rules;
}

export function rulesCsv(rules: readonly InvoiceRule[]): string {
  const rows = rules.map((rule) => NAMES.map((name) => csvCell(rule[COLUMNS[name]])).join(","));
  return [NAMES.join(","), ...rows].join("\n");
}

const oneOf = <const Names extends readonly [string, ...string[]]>(names: Names) =>
  z.enum(names, `is not one of ${names.join(", ")}`);
const orNull = z.string().transform((text) => text || null);
const day = orNull.pipe(z.iso.date("is not a day such as 2026-03-01").nullable());
const decimal = orNull.pipe(
  z
    .string()
    .regex(/^\d{1,12}(\.\d{1,6})?$/, "is not a decimal number such as 0.05")
    .nullable(),
);

/** Shares in percent, such as `search=60;chat=40`. */
function isWhole(text: string): boolean {
  const shares = text
    .split(";")
    .map((part) => /^\s*[^\s=;][^=;]*=\s*(\d{1,3}(?:\.\d{1,2})?)\s*$/.exec(part)?.[1] ?? "0");
  const percents = shares.map((share) => Math.round(Number(share) * 100));
  return percents.every((share) => share > 0) && percents.reduce((sum, share) => sum + share, 0) === 10_000;
}

const schema = z
  .object({
    text: z.string().min(1, "is empty: write the text of the line, with * for any text"),
    measure: orNull.pipe(oneOf(RULE_MEASURES).nullable()),
    sku: orNull,
    kind: orNull.pipe(oneOf(LINE_KINDS).nullable()),
    unit: orNull,
    from: day,
    to: day,
    period: z
      .string()
      .transform((text) => text || "previous_month")
      .pipe(oneOf(RULE_PERIODS)),
    rounding: z
      .string()
      .transform((text) => text || "half_up")
      .pipe(oneOf(ROUNDINGS)),
    tolerance_amount: decimal,
    tolerance_percent: decimal,
    divide: orNull.refine(
      (text) => text === null || text === "usage" || text === "even" || isWhole(text),
      "is not usage, even, or shares of 100 per cent such as search=60;chat=40",
    ),
  })
  .refine(({ from, to }) => from === null || to === null || from < to, {
    path: ["to"],
    error: "is not after from (the end is not included)",
  })
  .transform(
    ({ tolerance_amount, tolerance_percent, ...rule }): InvoiceRule => ({
      ...rule,
      toleranceAmount: tolerance_amount,
      tolerancePercent: tolerance_percent,
    }),
  );
