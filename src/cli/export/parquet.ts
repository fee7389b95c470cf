import { type RowsWanted, readRows } from "../../store/export/view-rows.ts";
import { createParquet } from "../../warehouse/parquet.ts";
import { keyValuesOf } from "./focus-metadata.ts";
import type { Target } from "./target.ts";

/** Writes the rows as one Parquet file, in constant memory. Returns their number. */
export async function writeParquet(wanted: RowsWanted, target: Target): Promise<number> {
  const file = createParquet(wanted.columns, { write: target.write, keyValues: keyValuesOf(wanted) });
  await readRows(wanted, file.add);
  return file.end();
}
