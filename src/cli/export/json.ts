import type { ViewColumn } from "../../store/report/views.ts";
import { type Format, isoInstant } from "./format.ts";

/**
 * JSON Lines: one object per line, so that a reader holds only one. Integers are numbers with all their digits. Decimals
 * are texts, because most readers would parse them as floats.
 */
export const jsonFormat: Format = (columns, target) => {
  const keys = columns.map(({ name }) => JSON.stringify(name));
  return {
    async write(rows) {
      const lines = rows.map((row) => {
        const members = columns.map((column, at) => `${keys[at]}:${fromText(row[at] ?? null, column)}`);
        return `{${members.join(",")}}\n`;
      });
      await target.write(Buffer.from(lines.join("")));
    },
    end: async () => {},
  };
};

function fromText(value: string | null, { type }: ViewColumn): string {
  if (value === null) return "null";
  if (type === "bigint" || type === "integer") return value;
  if (type === "boolean") return value === "t" ? "true" : "false";
  return JSON.stringify(type === "timestamp with time zone" ? isoInstant(value) : value);
}
