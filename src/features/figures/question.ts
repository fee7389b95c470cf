import { z } from "zod";
import { UsageError } from "../../core/base/errors.ts";
import { daysTitle } from "../../core/domain/months/month.ts";
import {
  addDays,
  addMonths,
  type Days,
  dayOf,
  daysBetween,
  isDay,
  monthStart,
  rangeBefore,
  rangeFrom,
  rangeToCompare,
} from "../../core/domain/time/days.ts";
import { METER } from "../../core/domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../core/domain/usage/record.ts";
import { DIMENSIONS } from "../../core/store/db/dimensions.ts";
import { COUNTED, type Counted, meterOfCounted } from "../../core/store/figures/counted.ts";
import type { Per } from "../../core/store/figures/records.ts";
import type { UsageSource, UsageWorkspace } from "../../core/store/figures/sources.ts";
import {
  ALL,
  address,
  chips,
  choice,
  dayField,
  dimensionTitle,
  type Fields,
  filterBar,
  type Html,
  hidden,
  html,
  lastDayField,
  optional,
  plainName,
} from "../../web/parts.ts";
import { unknownName } from "../catalog/named.ts";

/** Longer ranges would show thousands of cells and read millions of records. Users have the most. */
const MOST_DAYS = { hour: 31, hourOfUsers: 7, day: 92 } as const;
const DEFAULT_DAYS = 30;
const ROWS = [20, 100, 500] as const;
const MOST_FIGURES = 50_000;

const text = z.string().max(1000);
const day = text.refine(isDay, "it is not a day such as 2026-03-01");

const MEASURED = [...COUNTED, "cost"] as const;
type Measured = Counted | "cost";

const DIVIDERS = [...GROUPINGS, "owner"] as const;
type Divider = GroupBy | "owner";

const SORTS = ["amount", "growth", "amount_up", "growth_up"] as const;

export const USAGE_QUERY = z.object({
  source: optional(text),
  by: optional(z.enum(DIVIDERS, `it is not one of ${DIVIDERS.join(", ")}`)),
  from: optional(day),
  to: optional(day),
  month: optional(
    text.refine((value) => /^\d{4}-(0[1-9]|1[0-2])$/.test(value), "it is not a month such as 2026-03"),
  ),
  per: optional(z.enum(["hour", "day", "month"], "it is not one of hour, day, month")),
  measure: optional(z.enum(MEASURED, `it is not one of ${MEASURED.join(", ")}`)),
  currency: optional(text),
  workspace: optional(text),
  /** First day of the earlier range to compare with. Default: the range directly before. */
  against: optional(day),
  find: optional(text),
  rows: optional(z.enum(ROWS.map(String), `it is not one of ${ROWS.join(", ")}`)),
  sort: optional(z.enum(SORTS, `it is not one of ${SORTS.join(", ")}`)),
  table: optional(z.enum(["ids", "time"], "it is not one of ids, time")),
});
export type UsageQuery = z.output<typeof USAGE_QUERY>;

export interface Question {
  readonly source: UsageSource;
  readonly workspace: UsageWorkspace | undefined;
  readonly by: Divider;
  readonly requested: Days;
  /** Days of `requested` since the data start, up to today. May be empty. */
  readonly range: Days;
  /** The compared days. By day, today is left out, because it is not a whole day. */
  readonly ended: Days;
  readonly per: Per;
  readonly perNote: string | undefined;
  readonly measure: Measured;
  readonly currency: string | undefined;
  readonly against: string | undefined;
  /** The earlier range. Empty if it begins before the data start, because its usage is unknown. */
  readonly before: Days;
  readonly find: string | undefined;
  readonly rows: number;
  readonly sort: (typeof SORTS)[number];
  readonly today: string;
  readonly isLoaded: boolean;
}

