/** What the revision 3d49e0c0 has and this tree lacks on purpose. Write it anew when another revision is the one to compare with. */
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
  views: ["metering_probe"],
  // Amounts of every meter stand in their place.
  columns: ["usage_restatement.old_traces", "usage_restatement.new_traces"],
  // The stand-in refuses in other words.
  lines: [/\.acknowledged = /, /\.restatements\b/, /"detail":"Refused/, /^\.\d+\.lastSync\.reason = /],
  files: [
    // Routes left the page of alerts, and their fields have other names.
    /^alerts list\.json$/,
    // The demo's owner file has other comments and no digests.
    /^owners export\.json$/,
    // The list of backfills no longer counts their workspaces.
    /^:backfills(\?source=[\w-]+)?\.page$/,
    // Owners have one report, which is that of usage.
    /^:owners/,
  ],
  shorter: [/\.page$/, /^status\.json$/, /^h\d+\.json$/],
};
