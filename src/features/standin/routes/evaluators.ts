import { z } from "zod";
import { EVALUATOR_SPEND, type EvaluatorAmounts, type EvaluatorDay } from "../engine/evaluators.ts";
import { checked, invalid, noRoute, type Refusal } from "../engine/refusal.ts";
import { DAY } from "../engine/trend.ts";
import type { World } from "../engine/world.ts";
import { json, type Route } from "../http/route.ts";
import { tenantOf } from "./organisation.ts";

/** docs/platform.md, Evaluator spend. */
const spendQuery = z.strictObject({
  period_start: z.iso.date().transform((text) => Date.parse(text)),
  group_by: z.enum(["evaluator", "resource", "run_rule"]).optional(),
  evaluator_id: z.guid().toLowerCase().optional(),
  session_id: z.guid().toLowerCase().optional(),
  dataset_id: z.guid().toLowerCase().optional(),
});
type SpendQuery = z.output<typeof spendQuery>;
/** Accepted, and without effect (our guess). */
const NARROWING = ["agent_id", "type", "feedback_key", "resource_id", "tag_value_id"];

export function evaluators(world: World): Route[] {
  return EVALUATOR_SPEND.map((path) => ({
    method: "GET",
    path,
    needs: "workspace",
    handle({ query: given, headers }) {
      if (world.settings.evaluators === "off") throw noRoute("GET", path);
      const asked = Object.entries(given).filter(([name]) => !NARROWING.includes(name));
      const query = checked(spendQuery, Object.fromEntries(asked), "query");
      const { period_start: start, ...about } = query;
      if (Object.keys(about).length !== 1) throw wrongAbout();
      return json({
        groups: groupsOf(world, query, tenantOf(world, { headers })),
        period_start: toWireDate(start),
        period_end: toWireDate(start + 6 * DAY),
      });
    },
  }));
}

interface Group {
  readonly days: readonly object[];
  readonly [field: string]: unknown;
}

/** Groups in the order in which the organization lists them, without empty ones (our guesses). */
function groupsOf(world: World, query: SpendQuery, workspaceId: string): Group[] {
  const { period_start: start, group_by: by = "run_rule" } = query;
  const inRange = (from: number, to: number) =>
    Map.groupBy(
      world.evaluatorLedger.days({ workspaceId, start: from, end: to }).filter((row) => isAbout(row, query)),
      (row) => idOf(row, by),
    );
  const rows = inRange(start, start + 7 * DAY);
  const before = inRange(start - 7 * DAY, start);
  const week = inRange(mondayOf(world.now()), world.now());
  return [...rows].map(([id, ofGroup]) => {
    const [total, previous] = [sumOf(ofGroup), sumOf(before.get(id) ?? [])];
    return {
      ...namesOf(ofGroup[0] as EvaluatorDay, by),
      days: daysOf(ofGroup),
      total_spend_usd: toUsd(total.spend_usd),
      total_trace_count: total.trace_count,
      prev_total_spend_usd: toUsd(previous.spend_usd),
      prev_total_trace_count: previous.trace_count,
      spend_limit: by === "run_rule" ? limitOf(ofGroup[0] as EvaluatorDay, week.get(id) ?? []) : null,
    };
  });
}

/** The id of another workspace has no group (our guess). */
function isAbout({ evaluator, rule }: EvaluatorDay, query: SpendQuery): boolean {
  if (query.evaluator_id !== undefined) return query.evaluator_id === evaluator.id;
  if (query.session_id !== undefined) return query.session_id === rule.project?.id;
  if (query.dataset_id !== undefined) return query.dataset_id === rule.dataset?.id;
  return true;
}

type By = NonNullable<SpendQuery["group_by"]>;

function idOf({ evaluator, rule }: EvaluatorDay, by: By): string {
  if (by === "evaluator") return evaluator.id;
  return by === "run_rule" ? rule.id : (rule.project?.id ?? rule.dataset?.id ?? "");
}

/** JSON leaves out undefined fields. */
function namesOf({ evaluator, rule }: EvaluatorDay, by: By): object {
  const { project, dataset } = rule;
  const ofEvaluator = { evaluator_id: evaluator.id, evaluator_name: evaluator.name };
  const ofResource = {
    session_id: project?.id,
    session_name: project?.name,
    dataset_id: dataset?.id,
    dataset_name: dataset?.name,
  };
  if (by === "evaluator") return ofEvaluator;
  if (by === "resource") return ofResource;
  return { ...ofEvaluator, run_rule_id: rule.id, run_rule_name: rule.name, ...ofResource };
}

/** Days are sorted. Empty days are left out (our guess). */
function daysOf(rows: readonly EvaluatorDay[]): object[] {
  return [...Map.groupBy(rows, ({ day }) => day)]
    .sort(([a], [b]) => a - b)
    .map(([day, ofDay]) => {
      const { spend_usd, trace_count } = sumOf(ofDay);
      return { date: toWireDate(day), spend_usd: toUsd(spend_usd), trace_count };
    });
}

function sumOf(rows: readonly EvaluatorAmounts[]): EvaluatorAmounts {
  const sum = { spend_usd: 0, trace_count: 0 };
  for (const { spend_usd, trace_count } of rows) {
    sum.spend_usd += spend_usd;
    sum.trace_count += trace_count;
  }
  return sum;
}

/** Compared with spend since Monday, whatever the period (our guess). */
function limitOf({ rule }: EvaluatorDay, week: readonly EvaluatorDay[]): object | null {
  const { limitUsd } = rule;
  if (limitUsd === null) return null;
  const utilization = (100 * toUsd(sumOf(week).spend_usd)) / limitUsd;
  return { limit_usd: limitUsd, utilization_pct: utilization, window: "weekly" };
}

/** Monday 00:00 UTC, when weekly spend restarts (documented). 1970-01-01 was a Thursday. */
function mondayOf(now: number): number {
  const day = Math.floor(now / DAY);
  return (day - ((day + 3) % 7)) * DAY;
}

/** The nearest double prints with at most nine decimals. */
function toUsd(billionths: number): number {
  return billionths / 1e9;
}

function toWireDate(day: number): string {
  return new Date(day).toISOString().slice(0, 10);
}

function wrongAbout(): Refusal {
  const msg = "Exactly one of group_by, evaluator_id, session_id and dataset_id is required";
  return invalid([{ loc: ["query", "group_by"], msg, type: "value_error" }]);
}
