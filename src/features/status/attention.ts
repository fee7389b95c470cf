import { counted } from "../../core/base/printable.ts";
import { dayTitle, monthAt, monthBefore } from "../../core/domain/months/month.ts";
import { FIGURE_STATUS } from "../../core/domain/proof/statuses.ts";
import { addDays } from "../../core/domain/time/days.ts";
import { type Amount, amountDrawn, amountOf } from "../../core/domain/usage/amount.ts";
import type { Database } from "../../core/store/db/database.ts";
import {
  address,
  box,
  button,
  count,
  type Html,
  html,
  joined,
  money,
  prose,
  type Todo,
  todos,
  twin,
} from "../../web/parts.ts";
import { factOf, type Incident, pageOf } from "../alerts/conditions.ts";
import type { UnloadedWorkspace } from "../costs/bill.ts";
import { unloadedWorkspaces } from "../costs/bill-terms.store.ts";
import { ofLastWeeks, type UnusualOfWorkspace, unusualLately } from "../figures/unusual.ts";
import { type MonthBudget, nameOfBudget } from "../owners/budgets.ts";
import type { SourceReport } from "./advice.ts";

/** What needs somebody, the most urgent first, with one action each. */
export async function attention(
  db: Database,
  {
    reports,
    source,
    budgets,
    now,
  }: {
    reports: readonly SourceReport[];
    /** Undefined: all sources. */
    source: string | undefined;
    budgets: readonly MonthBudget[];
    now: number;
  },
): Promise<Html> {
  const unusual = await unusualLately(db);
  const rows: (Todo & { readonly rank: number })[] = [];
  for (const { status, advice, alerts } of reports) {
    const of = status.source;
    const where = reports.length > 1 ? ` (${of})` : "";
    if (advice.kind === "warn" || advice.kind === "bad") rows.push(advised(advice, { alerts, where }));
    const unloaded = await unloadedWorkspaces(db, {
      source: of,
      monthStart: monthBefore(monthAt(now)).start,
    });
    if (unloaded.length > 0) rows.push(unloadedTodo(unloaded, of, where));
    for (const alert of alerts)
      if (
        !["budget", "unusual", "workspace_unloaded"].includes(alert.kind) &&
        !advice.alerts?.kinds.includes(alert.kind)
      )
        rows.push(alertTodo(alert, of, where));
    for (const one of ofLastWeeks(unusual, of, now)) rows.push(unusualTodo(one, where));
  }
  for (const one of budgets)
    if (source === undefined || one.source === null || one.source === source) rows.push(...budgetTodo(one));
  const open = reports.reduce((sum, { alerts }) => sum + alerts.length, 0);
  return box({
    title: "Needs attention",
    span: 8,
    links: open > 0 ? html`<a href="${address("/alerts", { source })}">All alerts (${open})</a>` : "",
    body:
      rows.length === 0
        ? html`<p>${joined(
            reports.map(
              ({ advice, status }) =>
                html`${reports.length > 1 && `${status.source}: `}${prose(advice.sentence)}`,
            ),
            html`<br>`,
          )}</p>`
        : todos(rows.toSorted((a, b) => a.rank - b.rank)),
  });
}

const BAD = { tone: "bad", mark: "✕", rank: 0 } as const;
const WARN = { tone: "warn", mark: "!", rank: 1 } as const;
const INFO = { tone: "info", mark: "●", rank: 3 } as const;

function advised(
  { kind, sentence, href, why, command, alerts: said }: SourceReport["advice"],
  { alerts, where }: { alerts: readonly Incident[]; where: string },
): Todo & { readonly rank: number } {
  const [what = "", ...rest] = sentence.split(/(?<=\.) /);
  const own =
    said?.isWhole === false ? alerts.filter((one) => said.kinds.includes(one.kind)).map(factOf) : [];
  const details = [...rest, ...own].join(" ");
  const isOfDifferences = href?.startsWith("/differences") ?? false;
  return {
    ...(kind === "bad"
      ? BAD
      : isOfDifferences
        ? { ...BAD, mark: FIGURE_STATUS.differs.mark, rank: 1 }
        : WARN),
    what: html`${prose(what.replace(/\.$/, ""))}${where}`,
    details: html`${prose(details)}${why !== undefined && html` <a href="${why}">See why</a>`}${command !== undefined && twin(command)}`,
    action:
      href === undefined
        ? undefined
        : button(
            href,
            isOfDifferences
              ? "Review"
              : href.startsWith("/backfills")
                ? "Load"
                : href.startsWith("/months")
                  ? "Close"
                  : "View",
            "primary",
          ),
  };
}

