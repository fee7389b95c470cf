/** What an old revision has and this tree lacks on purpose. Empty it when the revision to compare with is a newer one. */
export const MOVED: {
  /** Views that are gone. */
  readonly views: readonly string[];
  /** Columns that are gone, as `view.column`, or `*.column` in all views. */
  readonly columns: readonly string[];
  /** Lines of what commands print that are gone, new or different. */
  readonly lines: readonly RegExp[];
  /** Files of commands and pages that are gone or new. */
  readonly files: readonly RegExp[];
} = {
  views: [],
  columns: [],
  lines: [],
  files: [],
};
