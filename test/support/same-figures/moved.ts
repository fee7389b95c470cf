/** What the revision 40e9dfe9 has and this tree lacks on purpose. Write it anew when another revision is the one to compare with. */
export const MOVED: {
  /** Views that are gone. */
  readonly views: readonly string[];
  /** Columns that are gone, as `view.column`, or `*.column` in all views. */
  readonly columns: readonly string[];
  /** Lines of what commands print that are gone, new or different. */
  readonly lines: readonly RegExp[];
  /** Commands and pages that are gone, or that may change. */
  readonly files: readonly RegExp[];
  /** Commands and pages that show less. What they still show must be the same, so a changed figure is still found. */
  readonly shorter: readonly RegExp[];
} = {
  views: [],
  // Amounts of every meter stand in their place.
  columns: [
    "usage_restatement.old_traces",
    "usage_restatement.new_traces",
    "dim_name.first_seen_at",
    "dim_name.last_seen_at",
    "dim_name_masked.first_seen_at",
    "dim_name_masked.last_seen_at",
  ],
  lines: [
    /\.restatements\b/,
    // What is not known, and who was never read, is said now.
    /\.(unknown|neverRead|unknownMeters|otherGaps)\b/,
    // Coverage and plans name the meter; pages of sandboxes are smaller; the demo may ask more often.
    /\.meter = /,
    /\.evidence = /,
    /\.budget\./,
    /final (counts|figures)/,
  ],
  // Previews show the requests that the limit allows.
  files: [/^:backfills:new/, /^:\.page$/],
  shorter: [],
};
