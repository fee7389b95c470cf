import { z } from "zod";
import { nearest } from "../../../config/spelling.ts";
import { addDays, addMonths, type Days, dayOf, daysBetween, monthStart } from "../../../domain/time/days.ts";
import { GROUPINGS, type GroupBy } from "../../../domain/usage/record.ts";
import { UsageError } from "../../../errors.ts";
import { COUNTED, type Counted } from "../../../store/figures/counted.ts";
import type { Per } from "../../../store/figures/records.ts";
import type { UsageSource, UsageWorkspace } from "../../../store/figures/sources.ts";

/** More would be a page of thousands of cells, and read millions of records: users have the most. */
export const MOST_DAYS = { hour: 31, hourOfUsers: 7, day: 92 } as const;
const DEFAULT_DAYS = 30;

const text = z.string().max(1000);
/** A form sends a field that was left empty as an empty text. */
const optional = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (value === "" ? undefined : value), schema.optional());
const day = text.refine(
  (value) => /^\d{4}-\d{2}-\d{2}$/.test(value) && isDay(value),
  "it is not a day such as 2026-03-01",
);

/** What the page shows: counts, or what they cost. */
export const MEASURED = [...COUNTED, "cost"] as const;
type Measured = Counted | "cost";

export const USAGE_QUERY = z.object({
  source: optional(text),
  by: optional(z.enum(GROUPINGS, `it is not one of ${GROUPINGS.join(", ")}`)),
  from: optional(day),
  to: optional(day),
  /** In place of `from` and `to`. */
  month: optional(
    text.refine((value) => /^\d{4}-(0[1-9]|1[0-2])$/.test(value), "it is not a month such as 2026-03"),
  ),
  per: optional(z.enum(["hour", "day", "month"], "it is not one of hour, day, month")),
  measure: optional(z.enum(MEASURED, `it is not one of ${MEASURED.join(", ")}`)),
  currency: optional(text),
  workspace: optional(text),
  /** Of the file. */
  table: optional(z.enum(["ids", "time"], "it is not one of ids, time")),
});
export type UsageQuery = z.output<typeof USAGE_QUERY>;

/** What is asked for, as far as it can be shown. */
export interface Question {
  readonly source: UsageSource;
  readonly workspace: UsageWorkspace | undefined;
  readonly by: GroupBy;
  /** As it was asked for. */
  readonly asked: Days;
  /** Of it, the days since the data start, up to today. May be empty. */
  readonly range: Days;
  readonly per: Per;
  /** Why another size of bucket is shown than was asked for. */
  readonly perNote: string | undefined;
  readonly measure: Measured;
  readonly currency: string | undefined;
  /** Whether volume tiers or closed months decide what traces cost. */
  readonly hasSteps: boolean;
  readonly today: string;
  /** Whether anything of the measure was ever asked for. */
  readonly isLoaded: boolean;
}

/** Errors: `source_unknown`, `workspace_unknown`, `range_reversed`. */
export function questionOf(
  query: UsageQuery,
  given: { source: UsageSource; workspaces: readonly UsageWorkspace[]; now: number; isLoaded?: boolean },
): Question {
  const { source, workspaces, now, isLoaded = true } = given;
  const today = dayOf(now);
  const asked = rangeOf(query, today);
  const range = shownOf(asked, { dataStart: source.dataStart, today });
  const measure = query.measure ?? "traces";
  return {
    ...{
      source,
      workspace: workspaceOf(query.workspace, workspaces),
      by: query.by ?? "workspace",
      asked,
      range,
      today,
    },
    ...bucketOf({
      asked: query.per,
      days: Math.max(0, daysBetween(range)),
      measure,
      by: query.by ?? "workspace",
    }),
    ...{ measure, currency: query.currency, hasSteps: true, isLoaded },
  };
}

export function sourceOf(
  asked: string | undefined,
  sources: readonly UsageSource[],
): UsageSource | undefined {
  const found = asked === undefined ? sources[0] : sources.find(({ slug }) => slug === asked);
  if (found === undefined && asked !== undefined)
    throw unknown(
      "source",
      asked,
      sources.map(({ slug }) => slug),
    );
  return found;
}

