import { DateTime } from "luxon";
import { z } from "zod";
import { checked } from "../http/checked.ts";
import { badRequest, invalid } from "../http/refusal.ts";
import type { Settings } from "../settings.ts";

type GroupBy = "workspace" | "project" | "user" | "api_key" | "trace_tier";
export type Kind = "traces" | "langsmith_deployments";

export interface UsageQuery {
  /** Epoch ms. */
  readonly start: number;
  readonly end: number;
  /** Lower case, each once. */
  readonly workspaceIds: readonly string[];
  readonly groupBy: GroupBy;
  readonly kind: Kind;
  readonly tier: "longlived" | "shortlived" | null;
}

const ISO = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:?\d{2})?)?$/i;
const GROUPINGS = ["workspace", "project", "user", "api_key"] as const;

/** ISO 8601 to epoch ms; UTC without an offset, midnight without a time (our guesses). */
const instant = z.string().transform((text, context) => {
  const [, date, time = "00:00", offset = "Z"] = ISO.exec(text) ?? [];
  const parsed = date === undefined ? undefined : DateTime.fromISO(`${date}T${time}${offset.toUpperCase()}`);
  if (parsed?.isValid) return parsed.toMillis();
  context.addIssue("Input should be a valid datetime");
  return z.NEVER;
});

const parameters = {
  start_time: instant,
  end_time: instant,
  // Repeated, never joined with commas (documented): a joined list is no UUID.
  workspace_ids: z.preprocess(
    (given) => (given === undefined ? undefined : [given].flat()),
    z.array(z.guid().toLowerCase()),
  ),
};
/** Unknown and repeated parameters are refused (our guess): a typing error must not pass for a filter. */
const tiered = z.strictObject({ ...parameters, group_by: z.enum(GROUPINGS).default("workspace") });
const dayGranular = z.strictObject({
  ...parameters,
  group_by: z.enum([...GROUPINGS, "trace_tier"]).default("workspace"),
  kind: z.enum(["traces", "langsmith_deployments"]).default("traces"),
  trace_tier: z.enum(["longlived", "shortlived"]).optional(),
});

/**
 * Reads the query of both billing routes (docs/platform.md, Contracts), or refuses it with every problem. `now` in epoch
 * ms. That a wrong query is answered with 422 and a list of loc, msg and type is seen in client code.
 */
export function fromQuery(
  given: Readonly<Record<string, unknown>>,
  { contract, refuseFuture }: Settings,
  now: number,
): UsageQuery {
  // The tiered contract has fewer parameters.
  const schema: z.ZodType<z.output<typeof dayGranular>> =
    contract === "tiered"
      ? tiered.transform((query) => ({ ...query, kind: "traces" as const }))
      : dayGranular;
  const query = checked(schema, given, "query");
  const { start_time: start, end_time: end, group_by: groupBy, kind, trace_tier: tier = null } = query;
  if (end <= start) throw wrongEnd("end_time must be after start_time");
  if (refuseFuture && end > now) throw wrongEnd("end_time must not be in the future");
  // Documented for group_by; that the filter is refused too is our guess.
  if (kind === "langsmith_deployments" && (groupBy === "trace_tier" || tier !== null)) {
    throw badRequest("trace_tier cannot be used with kind=langsmith_deployments");
  }
  return { start, end, workspaceIds: [...new Set(query.workspace_ids)], groupBy, kind, tier };
}

function wrongEnd(msg: string) {
  return invalid([{ loc: ["query", "end_time"], msg, type: "value_error" }]);
}
