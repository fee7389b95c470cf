import type { SchemaElement } from "hyparquet-writer";
import { ByteWriter } from "hyparquet-writer";
import { ParquetWriter } from "hyparquet-writer/src/parquet-writer.js";
import type { TextRow } from "../../store/report/view-rows.ts";
import type { ViewColumn } from "../../store/report/views.ts";
import type { Format } from "./format.ts";

/** Cells per row group. They are held in memory. */
const CELLS_OF_GROUP = 500_000;
const LEAST_ROWS_OF_GROUP = 5_000;

/** Parquet with Snappy, one row group at a time. Numbers keep all digits, instants their microseconds. */
export const parquetFormat: Format = (columns, target) => {
  const bytes = new ByteWriter();
  const flush = async () => {
    const chunk = bytes.getBytes().slice();
    bytes.index = 0;
    await target.write(chunk);
  };
  const schema = [{ name: "root", num_children: columns.length }, ...columns.map(schemaOf)];
  const file = new ParquetWriter({
    writer: Object.assign(bytes, { flush, finish: flush }),
    schema,
    createdBy: "usage-etl",
  });
  const rowsOfGroup = Math.max(LEAST_ROWS_OF_GROUP, Math.floor(CELLS_OF_GROUP / columns.length));
  let group: TextRow[] = [];
  const writeGroup = async () => {
    const columnData = columns.map((column, at) => {
      const fromText = readerOf(column);
      return { name: column.name, data: group.map((row) => (row[at] == null ? null : fromText(row[at]))) };
    });
    const rowGroupSize = group.length;
    group = [];
    await file.write({ columnData, rowGroupSize });
  };
  return {
    async write(rows) {
      group.push(...rows);
      if (group.length >= rowsOfGroup) await writeGroup();
    },
    async end() {
      if (group.length > 0) await writeGroup();
      await file.finish();
    },
  };
};

function schemaOf({ name, type, precision, scale }: ViewColumn): SchemaElement {
  const optional = { name, repetition_type: "OPTIONAL" } as const;
  const digits = decimalOf({ type, precision, scale });
  if (digits !== undefined) {
    return {
      ...{ ...optional, type: "FIXED_LEN_BYTE_ARRAY", type_length: bytesOf(digits.precision) },
      ...{ converted_type: "DECIMAL", ...digits, logical_type: { type: "DECIMAL", ...digits } },
    };
  }
  switch (type) {
    case "bigint":
      return { ...optional, type: "INT64" };
    case "integer":
      return { ...optional, type: "INT32" };
    case "boolean":
      return { ...optional, type: "BOOLEAN" };
    case "date":
      return { ...optional, type: "INT32", converted_type: "DATE", logical_type: { type: "DATE" } };
    case "timestamp with time zone":
      return {
        ...{ ...optional, type: "INT64", converted_type: "TIMESTAMP_MICROS" },
        logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MICROS" },
      };
    default:
      return { ...optional, type: "BYTE_ARRAY", converted_type: "UTF8", logical_type: { type: "STRING" } };
  }
}

/** Parquet readers accept at most this many digits in a decimal. */
const MOST_DIGITS = 38;

/** Precision and scale of a numeric that fits a Parquet decimal. Others (a customer's own view) are exported as text. */
function decimalOf(column: Pick<ViewColumn, "type" | "precision" | "scale">) {
  const { type, precision, scale } = column;
  if (type !== "numeric" || precision === null || scale === null) return undefined;
  return precision <= MOST_DIGITS && scale <= precision ? { precision, scale } : undefined;
}

/** Bytes of a signed number with this many decimal digits. */
function bytesOf(precision: number): number {
  let bytes = 1;
  while (2n ** BigInt(8 * bytes - 1) <= 10n ** BigInt(precision)) bytes++;
  return bytes;
}

function readerOf(column: ViewColumn): (text: string) => unknown {
  const { type } = column;
  const digits = decimalOf(column);
  if (digits !== undefined) return (text) => unscaledOf(text, digits.scale);
  switch (type) {
    case "bigint":
      return BigInt;
    case "integer":
      return Number;
    case "boolean":
      return (text) => text === "t";
    case "date":
      return (text) => Date.parse(text) / 86_400_000;
    case "timestamp with time zone":
      return microsOf;
    default:
      return (text) => text;
  }
}

/** Microseconds since 1970 of `2026-03-01 05:00:00.123456+00`. A Date would keep only milliseconds. */
function microsOf(text: string): bigint {
  const [, seconds = "", fraction = ""] = /^([^.+]*)(?:\.(\d+))?\+00$/.exec(text) ?? [];
  return BigInt(Date.parse(`${seconds.replace(" ", "T")}Z`)) * 1000n + BigInt(fraction.padEnd(6, "0"));
}

function unscaledOf(text: string, scale: number): bigint {
  const [whole = "", fraction = ""] = text.split(".");
  return BigInt(whole + fraction.padEnd(scale, "0"));
}
