import { type CastingContext, stringify } from "csv-stringify/sync";
import type { TextRow } from "../../store/report/view-rows.ts";
import type { ViewColumn } from "../../store/report/views.ts";
import { type Format, isoInstant } from "./format.ts";

/**
 * RFC 4180 with `\n`. Null is an empty cell, an empty text is `""`. A text that a spreadsheet would run as a formula
 * is prefixed with `'` (CSV injection). Negative numbers are not.
 */
export const csvFormat: Format = (columns, target) => {
  let header = true;
  const write = async (rows: readonly TextRow[]) => {
    const text = stringify(rows as (string | null)[][], {
      header,
      columns: columns.map(({ name }) => name),
      escape_formulas: true,
      // Distinguishes an empty text from null.
      quoted_match: /^$/,
      cast: {
        string: (value: string, context: CastingContext) =>
          context.header ? value : fromText(value, columns[context.index]),
      },
    });
    header = false;
    await target.write(Buffer.from(text));
  };
  const end = async () => {
    if (header) await write([]);
  };
  return { write, end };
};

const NUMBERS = ["bigint", "integer", "numeric"];

function fromText(value: string, column: ViewColumn | undefined) {
  if (column?.type === "timestamp with time zone") return isoInstant(value);
  if (column?.type === "boolean") return value === "t" ? "true" : "false";
  const isNegative = column !== undefined && value.startsWith("-") && NUMBERS.includes(column.type);
  return isNegative ? { value, escape_formulas: false } : value;
}
