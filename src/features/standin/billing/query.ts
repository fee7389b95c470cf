import { z } from "zod";
import type { TraceTier } from "../engine/ledger.ts";
import { badRequest, checked, invalid, type Refusal } from "../engine/refusal.ts";
import type { Settings } from "../engine/settings.ts";
import { instantOf } from "../engine/stride.ts";

type GroupBy = "workspace" | "project" | "user" | "api_key" | "trace_tier";
type Kind = "traces" | "langsmith_deployments";

export interface UsageQuery {
  readonly start: number;
  readonly end: number;
  /** Lower case, no repeats. */
  /** Undefined: all that the key reads. */
  readonly workspaceIds: readonly string[] | undefined;
  readonly groupBy: GroupBy;
  readonly kind: Kind;
  /** Null: all tiers. */
  readonly tier: TraceTier | null;
}

const GROUPINGS = ["workspace", "project", "user", "api_key"] as const;

/** ISO 8601 (`instantOf`) to epoch ms. */
export const instant = z.string().transform((text, context) => {
  const parsed = instantOf(text);
  if (parsed !== undefined) return parsed;
  context.addIssue("Input should be a valid datetime");
  return z.NEVER;
});

const parameters = {
  start_time: instant,
  end_time: instant,
  // Repeated, never joined with commas (documented).
  workspace_ids: z.preprocess(
    (given) => (given === undefined ? undefined : [given].flat()),
    z.array(z.guid().toLowerCase()).optional(),
  ),
};
/** Repeating a parameter is refused (our guess). The tiered contract has fewer parameters (docs/platform.md, Contracts). */
const tiered = z.strictObject({ ...parameters, group_by: z.enum(GROUPINGS).default("workspace") });
const dayGranular = z.strictObject({
  ...parameters,
  group_by: z.enum([...GROUPINGS, "trace_tier"]).default("workspace"),
  kind: z.enum(["traces", "langsmith_deployments"]).default("traces"),
  trace_tier: z.enum(["longlived", "shortlived"]).optional(),
});
type Given = Readonly<Record<string, unknown>>;

/**
 * Query of both billing routes (docs/platform.md, Contracts). `now`: epoch ms. A wrong query is refused with 422 and a list of
 * loc, msg and type (seen in client code).
 */
export function fromQuery(
  given: Given,
  { contract, unknownParameters, refuseFuture, workspaceIds: ids }: Settings,
  now: number,
): UsageQuery {
  const names = Object.keys(contract === "tiered" ? tiered.shape : dayGranular.shape);
  const understood = withoutUnknown(given, names, unknownParameters);
  const schema: z.ZodType<z.output<typeof dayGranular>> =
    contract === "tiered"
      ? tiered.transform((query) => ({ ...query, kind: "traces" as const }))
      : dayGranular;
  const query = checked(schema, understood, "query");
  const { start_time: start, end_time: end, group_by: groupBy, kind } = query;
  if (ids === "required" && query.workspace_ids === undefined)
    throw invalid([{ loc: ["query", "workspace_ids"], msg: "Field required", type: "missing" }]);
  if (end <= start) throw wrongEnd("end_time must be after start_time");
  if (refuseFuture && end > now) throw wrongEnd("end_time must not be in the future");
  // A tier is refused as a dimension, ignored as a filter (documented).
  if (kind === "langsmith_deployments" && groupBy === "trace_tier") {
    throw badRequest("group_by=trace_tier cannot be used with kind=langsmith_deployments");
  }
  const tier = kind === "traces" ? (query.trace_tier ?? null) : null;
  const workspaceIds = query.workspace_ids && [...new Set(query.workspace_ids)];
  return { start, end, workspaceIds, groupBy, kind, tier };
}

/** How servers treat unknown parameters is not known. For `422`, the schema refuses them. */
function withoutUnknown(given: Given, names: readonly string[], how: Settings["unknownParameters"]): Given {
  const unknown = Object.keys(given).filter((name) => !names.includes(name));
  if (how === "400" && unknown.length > 0) throw badRequest(`Unknown query parameter: ${unknown.join(", ")}`);
  if (how !== "ignore") return given;
  return Object.fromEntries(Object.entries(given).filter(([name]) => names.includes(name)));
}

export function wrongEnd(msg: string): Refusal {
  return invalid([{ loc: ["query", "end_time"], msg, type: "value_error" }]);
}