/** Errors: `workspace_unknown`, `range_reversed`, `range_not_earlier`. */
export function questionOf(
  query: UsageQuery,
  { source, now, isLoaded }: { source: UsageSource; now: number; isLoaded: boolean },
): Question {
  const today = dayOf(now);
  const requested = rangeOf(query, today);
  const shown = shownOf(requested, { dataStart: source.dataStart, today });
  const { measure = "traces", by = "workspace" } = query;
  const bucket = bucketOf({ requested: query.per, days: Math.max(0, daysBetween(shown)), measure, by });
  const hasToday = bucket.per === "day" && shown.from < today && today < shown.to;
  const ended = hasToday ? { from: shown.from, to: today } : shown;
  // A list sorted by growth shows only the days that are compared.
  const range = query.sort?.startsWith("growth") ? ended : shown;
  const question: Question = {
    source,
    workspace: workspaceOf(query.workspace, source),
    by,
    requested,
    range,
    ended,
    ...bucket,
    measure,
    currency: query.currency,
    against: query.against,
    before: beforeOf(ended, query.against, source.dataStart),
    find: query.find,
    rows: ROWS[0],
    sort: query.sort ?? "amount",
    today,
    isLoaded,
  };
  return {
    ...question,
    rows: rowsOf(question).findLast((one) => one <= Number(query.rows ?? ROWS[0])) ?? ROWS[0],
  };
}

/** Numbers of lines to choose from. Each line has a figure for each bucket. */
export function rowsOf({ range, per }: Pick<Question, "range" | "per">): readonly number[] {
  const buckets = { hour: 24, day: 1, month: 1 / 28 }[per] * daysBetween(range);
  return ROWS.filter((rows, n) => n === 0 || rows * buckets <= MOST_FIGURES);
}

function workspaceOf(requested: string | undefined, { workspaces }: UsageSource): UsageWorkspace | undefined {
  if (requested === undefined) return undefined;
  const found = workspaces.find(({ id }) => id === requested);
  if (found !== undefined) return found;
  throw unknownName({
    code: "workspace_unknown",
    what: "known workspace",
    name: requested,
    known: workspaces.map(({ id }) => id),
    next: "`usage-etl workspace list` lists them.",
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
    next: "Give a last day that is later. In an address, the day `to` is not included.",
  });
}

/** `rangeToCompare`, or the range from `against` on. Empty if it begins before the data start. */
function beforeOf(range: Days, against: string | undefined, dataStart: string): Days {
  const before = against === undefined ? rangeToCompare(range) : rangeFrom(against, range);
  if (before.to > range.from) {
    throw new UsageError({
      code: "range_not_earlier",
      message: `The range to compare with, ${before.from} to ${addDays(before.to, -1)}, does not end before ${range.from}.`,
      next: `Choose ${rangeBefore(range).from} or an earlier day as the start of the compared range.`,
    });
  }
  return before.from < dataStart ? { from: range.from, to: range.from } : before;
}

function shownOf({ from, to }: Days, { dataStart, today }: { dataStart: string; today: string }): Days {
  const start = from < dataStart ? dataStart : from;
  const end = to > addDays(today, 1) ? addDays(today, 1) : to;
  return start < end ? { from: start, to: end } : { from: start, to: start };
}

function bucketOf(given: {
  requested: Per | undefined;
  days: number;
  measure: Measured;
  by: Divider;
}): Pick<Question, "per" | "perNote"> {
  const { requested, days, measure, by } = given;
  const fitting = days <= MOST_DAYS.day ? "day" : "month";
  const hasHours = measure === "traces" && by !== "owner";
  if (requested === undefined) return { per: days <= 2 && hasHours ? "hour" : fitting, perNote: undefined };
  if (requested === "hour" && !hasHours)
    return {
      per: fitting,
      perNote: `Only traces by workspace, project, user and API key are kept by hour. So ${fitting}s are shown in place of hours.`,
    };
  const byUser = requested === "hour" && by === "user";
  const most = byUser ? MOST_DAYS.hourOfUsers : { ...MOST_DAYS, month: days }[requested];
  if (days <= most) return { per: requested, perNote: undefined };
  return {
    per: fitting,
    perNote: `${requested === "hour" ? "Hours" : "Days"}${byUser ? " by user" : ""} are shown for at most ${most} days, and this range has ${days.toLocaleString("en-US")}. So ${fitting}s are shown.`,
  };
}

