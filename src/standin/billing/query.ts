import { DateTime } from "luxon";
import { badRequest, invalid, type ValidationProblem } from "../http/refusal.ts";
import type { Settings } from "../world.ts";

/**
 * The query of both billing routes. Which parameters there are is the specification's; that a wrong one is answered
 * with 422 and a list of loc, msg, type is seen in client code; the words of msg and type are our guess, in
 * pydantic's manner. Unknown and doubled parameters are refused (our guess): a typing error must not pass for a filter.
 */
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

const GROUPINGS: readonly GroupBy[] = ["workspace", "project", "user", "api_key"];
const PARAMETERS = ["start_time", "end_time", "workspace_ids", "group_by"];
const ISO = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:?\d{2})?)?$/i;
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

type Given = Readonly<Record<string, unknown>>;

/** Refuses with every problem at once, or returns a query that can be answered. `now` in epoch ms. */
export function fromQuery(given: Given, settings: Settings, now: number): UsageQuery {
  const live = settings.contract === "day-granular";
  const problems: ValidationProblem[] = [];
  const problem = (loc: readonly (string | number)[], msg: string, type: string): void => {
    problems.push({ loc: ["query", ...loc], msg, type });
  };
  const known = live ? [...PARAMETERS, "kind", "trace_tier"] : PARAMETERS;
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) problem([name], `Extra inputs are not permitted: ${name}`, "extra_forbidden");
  }

  const single = (name: string): string | undefined => {
    const value = given[name];
    if (Array.isArray(value)) problem([name], "Input should be a single value", "single_value");
    return typeof value === "string" ? value : undefined;
  };
  const time = (name: string): number | undefined => {
    const text = single(name);
    if (!(name in given)) problem([name], "Field required", "missing");
    if (text === undefined) return undefined;
    const instant = fromIso(text);
    if (instant === undefined)
      problem([name], "Input should be a valid datetime", "datetime_from_date_parsing");
    return instant;
  };
  const oneOf = <T extends string>(name: string, values: readonly T[]): T | undefined => {
    const text = single(name);
    const value = values.find((one) => one === text);
    if (text !== undefined && value === undefined) {
      problem([name], `Input should be ${values.map((one) => `'${one}'`).join(" or ")}`, "enum");
    }
    return value;
  };

  const start = time("start_time");
  const end = time("end_time");
  if (start !== undefined && end !== undefined) {
    if (end <= start) problem(["end_time"], "end_time must be after start_time", "value_error");
    if (settings.refuseFuture && end > now)
      problem(["end_time"], "end_time must not be in the future", "value_error");
  }
  const ids = [given.workspace_ids ?? []].flat().map(String);
  if (!("workspace_ids" in given)) problem(["workspace_ids"], "Field required", "missing");
  // Documented: repeated, never joined with commas. A joined list is no UUID.
  ids.forEach((id, i) => {
    if (!UUID.test(id)) problem(["workspace_ids", i], "Input should be a valid UUID", "uuid_parsing");
  });
  const groupBy = oneOf("group_by", live ? [...GROUPINGS, "trace_tier" as const] : GROUPINGS);
  const kind = live ? oneOf("kind", ["traces", "langsmith_deployments"] as const) : undefined;
  const tier = live ? oneOf("trace_tier", ["longlived", "shortlived"] as const) : undefined;

  if (problems.length > 0 || start === undefined || end === undefined) throw invalid(problems);
  // Documented for group_by; that the filter is refused alike is our guess.
  if (kind === "langsmith_deployments" && (groupBy === "trace_tier" || tier !== undefined)) {
    throw badRequest("trace_tier cannot be used with kind=langsmith_deployments");
  }
  return {
    start,
    end,
    workspaceIds: [...new Set(ids.map((id) => id.toLowerCase()))],
    groupBy: groupBy ?? "workspace",
    kind: kind ?? "traces",
    tier: tier ?? null,
  };
}

/** ISO 8601 to epoch ms; UTC where no offset is given, midnight where no time is (our guesses). */
function fromIso(text: string): number | undefined {
  const [, date, time = "00:00", offset = "Z"] = ISO.exec(text) ?? [];
  if (date === undefined) return undefined;
  const instant = DateTime.fromISO(`${date}T${time}${offset.toUpperCase()}`);
  return instant.isValid ? instant.toMillis() : undefined;
}