const ACTIONS: Partial<Record<Incident["kind"], string>> = {
  final_changed: "View changes",
  usage_limit: "View usage",
  invoice_open: "View invoices",
  invoice_missing: "View invoices",
};

function alertTodo(alert: Incident, of: string, where: string): Todo & { readonly rank: number } {
  const [what = "", ...rest] = factOf(alert).split(/(?<=\.) /);
  const to = alert.kind === "usage_limit" ? address("/usage", { source: of }) : pageOf(alert.kind, of);
  return {
    ...(alert.severity === "critical" ? WARN : INFO),
    what: html`${prose(what.replace(/\.$/, ""))}${where}`,
    details: prose(rest.join(" ")),
    action: to === undefined ? undefined : button(to, ACTIONS[alert.kind] ?? "View differences"),
  };
}

function unloadedTodo(
  all: readonly UnloadedWorkspace[],
  of: string,
  where: string,
): Todo & { readonly rank: number } {
  const traces = all.reduce((sum, one) => sum + one.traces, 0);
  const names = joined(
    all.slice(0, 3).map(({ name, workspaceId }) => html`${name ?? `${workspaceId.slice(0, 8)}…`}`),
  );
  return {
    ...WARN,
    rank: 0.5,
    what: html`${counted(all.length, "workspace")} ${all.length === 1 ? "is" : "are"} not loaded: about ${traces.toLocaleString("en-US", { maximumSignificantDigits: 3 })} traces a month${where}`,
    details: html`The platform counts ${all.length === 1 ? "it" : "them"}; no sync reads ${all.length === 1 ? "it" : "them"}. Bills, limits and forecasts leave out ${names}.`,
    action: button(address("/coverage", { source: of }), "Give access"),
  };
}

function unusualTodo(one: UnusualOfWorkspace, where: string): Todo & { readonly rank: number } {
  const { source, workspaceId, workspaceName, day, amount, expected, because } = one;
  const named = because.map(
    ({ by, id, name: title }) => `${by === "api_key" ? "key" : by} ${title ?? `${id.slice(0, 8)}…`}`,
  );
  const to = address("/usage", {
    source,
    workspace: workspaceId,
    by: "project",
    from: day,
    to: addDays(day, 1),
    per: "day",
  });
  return {
    ...INFO,
    what: html`Unusual day: ${dayTitle(day)}, ${workspaceName ?? workspaceId} had ${count(amount)} traces (expected ${count(Math.round(expected))})${where}`,
    details: named.length === 0 ? undefined : `Mostly ${named.join(", ")}.`,
    action: button(to, "View day"),
  };
}

function budgetTodo(one: MonthBudget): (Todo & { readonly rank: number })[] {
  const { reached, passed, spent, amount, currency, forecast } = one;
  if (reached === null && passed === null) return [];
  const shown = (value: Amount) =>
    html`${currency === null ? count(Math.round(amountDrawn(value))) : money(value)}`;
  const said =
    reached === null
      ? `${passed} % used`
      : `${reached.isSure ? "exceeded on" : "will be exceeded on"} ${dayTitle(reached.day)}`;
  const look = reached === null ? INFO : reached.isSure ? BAD : WARN;
  return [
    {
      ...look,
      what: `Budget “${nameOfBudget(one)}” ${said}`,
      details: html`${shown(spent)} of ${shown(amountOf(amount))} ${currency ?? "traces"}.${forecast !== null && ` Forecast ${Math.round(forecast).toLocaleString("en-US")} ${currency ?? "traces"}.`}`,
      action: button(address("/owners", { source: one.source ?? undefined }), "View budget"),
    },
  ];
}