export function refusalOf({ measure, by, range }: Question): string | undefined {
  const days = daysBetween(range);
  if (by === "owner" && measure !== "traces" && measure !== "cost")
    return `Owners have traces and costs, not ${COUNTED_WORDS[measure]}. Choose one of these.`;
  if (measure !== "cost" && by !== "owner" && !METER[meterOfCounted(measure)].groupings.includes(by))
    return `The platform does not split ${COUNTED_WORDS[measure]} by ${idWord({ by, measure })}. Choose workspace or project: a ${DIMENSIONS[METER[meterOfCounted(measure)].project].title} stands in the place of a project.`;
  if (measure !== "cost" || by === "workspace" || days <= MOST_DAYS.day) return undefined;
  return `Costs by ${idWord({ by, measure })} are shown for at most ${MOST_DAYS.day} days, and this range has ${days.toLocaleString("en-US")}. Choose a shorter one, or costs by workspace.`;
}

function presetsOf(
  requested: Days,
  today: string,
): readonly { readonly name: string; readonly range: Days }[] {
  const thisMonth = monthStart(today);
  const later = rangeFrom(requested.to, requested);
  return [
    { name: "← Earlier", range: rangeBefore(requested) },
    ...(later.from > today ? [] : [{ name: "Later →", range: later }]),
    { name: "Last 30 days", range: { from: addDays(today, -DEFAULT_DAYS), to: today } },
    { name: "This month", range: { from: thisMonth, to: addMonths(thisMonth, 1) } },
    { name: "Last month", range: { from: addMonths(thisMonth, -1), to: thisMonth } },
    { name: "Last 12 months", range: { from: addMonths(thisMonth, -12), to: thisMonth } },
  ];
}

export function whyEmpty({ requested, source, today }: Question): string {
  return requested.to <= source.dataStart
    ? `Usage of ${source.slug} begins on ${source.dataStart}.`
    : `Today is ${today}: the range lies in the future.`;
}

export const COUNTED_WORDS: Readonly<Record<Counted, string>> = {
  traces: "traces",
  longlived: "long-lived traces",
  nodes_executed: "nodes executed",
  agent_runs: "agent runs",
  agent_uptime_seconds: "seconds of agent uptime",
  lcu: "compute units (LCU) of sandboxes",
  lsu: "storage units (LSU) of sandboxes",
  compute_standard_units: "compute standard units of sandboxes",
  storage_standard_units: "storage standard units of sandboxes",
  spend_usd: "USD spent by evaluators",
  evaluated_traces: "evaluated traces",
};

export const NO_INVOICE =
  "The platform computes this from model prices. No invoice has it, and no bill here counts it.";

export function titleOf({ measure }: Pick<Question, "measure">): string {
  return measure === "cost" ? "Estimated costs" : "Usage";
}

/** The source and the filters in words, for titles and paper. */
export function filtersOf(question: Question): string {
  const { source, workspace, find, measure } = question;
  return [
    source.slug,
    `${measure === "cost" ? "cost" : COUNTED_WORDS[measure]} by ${idWord(question)}`,
    ...(workspace === undefined ? [] : [`workspace ${plainName(workspace.name ?? workspace.id)}`]),
    ...(find === undefined ? [] : [`name has “${find}”`]),
  ].join(" · ");
}

/** The word for an id. A "project" of deployments is not a project with traces. */
export function idWord({ by, measure }: Pick<Question, "by" | "measure">): string {
  if (by === "owner") return "team";
  return dimensionTitle(by, measure === "cost" ? "traces" : meterOfCounted(measure));
}

export function addressOf(
  question: Question,
  changed: Readonly<Record<string, string | undefined>> = {},
  path = "/usage",
): string {
  return address(path, { ...fieldsOf(question), ...changed });
}

function fieldsOf(question: Question): Fields {
  const { source, by, requested, per, measure, currency, workspace, against, find, rows, sort } = question;
  return {
    source: source.slug,
    by,
    ...requested,
    per,
    measure,
    currency: measure === "cost" ? currency : undefined,
    workspace: workspace?.id,
    against,
    find,
    rows: rows === ROWS[0] ? undefined : rows,
    sort: sort === "amount" ? undefined : sort,
  };
}

