import type { Misfit } from "./numbering.ts";
import type { UsageRecord } from "./record.ts";

/** A row of the CSV export as a record. */
export interface ExportRow extends UsageRecord {
  /** Epoch milliseconds of the bucket's end; null where, and only where, the row has no start either. */
  readonly bucketEnd: number | null;
  /** Line of the body on which the row begins; the header is line 1. */
  readonly line: number;
}

/** Columns of the export that hold a bucket's start and end, for messages. */
export const BUCKET_COLUMNS = { start: "Time Bucket Start", end: "Time Bucket End" } as const;

/** Why an export is refused whole: its rows are CSV, but do not fit the request. */
export class ExportFlaw extends Error {
  readonly code: Misfit["code"] | "stride_differs" | "answer_cut";
  constructor(code: ExportFlaw["code"], message: string) {
    super(message);
    this.code = code;
  }
}
