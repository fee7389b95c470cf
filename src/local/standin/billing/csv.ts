import type { Settings } from "../settings.ts";
import type { Measure } from "./parts.ts";
import type { UsageQuery } from "./query.ts";
import { toWireTime } from "./record.ts";
import type { Usage } from "./usage.ts";

/** Every column every time; only those of the dimension are filled (docs/platform.md, CSV export). */
const DIMENSIONS = {
  "Workspace ID": "workspace_id",
  "Workspace Name": "workspace_name",
  "Project ID": "project_id",
  "Project Name": "project_name",
  "User ID": "user_id",
  "User Email": "user_email",
  "API Key Short Key": "api_key_short_key",
} as const;

/** The tiered contract has `Traces` alone (docs/platform.md, Contracts). */
const MEASURES = {
  traces: { Traces: "traces" },
  langsmith_deployments: {
    "Nodes Executed": "nodes_executed",
    "Agent Runs": "agent_runs",
    "Agent Uptime (seconds)": "agent_uptime_seconds",
  },
} as const;

const PIECE = 16_384;

/** Yields the export in pieces of about 16 KB, so that it streams. */
export function* toCsv(
  { rows, missing }: Usage,
  { groupBy, kind }: UsageQuery,
  newline: Settings["csvNewline"],
): Generator<string> {
  // No column is documented for this dimension; our guess is one more.
  const tier = groupBy === "trace_tier" ? { "Trace Tier": "trace_tier" } : {};
  const dimensions: Record<string, string> = { ...DIMENSIONS, ...tier };
  const measures = Object.entries<Measure>(MEASURES[kind]).filter(([, measure]) => measure !== missing);
  const end = newline === "crlf" ? "\r\n" : "\n";
  const header = [
    "Time Bucket Start",
    "Time Bucket End",
    ...Object.keys(dimensions),
    ...measures.map(([name]) => name),
  ];
  let piece = header.map(cell).join(",") + end;
  for (const row of rows) {
    const cells = [
      toWireTime(row.bucket.start),
      toWireTime(row.bucket.end),
      ...Object.values(dimensions).map((key) => row.dimensions[key] ?? ""),
      ...measures.map(([, measure]) => String(row.measured[measure] ?? 0)),
    ];
    piece += cells.map(cell).join(",") + end;
    if (piece.length >= PIECE) {
      yield piece;
      piece = "";
    }
  }
  if (piece !== "") yield piece;
}

/** A leading tab guards against formulas (docs/platform.md, CSV export). Quotes: RFC 4180, 2.6 and 2.7. */
function cell(text: string): string {
  const guarded = /^[=+\-@\t\r]/.test(text) ? `\t${text}` : text;
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
}
