import { counted } from "../../core/base/printable.ts";
import { type CalendarMonth, monthTitle, shortDays } from "../../core/domain/months/month.ts";
import { addDays, dayOf } from "../../core/domain/time/days.ts";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import { type Amount, amountShown } from "../../core/domain/usage/amount.ts";
import { MEASURE_DIGITS, METER_NAME, type Meter } from "../../core/domain/usage/meter.ts";
import type { ListedSource } from "../../core/store/activity/overview.ts";
import { address, capital, type Html, html, joined, money, name, type Todo } from "../../web/parts.ts";
import { type Bill, costsText } from "../costs/bill.ts";
import { workspaceName } from "../costs/bill-table.ts";
import type { MonthLook } from "./close-preview.ts";
import { DISAGREEMENTS, OPEN_WORDS, type OpenPoint, type OpenReason, openPointsOf } from "./open-days.ts";
import type { OpenDifference } from "./open-differences.store.ts";

/** One thing that keeps a month open: a reason and a meter, whatever the dimensions and days. */
export interface OpenItem {
  readonly reason: OpenReason;
  readonly meter: Meter;
  /** Workspace days by one dimension, so that no day counts twice. */
  readonly days: number;
  readonly first: number;
  readonly last: number;
  readonly workspaceIds: readonly string[];
}

export function openItemsOf(points: readonly OpenPoint[]): OpenItem[] {
  return [...Map.groupBy(points, ({ reason, meter }) => `${reason} ${meter}`).values()].map((some) => {
    const [{ reason, meter }] = some as [OpenPoint];
    return {
      reason,
      meter,
      days: Math.max(...some.map(({ days }) => days)),
      first: Math.min(...some.map(({ first }) => first)),
      last: Math.max(...some.map(({ last }) => last)),
      workspaceIds: [...new Set(some.flatMap(({ workspaceIds }) => workspaceIds))],
    };
  });
}

export function itemTitle({ reason, meter }: Pick<OpenItem, "reason" | "meter">): string {
  return `${capital(METER_NAME[meter])}: ${OPEN_WORDS[reason]}`;
}

const isDifference = ({ reason }: Pick<OpenItem, "reason">) =>
  reason === "open" || DISAGREEMENTS.includes(reason);

interface Checked {
  readonly look: MonthLook;
  readonly source: ListedSource;
  readonly bill: Bill;
  readonly differences: readonly OpenDifference[];
  /** Earlier months that are not closed, the oldest first. */
  readonly earlier: readonly CalendarMonth[];
  readonly nameOf: (workspaceId: string) => string;
  readonly mayClose: boolean;
}

/** Lists the steps to a close of the month: done ones, those that keep it open, and gaps of the bill. */
export function checklist(of: Checked): Todo[] {
  const { look, source, bill, earlier, mayClose } = of;
  const { month, open, required, provider } = look;
  const items = openItemsOf(openPointsOf(open));
  const differing = items.filter(isDifference);
  const unproved = items.filter(({ reason }) => reason === "not_reconciled");
  const unloaded = items.filter((one) => !isDifference(one) && !unproved.includes(one));
  const isOfTraces = ({ meter }: OpenItem) => meter === "traces";
  const behind = open.some(({ reason }) => reason === "provider_differs")
    ? 0
    : Math.max(
        0,
        ...provider.outcomes
          .filter(({ outcome }) => outcome === "differs")
          .map(({ workspaces }) => workspaces),
      );
  const equal = provider.outcomes.find(({ meter, outcome }) => meter === "traces" && outcome === "equal");
  const ofProvider =
    equal === undefined ? "" : `; provider's totals equal for ${counted(equal.workspaces, "workspace")}`;
  const done = (what: string, details: string): Todo => ({ tone: "ok", mark: "✓", what, details });
  return [
    ...(unloaded.length > 0
      ? unloaded.map((one) => loadTodo(one, of))
      : [done("Loaded and final", `All days, ${counted(required.length, "workspace")}`)]),
    ...unproved.map(
      (one): Todo => ({
        tone: "warn",
        mark: "◇",
        what: itemTitle(one),
        details: placesOf(one, of),
        action: link(
          address("/coverage", { source: source.source, from: month.start, to: month.end, stride: "day" }),
          "View",
        ),
      }),
    ),
    ...(behind > 0 || [...differing, ...unproved, ...unloaded].some(isOfTraces)
      ? []
      : [done("Traces proved", `Export and totals agree${ofProvider}`)]),
    ...differing.map((one) => differsTodo(one, of)),
    ...unloadedTodos(bill),
    ...(look.lacksPrice
      ? [
          {
            tone: "warn",
            mark: "○",
            what: "No price is valid",
            details: "The month has no costs to close until prices are imported.",
          } as const,
        ]
      : []),
    ...(behind > 0
      ? [
          {
            tone: "bad",
            mark: "≠",
            what: `Traces: ${OPEN_WORDS.provider_differs}`,
            details: `Of ${counted(behind, "workspace")}`,
            action: link(address("/differences", { source: source.source, says: "total" }), "View"),
          } as const,
        ]
      : []),
    ...earlierTodo(earlier, source.source),
    ...(mayClose ? [] : [{ tone: "none", mark: "–", what: "An operator can close it" } as const]),
  ];
}

