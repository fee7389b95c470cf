import type { SchemaElement } from "hyparquet-writer";
import { ByteWriter } from "hyparquet-writer";
import { ParquetWriter } from "hyparquet-writer/src/parquet-writer.js";
import { releaseOf } from "../../core/base/root.ts";

type TextRow = readonly (string | null)[];

export interface ParquetColumn {
  readonly name: string;
  readonly type: string;
  readonly precision: number | null;
  readonly scale: number | null;
}

export interface ParquetFile {
  add(rows: readonly TextRow[]): Promise<void>;
  end(): Promise<number>;
}

/** Parquet readers accept at most this many digits in a decimal. */
const MOST_DIGITS = 38;
const CELLS_OF_GROUP = 100_000;
const LEAST_ROWS_OF_GROUP = 5_000;

/**
 * Parquet with Snappy, one row group at a time. Numbers keep all digits, instants their microseconds. `sortedBy`: columns by which the
 * rows are in ascending order, texts by their bytes, nulls last.
 */
export function createParquet(
  columns: readonly ParquetColumn[],
  write: (chunk: Uint8Array) => Promise<void>,
  { sortedBy = [] }: { readonly sortedBy?: readonly string[] } = {},
): ParquetFile {
  const bytes = new ByteWriter();
  const flush = async () => {
    const chunk = bytes.getBytes().slice();
    bytes.index = 0;
    await write(chunk);
  };
  const stored = columns.map((column) => ({ name: column.name, ...storageOf(column) }));
  const elements = stored.map(({ name, element }): SchemaElement => {
    return { name, repetition_type: "OPTIONAL", ...element };
  });
  const schema = [{ name: "root", num_children: columns.length }, ...elements];
  const file = new ParquetWriter({
    writer: Object.assign(bytes, { flush, finish: flush }),
    schema,
    createdBy: `usage-etl version ${releaseOf()}`,
  });
  const sorting = sortedBy.map((name) => ({
    column_idx: columns.findIndex((column) => column.name === name),
    descending: false,
    nulls_first: false,
  }));
  const rowsOfGroup = Math.max(LEAST_ROWS_OF_GROUP, Math.floor(CELLS_OF_GROUP / columns.length));
  // Rows of several batches in memory would need more space than their stored cells.
  const emptyGroup = () => stored.map(({ name }) => ({ name, data: [] as unknown[] }));
  let group = emptyGroup();
  let [count, rowGroupSize] = [0, 0];
  const writeGroup = async () => {
    const whole = { columnData: group, rowGroupSize };
    [group, rowGroupSize] = [emptyGroup(), 0];
    await file.write(whole);
  };
  return {
    async add(rows) {
      for (const [at, { fromText }] of stored.entries()) {
        const data = group[at]?.data as unknown[];
        for (const row of rows) data.push(row[at] == null ? null : fromText(row[at]));
      }
      count += rows.length;
      rowGroupSize += rows.length;
      if (rowGroupSize >= rowsOfGroup) await writeGroup();
    },
    async end() {
      if (rowGroupSize > 0) await writeGroup();
      if (sorting.length > 0) for (const group of file.row_groups) group.sorting_columns = sorting;
      await file.finish();
      return count;
    },
  };
}

type Element = Omit<SchemaElement, "name">;

interface Storage {
  readonly element: Element;
  readonly fromText: (text: string) => unknown;
}

const TEXT: Storage = {
  element: { type: "BYTE_ARRAY", converted_type: "UTF8", logical_type: { type: "STRING" } },
  fromText: (text) => text,
};
const STORAGE: Readonly<Record<string, Storage>> = {
  bigint: { element: { type: "INT64" }, fromText: BigInt },
  integer: { element: { type: "INT32" }, fromText: Number },
  boolean: { element: { type: "BOOLEAN" }, fromText: (text) => text === "t" },
  date: {
    element: { type: "INT32", converted_type: "DATE", logical_type: { type: "DATE" } },
    fromText: (text) => Date.parse(text) / 86_400_000,
  },
  "timestamp with time zone": {
    element: {
      type: "INT64",
      converted_type: "TIMESTAMP_MICROS",
      logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MICROS" },
    },
    fromText: microsOf,
  },
};

function storageOf({ type, precision, scale }: ParquetColumn): Storage {
  const isDecimal = type === "numeric" && precision !== null && scale !== null;
  // A numeric that fits no Parquet decimal, such as one in a customer's view, is exported as text.
  if (!isDecimal || precision > MOST_DIGITS || scale > precision) return STORAGE[type] ?? TEXT;
  const digits = { precision, scale };
  return {
    element: {
      type: "FIXED_LEN_BYTE_ARRAY",
      type_length: bytesOf(precision),
      converted_type: "DECIMAL",
      ...digits,
      logical_type: { type: "DECIMAL", ...digits },
    },
    fromText: (text) => unscaledOf(text, scale),
  };
}

function bytesOf(precision: number): number {
  let bytes = 1;
  while (2n ** BigInt(8 * bytes - 1) <= 10n ** BigInt(precision)) bytes++;
  return bytes;
}

/** A Date would lose microseconds. */
function microsOf(text: string): bigint {
  const [, seconds = "", fraction = ""] = /^([^.+]*)(?:\.(\d+))?\+00$/.exec(text) ?? [];
  return BigInt(Date.parse(`${seconds.replace(" ", "T")}Z`)) * 1000n + BigInt(fraction.padEnd(6, "0"));
}

function unscaledOf(text: string, scale: number): bigint {
  const [whole = "", fraction = ""] = text.split(".");
  return BigInt(whole + fraction.padEnd(scale, "0"));
}
