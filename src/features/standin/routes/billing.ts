import { fromQuery, type UsageQuery } from "../billing/query.ts";
import { type Measure, type Measured, type Usage, usageOf } from "../billing/usage.ts";
import { deploymentMeasures } from "../engine/ledger.ts";
import type { Settings } from "../engine/settings.ts";
import { toWireStride } from "../engine/stride.ts";
import type { Format, World } from "../engine/world.ts";
import { json, type Route } from "../http/route.ts";
import type { Response } from "../http/wire.ts";

const PATH = "/api/v1/orgs/current/billing/granular-usage";

/** JSON (docs/platform.md, Records) and CSV (CSV export). Both need organization:read. */
export function billing(world: World): Route[] {
  const route = (format: Format, response: (usage: Usage, query: UsageQuery) => Response): Route => ({
    method: "GET",
    path: format === "json" ? PATH : `${PATH}/export`,
    needs: "organization:read",
    handle({ query: given, fault }) {
      const query = fromQuery(given, world.settings, world.now());
      return response(usageOf(world, query, { isCoarser: fault?.kind === "stride", format }), query);
    },
  });
  return [
    route("json", (usage, query) => json(toWireUsage(usage, query, world.settings))),
    route("csv", (usage, query) => ({
      status: 200,
      type: "text/csv; charset=utf-8",
      headers: { "content-disposition": 'attachment; filename="granular-usage.csv"' },
      body: toCsv(usage, query),
    })),
  ];
}

/** Always every column. Only those of the dimension have values (docs/platform.md, CSV export). */
const DIMENSIONS = {
  "Workspace ID": "workspace_id",
  "Workspace Name": "workspace_name",
  "Project ID": "project_id",
  "Project Name": "project_name",
  "User ID": "user_id",
  "User Email": "user_email",
  "API Key Short Key": "api_key_short_key",
} as const;

/** The tiered contract has only `Traces` (docs/platform.md, Contracts). */
const MEASURES = {
  traces: { Traces: "traces" },
  langsmith_deployments: {
    "Nodes Executed": "nodes_executed",
    "Agent Runs": "agent_runs",
    "Agent Uptime (seconds)": "agent_uptime_seconds",
  },
} as const;

const PIECE = 16_384;
const LINE_END = "\r\n";

function* toCsv({ rows }: Usage, { groupBy, kind }: UsageQuery): Generator<string> {
  // This column is undocumented (our guess).
  const tier = groupBy === "trace_tier" ? { "Trace Tier": "trace_tier" } : {};
  const dimensions: Record<string, string> = { ...DIMENSIONS, ...tier };
  const measures = Object.entries<Measure>(MEASURES[kind]);
  const header = [
    "Time Bucket Start",
    "Time Bucket End",
    ...Object.keys(dimensions),
    ...measures.map(([name]) => name),
  ];
  let piece = header.map(cell).join(",") + LINE_END;
  for (const row of rows) {
    const cells = [
      toWireTime(row.bucket.start),
      toWireTime(row.bucket.end),
      ...Object.values(dimensions).map((key) => row.dimensions[key] ?? ""),
      ...measures.map(([, measure]) => String(row.measured[measure] ?? 0)),
    ];
    piece += cells.map(cell).join(",") + LINE_END;
    if (piece.length >= PIECE) {
      yield piece;
      piece = "";
    }
  }
  if (piece !== "") yield piece;
}

/** A tab keeps a cell from being a formula: docs/platform.md, CSV export. Quotes: RFC 4180, 2.6 and 2.7. */
function cell(text: string): string {
  const guarded = /^[=+\-@\t\r]/.test(text) ? `\t${text}` : text;
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
}

/**
 * docs/platform.md, Records. Only the day-granular contract has `api_key_id` and the measures of both kinds, with 0 for the
 * other kind (Contracts).
 */
function toWireUsage({ stride, rows }: Usage, { groupBy }: UsageQuery, { contract }: Settings): object {
  const plain = contract === "tiered" && groupBy === "api_key";
  const sent = contract === "tiered" ? [] : ["traces", ...deploymentMeasures];
  const none: Measured = Object.fromEntries(sent.map((one) => [one, 0]));
  return {
    stride: toWireStride(stride),
    usage: rows.map(({ bucket, dimensions, measured }) => ({
      time_bucket: toWireTime(bucket.start),
      dimensions: plain ? { api_key_short_key: dimensions.api_key_short_key } : dimensions,
      ...none,
      ...measured,
    })),
  };
}

/** Times have a Z and no zero fractions (our guess). */
export function toWireTime(instant: number): string {
  return new Date(instant).toISOString().replace(".000Z", "Z");
}