/** Workspaces with usage that no sync loads. */
export function unloadedTodos({ unloaded }: Pick<Bill, "unloaded">): Todo[] {
  return unloaded.map((one) => {
    const cost = one.costs.length === 0 ? "" : `, about ${costsText(one.costs)}`;
    const asIn = one.asIn === undefined ? "" : ` (as in ${one.asIn})`;
    return {
      tone: "warn",
      mark: "○",
      what: html`Workspace ${workspaceName(one)} is not loaded`,
      details: `${counted(one.traces, "trace")}${cost}${asIn}, not on this bill. Give the key access to it.`,
    };
  });
}

function earlierTodo(earlier: readonly CalendarMonth[], source: string): Todo[] {
  const [first] = earlier;
  if (first === undefined) return [];
  const [what, to] =
    earlier.length === 1
      ? [`${monthTitle(first)} is still open`, `/months/${first.name}`]
      : [`${earlier.length} earlier months are open, from ${monthTitle(first)}`, "/months"];
  const action = link(address(to, { source }), "View");
  return [{ tone: "warn", mark: "!", what, details: "Close months in order", action }];
}

function link(to: string, label: string): Html {
  return html`<a href="${to}">${label}</a>`;
}

function placesOf({ days, first, last, workspaceIds }: OpenItem, { nameOf }: Checked): Html {
  const where =
    workspaceIds.length > 3
      ? counted(workspaceIds.length, "workspace")
      : joined(workspaceIds.map((id) => name(nameOf(id))));
  return html`${counted(days, "workspace day")}, ${shortDays({ from: dayOf(first), to: dayOf(last + DAY_MS) })}: ${where}`;
}

function loadTodo(one: OpenItem, of: Checked): Todo {
  const { source } = of.source;
  const days = { source, from: dayOf(one.first), to: addDays(dayOf(one.last), 1), stride: "day" };
  const isLoadable =
    one.meter === "traces" && ["missing", "failed", "unverified", "provisional"].includes(one.reason);
  const reprocess = one.reason === "provisional" ? "all" : undefined;
  const bad = one.reason === "failed" || one.reason === "unverified";
  return {
    tone: bad ? "bad" : "warn",
    mark: one.reason === "provisional" ? "◐" : bad ? "✕" : "○",
    what: itemTitle(one),
    details: placesOf(one, of),
    action: isLoadable
      ? link(address("/backfills/new", { ...days, reprocess }), "Load")
      : link(address("/coverage", days), "View"),
  };
}

function differsTodo(one: OpenItem, of: Checked): Todo {
  const { look, source, mayClose } = of;
  const { name: month, start, end } = look.month;
  const own = of.differences.filter(({ meter, from, to }) => meter === one.meter && from < end && to > start);
  const both = address("/differences", {
    source: source.source,
    from: start,
    to: end,
    meter: one.meter === "traces" ? undefined : one.meter,
  });
  const isAccepted = DISAGREEMENTS.includes(one.reason) && mayClose;
  return {
    tone: "bad",
    mark: "≠",
    what: itemTitle(one),
    details: html`${
      own.length === 0
        ? placesOf(one, of)
        : joined(
            own.slice(0, 3).map((each) => describeDifference(each)),
            html`<br>`,
          )
    }${own.length > 3 && html`<br>and ${own.length - 3} more`}
      <br><a href="${both}">Both numbers</a>`,
    action: isAccepted
      ? link(address(`/months/${month}/close`, { source: source.source }), "Accept")
      : link(both, "View"),
  };
}

/** Returns a line such as `8–14 Oct 2026, Research: stored 0.79, reported 2.29, worth 1.50 USD`. */
export function describeDifference(one: OpenDifference): Html {
  const worth = costsText(one.worth);
  return html`${shortDays(one)}, ${name(one.workspace)}: stored ${measured(one.stored, one)}, reported ${measured(one.reported, one)}${worth !== "" && `, worth ${worth}`}`;
}

function measured(amount: Amount, { measure }: OpenDifference): Html {
  return MEASURE_DIGITS[measure] === 0 ? html`${amountShown(amount)}` : money(amount);
}