function workspaceOf(
  asked: string | undefined,
  workspaces: readonly UsageWorkspace[],
): UsageWorkspace | undefined {
  const found = workspaces.find(({ id }) => id === asked);
  if (found === undefined && asked !== undefined)
    throw unknown(
      "workspace",
      asked,
      workspaces.map(({ id }) => id),
    );
  return found;
}

function unknown(what: string, asked: string, known: readonly string[]): UsageError {
  const near = nearest(asked, known);
  return new UsageError({
    code: `${what}_unknown`,
    message: `${JSON.stringify(asked)} is not a known ${what}.${near === undefined ? "" : ` Did you mean ${near}?`}`,
    next:
      what === "source" ? "`usage-etl source list` lists them." : "`usage-etl workspace list` lists them.",
  });
}

function rangeOf({ from, to, month }: UsageQuery, today: string): Days {
  if (month !== undefined) return { from: `${month}-01`, to: addMonths(`${month}-01`, 1) };
  const end =
    to ?? (from === undefined || from >= today ? addDays(today, from === undefined ? 0 : 1) : today);
  const start = from ?? addDays(end, -DEFAULT_DAYS);
  if (start < end) return { from: start, to: end };
  throw new UsageError({
    code: "range_reversed",
    message: `The range begins on ${start} and ends before ${end}, which leaves no day.`,
    next: "Give a last day that is later: `to` is not included.",
  });
}

function shownOf({ from, to }: Days, { dataStart, today }: { dataStart: string; today: string }): Days {
  const start = from < dataStart ? dataStart : from;
  const end = to > addDays(today, 1) ? addDays(today, 1) : to;
  return start < end ? { from: start, to: end } : { from: start, to: start };
}

function bucketOf(given: {
  asked: Per | undefined;
  days: number;
  measure: Measured;
  by: GroupBy;
}): Pick<Question, "per" | "perNote"> {
  const { asked, days, measure, by } = given;
  const fitting = days <= MOST_DAYS.day ? "day" : "month";
  if (asked === undefined)
    return { per: days <= 2 && measure === "traces" ? "hour" : fitting, perNote: undefined };
  if (asked === "hour" && measure !== "traces") {
    const why =
      measure === "cost" ? "Costs are estimated by day." : "Only traces of all tiers are kept by hour.";
    return { per: fitting, perNote: `${why} So ${fitting}s are shown in place of hours.` };
  }
  const most =
    asked === "hour" && by === "user" ? MOST_DAYS.hourOfUsers : asked === "month" ? days : MOST_DAYS[asked];
  if (days <= most) return { per: asked, perNote: undefined };
  return {
    per: fitting,
    perNote: `${asked === "hour" ? "Hours" : "Days"}${most === MOST_DAYS.hourOfUsers ? " by user" : ""} are shown for at most ${most} days, and this range has ${days.toLocaleString("en-US")}. So ${fitting}s are shown.`,
  };
}

/** Why a question is not answered: costs that a dimension divides are read record by record. */
export function refusalOf({ measure, by, range }: Question): string | undefined {
  const days = daysBetween(range);
  if (measure !== "cost" || by === "workspace" || days <= MOST_DAYS.day) return undefined;
  return `Costs by ${by === "api_key" ? "API key" : by} are shown for at most ${MOST_DAYS.day} days, and this range has ${days.toLocaleString("en-US")}. Choose a shorter one, or costs by workspace.`;
}

/** Ranges that people ask for most, each with its name. */
export function presetsOf(today: string): readonly { readonly name: string; readonly range: Days }[] {
  const thisMonth = monthStart(today);
  return [
    { name: "Last 30 days", range: { from: addDays(today, -DEFAULT_DAYS), to: today } },
    { name: "This month", range: { from: thisMonth, to: addMonths(thisMonth, 1) } },
    { name: "Last month", range: { from: addMonths(thisMonth, -1), to: thisMonth } },
    { name: "Last 12 months", range: { from: addMonths(thisMonth, -12), to: thisMonth } },
  ];
}

function isDay(value: string): boolean {
  const at = Date.parse(value);
  return !Number.isNaN(at) && dayOf(at) === value && value >= "1970-01-01" && value < "9000-01-01";
}
