import type { TextRow } from "../../store/report/view-rows.ts";
import type { ViewColumn } from "../../store/report/views.ts";
import type { Target } from "./target.ts";

/** Turns rows into the bytes of a file, batch by batch: nothing but the batch at hand is kept. */
interface RowWriter {
  write(rows: readonly TextRow[]): Promise<void>;
  /** What closes the file, and all of it where there were no rows. */
  end(): Promise<void>;
}

export type Format = (columns: readonly ViewColumn[], target: Target) => RowWriter;

/** `2026-03-01 05:00:00.12+00`, as a session in UTC writes it, in ISO 8601: `2026-03-01T05:00:00.12Z`. */
export function isoInstant(text: string): string {
  return text.replace(" ", "T").replace(/\+00$/, "Z");
}
