import { type CastingContext, stringify } from "csv-stringify/sync";
import type { ViewColumn } from "../../store/report/views.ts";
import { type Format, isoInstant } from "./format.ts";

/**
 * RFC 4180 with `\n`. Null is an empty cell, an empty text is `""`. A text that a spreadsheet would run as a formula
 * is prefixed with `'` (CSV injection). Negative numbers are not.
 */
export const csvFormat: Format = (columns, target) => {
  const names = columns.map(({ name }) => name);
  const options = {
    escape_formulas: true,
    // Distinguishes an empty text from null.
    quoted_match: /^$/,
    cast: { string: (value: string, { index }: CastingContext) => fromText(value, columns[index]) },
  };
  let isBegun = false;
  const begin = async () => {
    isBegun = true;
    await target.write(Buffer.from(stringify([names])));
  };
  return {
    async write(rows) {
      if (!isBegun) await begin();
      await target.write(Buffer.from(stringify(rows as (string | null)[][], options)));
    },
    async end() {
      if (!isBegun) await begin();
    },
  };
};

const NUMBERS = ["bigint", "integer", "numeric"];

function fromText(value: string, column: ViewColumn | undefined) {
  if (column?.type === "timestamp with time zone") return isoInstant(value);
  if (column?.type === "boolean") return value === "t" ? "true" : "false";
  const isNegative = column !== undefined && value.startsWith("-") && NUMBERS.includes(column.type);
  return isNegative ? { value, escape_formulas: false } : value;
}