/** Measures by the heads of their group in the form. */
const MEASURE_GROUPS: Readonly<Record<string, readonly Measured[]>> = {
  Cost: ["cost"],
  Traces: ["traces", "longlived"],
  Deployments: ["nodes_executed", "agent_runs", "agent_uptime_seconds"],
  Sandboxes: ["lcu", "lsu", "compute_standard_units", "storage_standard_units"],
  Evaluators: ["spend_usd", "evaluated_traces"],
};

/** What a refused form had, and why it was refused. */
export interface Refused {
  readonly given: Pick<UsageQuery, "from" | "to" | "against">;
  readonly field: "range" | "against";
  readonly why: string;
  readonly code: string;
}

export function questionForm(question: Question, currencies: readonly string[], refused?: Refused): Html {
  const { source, by, requested, range, per, measure, currency, workspace, sort, today } = question;
  const { slug, workspaces } = source;
  const {
    from = requested.from,
    to = sort.startsWith("growth") && range.from < range.to ? range.to : requested.to,
    against = question.against,
  } = refused?.given ?? {};
  const dimensions = DIVIDERS.map((value) => ({ value, text: idWord({ by: value, measure }) }));
  const named = [ALL, ...workspaces.map(({ id, name }) => ({ value: id, text: plainName(name ?? id) }))];
  const isBad = (field: Refused["field"]) => refused?.field === field;
  const problem = (field: Refused["field"]) =>
    isBad(field) &&
    html`<p class="problem" id="problem-${field}" role="alert">${refused?.why} <small>Code: <code>${refused?.code}</code></small></p>`;
  const presets = presetsOf(requested, today).map(({ name, range }) => {
    const isHere = range.from === requested.from && range.to === requested.to;
    const href = addressOf(question, { ...range, per: undefined, against: undefined });
    return html`<li><a href="${href}" ${isHere && html`aria-current="true"`}>${name}</a></li>`;
  });
  const yearBefore = addMonths(requested.from, -12);
  const compared = [
    { value: "", text: "the period before" },
    ...(requested.from === monthStart(requested.from)
      ? [{ value: yearBefore, text: "the year before" }]
      : []),
  ];
  const isOther = against !== undefined && !compared.some(({ value }) => value === against);
  const options = isOther ? [...compared, { value: against, text: `from ${against}` }] : compared;
  return html`${filterBar(
    "/usage",
    html`${hidden({ source: slug, sort: sort === "amount" ? undefined : sort })}
      ${choice("Group by", "by", dimensions, by)}
      <label>Measure <select name="measure">${Object.entries(MEASURE_GROUPS).map(
        ([title, own]) =>
          html`<optgroup label="${title}">${own.map((value) => html`<option value="${value}" ${value === measure && "selected"}>${value === "cost" ? "cost" : COUNTED_WORDS[value]}</option>`)}</optgroup>`,
      )}</select></label>
      ${measure === "cost" && currencies.length > 1 && choice("Currency", "currency", currencies, currency)}
      ${workspaces.length > 1 && choice("Workspace", "workspace", named, workspace?.id ?? "")}
      <details class="range" ${isBad("range") && "open"}><summary>${daysTitle(requested)}</summary>
        <ul class="presets">${presets}</ul>
        <div class="row">${dayField("From", "from", from)}${lastDayField(to)}</div>${problem("range")}</details>
      ${choice("Compare with", "against", options, against ?? "")}${problem("against")}`,
    choice("Interval", "per", ["hour", "day", "month"], per),
  )}${chips([
    ...(workspace === undefined
      ? []
      : [
          {
            label: `workspace ${plainName(workspace.name ?? workspace.id)}`,
            without: addressOf(question, { workspace: undefined }),
          },
        ]),
    ...(question.find === undefined
      ? []
      : [{ label: `name has “${question.find}”`, without: addressOf(question, { find: undefined }) }]),
    ...(question.against === undefined
      ? []
      : [
          {
            label: `compared with ${question.against}`,
            without: addressOf(question, { against: undefined }),
          },
        ]),
  ])}`;
}

export function findForm(question: Question, one: string): Html {
  const { find } = question;
  return html`<form class="row find" method="get" action="/usage">
    ${hidden({ ...fieldsOf(question), find: undefined, rows: undefined })}
    <label>Find a ${one} <input type="search" name="find" value="${find ?? ""}"></label>
    <button>Find</button>
  </form>`;
}
