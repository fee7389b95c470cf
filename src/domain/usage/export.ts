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

/** Why an export is refused whole: its rows are CSV, but not what was asked for. */
export class ExportFlaw extends Error {
  readonly code:
    | "stride_differs"
    | "bucket_misplaced"
    | "bucket_missing"
    | "workspace_unasked"
    | "id_too_long";
  constructor(code: ExportFlaw["code"], message: string) {
    super(message);
    this.code = code;
  }
}
