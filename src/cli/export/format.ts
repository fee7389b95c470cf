import type { TextRow } from "../../store/report/view-rows.ts";
import type { ViewColumn } from "../../store/report/views.ts";
import type { Target } from "./target.ts";

/** Writes rows batch by batch. Only the current batch is in memory. */
interface RowWriter {
  write(rows: readonly TextRow[]): Promise<void>;
  /** Writes what ends the file. Without rows it writes the whole file. */
  end(): Promise<void>;
}

export type Format = (columns: readonly ViewColumn[], target: Target) => RowWriter;

/** Postgres's `2026-03-01 05:00:00.12+00` (session in UTC) as ISO 8601, `2026-03-01T05:00:00.12Z`. */
export function isoInstant(text: string): string {
  return text.replace(" ", "T").replace(/\+00$/, "Z");
}
