import { z } from "zod";
import { sourceFlagsOf } from "../../core/base/config.ts";
import { type CalendarMonth, monthNamed, shortDay, shortDays } from "../../core/domain/months/month.ts";
import {
  DIFFERENCE_KINDS,
  DIFFERENCE_STATES,
  type DifferenceState,
} from "../../core/domain/proof/difference.ts";
import { FIGURE_STATUS, type Tone } from "../../core/domain/proof/statuses.ts";
import { addMonths, dayOf, shortInstant } from "../../core/domain/time/days.ts";
import { ceilToGrid, DAY_MS } from "../../core/domain/time/stride.ts";
import { type Amount, amountOf, amountShown, centsShown } from "../../core/domain/usage/amount.ts";
import { METER_NAME, METERS } from "../../core/domain/usage/meter.ts";
import { GROUPINGS } from "../../core/domain/usage/record.ts";
import { namedWorkspaces } from "../../core/store/activity/reader-login.ts";
import { type Database, queryOne } from "../../core/store/db/query.ts";
import type { Counted } from "../../core/store/figures/counted.ts";
import {
  ALL,
  address,
  box,
  button,
  capital,
  chips,
  choice,
  columns,
  count,
  dimensionTitle,
  filterBar,
  type Html,
  hidden,
  html,
  instant,
  joined,
  money,
  name,
  notice,
  numberHead,
  optional,
  pill,
  plainName,
  table,
  twin,
} from "../../web/parts.ts";
import type { Context, Web } from "../../web/routes.ts";
import { chosenSource } from "../close/month.page.ts";
import type { CurrencyCost } from "../costs/bill.ts";
import { totalWorth } from "../costs/worth.store.ts";
import { COUNTED_WORDS } from "../figures/question.ts";
import { type DifferenceEvent, eventsOf, worthOfEvents } from "./difference-events.ts";
import {
  countOpenDifferences,
  type ListedDifference,
  listDifferences,
  SAYERS,
} from "./difference-list.store.ts";

const ON_A_PAGE = 25;
/** Lines of differences that are grouped. More need a filter. */
const MOST_LINES = 5_000;
/** Lines that one difference shows. */
const MOST_OF_ONE = 50;

const query = z.object({
  source: optional(z.string().max(63)),
  says: optional(z.enum(SAYERS)),
  state: optional(z.enum(["open", "all"])),
  /** A month, such as 2026-10. The header's month is another field. */
  in: optional(
    z.string().refine((text) => monthNamed(text) !== undefined, "it is not a month such as 2026-10"),
  ),
  from: optional(z.iso.date()),
  to: optional(z.iso.date()),
  meter: optional(z.enum(METERS)),
  group_by: optional(z.enum(GROUPINGS)),
  workspace: optional(z.string().max(1000)),
  page: optional(z.coerce.number("it is not a number").int().min(1).max(10_000)),
});
type Query = z.output<typeof query>;

const SAYS = { export: "Export", total: "Totals", restatement: "Restatement" } as const;
const STATES = { open: "Open", all: "All" } as const;

export function addDifferences(web: Web): void {
  web.page("/differences", { query, oneInstant: true }, async (context) => {
    const { db, masked, query: requested, now, config } = context;
    const { source } = await chosenSource(context, requested.source);
    const slug = source.source;
    const named = monthNamed(requested.in ?? "");
    const onlyOpen = requested.state !== "all" && requested.says !== "restatement";
    const read = {
      source: slug,
      says: requested.says,
      onlyLeft: onlyOpen,
      from: named?.start ?? requested.from,
      to: named?.end ?? requested.to,
      groupBy: requested.group_by,
      workspaceId: requested.workspace,
      meter: requested.meter,
      most: MOST_LINES,
      masked,
    };
    const lines = await listDifferences(db, read);
    const events = eventsOf(lines).filter(({ isOpen }) => isOpen || !onlyOpen);
    const page = requested.page ?? 1;
    const shown = events.slice((page - 1) * ON_A_PAGE, page * ON_A_PAGE);
    const worths = await worthOfEvents(db, slug, shown);
    const given = { context, source: slug, ...(await aboutSource(db, source.sourceId)) };
    const rows = shown.flatMap((event, n) => rowsOf(event, worths[n], given));
    const here = (fields: Readonly<Record<string, string | number | undefined>>) =>
      address("/differences", { ...requested, source: slug, page: undefined, ...fields });
    const flags = sourceFlagsOf(config, slug);
    const today = shortInstant(now).slice(0, 10);
    return {
      title: "Differences",
      ...(await openOf(db, slug, masked)),
      body: html`${await filters(context, slug, source.workspaceIds)}
        ${lines.length >= MOST_LINES && notice("warn", "Not all differences are listed. Choose a month, meter or workspace.")}
        ${shown.length === 0 ? nothing(slug, onlyOpen) : listOf(rows)}
        <p class="paging">${page > 1 && html`<a href="${here({ page: page - 1 })}">Newer differences</a>`}
          ${events.length > page * ON_A_PAGE && html`<a href="${here({ page: page + 1 })}">Older differences</a>`}</p>
        ${columns(
          box({
            title: "Check again",
            note: "Every night automatically",
            body: twin(
              `usage-etl reconcile --from ${read.from ?? source.dataStart} --to ${read.to ?? today}${flags} --repair`,
              `usage-etl totals --reach quarter${flags}`,
            ),
          }),
        )}`,
    };
  });
}

/** The page's status: all open differences of the source, whatever is filtered. */
async function openOf(db: Database, source: string, masked: boolean) {
  const open = (await countOpenDifferences(db)).get(source) ?? 0;
  if (open === 0) return { pill: pill({ ...FIGURE_STATUS.proved, word: "None open" }) };
  const lines = await listDifferences(db, { source, onlyLeft: true, most: MOST_LINES, masked });
  const events = eventsOf(lines).filter(({ isOpen }) => isOpen);
  const worths = await worthOfEvents(db, source, events);
  const isAll = events.length === open;
  const unpriced = events.some(({ amount }, n) => worths[n] === undefined && amount !== 0n);
  const worth = isAll
    ? costsShown(totalWorth(events.map(({ first }, n) => ({ about: first, worth: worths[n] }))))
    : undefined;
  const atLeast = unpriced ? "at least " : "";
  return {
    pill: pill(
      { ...FIGURE_STATUS.differs, word: `${open.toLocaleString("en-US")} open` },
      worth && `worth ${atLeast}${worth}`,
    ),
    about: "Contradictions stay listed and keep the month open until you accept them.",
  };
}

function costsShown(costs: readonly CurrencyCost[]): string | undefined {
  const texts = costs.map(({ currency, cost }) => `${centsShown(amountOf(cost), currency)} ${currency}`);
  return texts.length === 0 ? undefined : texts.join(" + ");
}

interface AboutSource {
  readonly organization: string | null;
  /** First day of each closed month. */
  readonly closed: readonly string[];
}

function aboutSource(db: Database, sourceId: number): Promise<AboutSource> {
  return queryOne<AboutSource>(db)`
    select coalesce(organization_name || ' ', '') || organization_id as organization,
           array(select m.month_start::text from usage.close m where m.source_id = s.source_id and m.month_start is not null) as closed
    from usage.source s where s.source_id = ${sourceId}
  `;
}

async function filters(
  { db, query: requested, place }: Context<Query>,
  source: string,
  ids: readonly string[],
): Promise<Html> {
  const workspaces = (await namedWorkspaces(db)).filter(({ id }) => ids.includes(id));
  const known = workspaces.map(({ id, name: text }) => ({ value: id, text: plainName(text ?? id) }));
  const months = (place?.months ?? []).map((value) => ({
    value,
    text: shortDays({ from: `${value}-01`, to: addMonths(`${value}-01`, 1) }),
  }));
  const words = (all: Readonly<Record<string, string>>) =>
    Object.entries(all).map(([value, text]) => ({ value, text }));
  const meters = METERS.map((value) => ({ value, text: capital(METER_NAME[value]) }));
  const kept = { source, from: requested.from, to: requested.to, group_by: requested.group_by };
  const without = (...fields: (keyof Query)[]) =>
    address("/differences", {
      ...requested,
      source,
      page: undefined,
      ...Object.fromEntries(fields.map((field) => [field, undefined])),
    });
  const { from, to, group_by: groupBy } = requested;
  return html`${filterBar(
    "/differences",
    html`${hidden(requested.in === undefined ? kept : { ...kept, from: undefined, to: undefined })}
      ${choice("Found by", "says", [ALL, ...words(SAYS)], requested.says ?? "")}
      ${choice("Status", "state", words(STATES), requested.state ?? "open")}
      ${choice("Meter", "meter", [ALL, ...meters], requested.meter ?? "")}
      ${choice("Month", "in", [ALL, ...months], requested.in ?? "")}
      ${choice("Workspace", "workspace", [ALL, ...known], requested.workspace ?? "")}`,
  )}
  ${chips([
    ...(from === undefined && to === undefined
      ? []
      : [
          {
            label: `${from === undefined ? "to" : "from"} ${shortDay(from ?? to ?? "")}`,
            without: without("from", "to"),
          },
        ]),
    ...(groupBy === undefined
      ? []
      : [{ label: `by ${dimensionTitle(groupBy)}`, without: without("group_by") }]),
  ])}`;
}

function nothing(source: string, onlyOpen: boolean): Html {
  return html`<p>${onlyOpen ? "No open differences." : "No differences."}
    <a href="${address("/coverage", { source })}">Data health</a> shows which days were compared.</p>`;
}

function listOf(rows: readonly Html[]): Html {
  return table({
    id: "table",
    kind: "two",
    label: "Differences",
    caption: "Newest first",
    heads: [
      "Period",
      numberHead("Stored"),
      numberHead("Reported"),
      numberHead("Difference"),
      numberHead("Money"),
      "Status",
      html`<th scope="col"><span class="visually-hidden">Action</span></th>`,
    ],
    rows,
  });
}

interface Given extends AboutSource {
  readonly context: Context<Query>;
  readonly source: string;
}

function rowsOf(event: DifferenceEvent, worth: readonly CurrencyCost[] | undefined, given: Given): Html[] {
  const { first, isOpen, stored, other, amount } = event;
  const { workspaceId, workspaceName, from, to, state } = first;
  const month = monthNamed(new Date(Date.parse(to) - 1).toISOString().slice(0, 7)) as CalendarMonth;
  const isClosed = given.closed.includes(month.start);
  const mayAccept =
    given.context.isOperator &&
    !isClosed &&
    state === "platform_disagrees" &&
    Date.parse(month.end) <= given.context.now;
  const accept = address(`/months/${month.name}/close`, { source: given.source });
  const [tone, word] = STATES_SHOWN[state];
  const inMonth = shortDays({ from: month.start, to: month.end }).slice(0, 3);
  return [
    html`<tr><th scope="row">${shortDays({ from: from.slice(0, 10), to: dayOf(ceilToGrid(Date.parse(to), DAY_MS)) })}
        <br><small><span title="${workspaceId}">${name(workspaceName ?? workspaceId)}</span> · ${usageOf(first)}</small></th>
      <td class="number opt">${amountShown(stored)}</td>
      <td class="number opt">${amountShown(other)} <small>${reporterOf(first)}</small></td>
      <td class="number change">${signedAmount(amount)}</td>
      <td class="number lead">${moneyOf(worth)}</td>
      <td class="share"><span class="status ${tone}">${word}</span>${isOpen && html` <small>${isClosed ? `${inMonth} is closed` : `keeps ${inMonth} open`}</small>`}</td>
      <td class="action">${mayAccept && isOpen && button(accept, "Accept")}</td></tr>`,
    html`<tr class="more"><td colspan="7"><details><summary>Details</summary>${details(event, given)}</details></td></tr>`,
  ];
}

const STATES_SHOWN: Readonly<Record<DifferenceState, readonly [Tone, word: string]>> = {
  open: ["bad", "≠ Open"],
  platform_disagrees: ["bad", "≠ Contradiction"],
  repaired: ["ok", "✓ Repaired"],
  withdrawn: ["ok", "✓ Withdrawn"],
  closed: ["ok", "✓ Ended"],
  not_configured: ["none", "Not configured"],
  hours_dropped: ["none", "Hours dropped"],
  restated: ["info", "↻ Restated"],
};

function usageOf({ meter, measure }: ListedDifference): string {
  return measure === "traces" ? METER_NAME[meter] : COUNTED_WORDS[measure as Counted];
}

function reporterOf({ says, kind }: ListedDifference): string {
  if (says !== "total") return says === "export" ? "export" : "before";
  return kind === "provider_total" ? "provider" : "platform";
}

function signedAmount(amount: Amount): string {
  if (amount === 0n) return "±0";
  return amount > 0n ? `+${amountShown(amount)}` : `−${amountShown(-amount)}`;
}

function moneyOf(worth: readonly CurrencyCost[] | undefined): Html {
  if (worth === undefined) return html`<span class="none" title="No price is valid">–</span>`;
  return html`${joined(
    worth.map(({ currency, cost }) => {
      const amount = amountOf(cost);
      return html`${amount < 0n && "−"}${money(amount < 0n ? -amount : amount, currency)} ${currency}`;
    }),
    html`<br>`,
  )}`;
}

function details(
  { lines, first, stored, other, amount }: DifferenceEvent,
  { source, organization }: Given,
): Html {
  const { from, to, says, stride, groupBy, workspaceId, workspaceName, state, at } = first;
  const day = (text: string) => dayOf(ceilToGrid(Date.parse(text), DAY_MS));
  const cell = address("/cell", {
    source,
    workspace: workspaceId,
    group_by: says === "total" && first.meter === "traces" ? groupBy : undefined,
    stride: stride === "hour" ? "hour" : "day",
    from: from.slice(0, 10),
    to: day(to),
  });
  const isDay = Date.parse(to) - Date.parse(from) <= 62 * DAY_MS;
  const listed = lines.slice(0, MOST_OF_ONE);
  const evidence = [
    `Organization ${organization ?? source}; workspace ${workspaceName ?? ""} ${workspaceId}`,
    `${capital(usageOf(first))}, ${from} to ${to}`,
    `Usage API: ${amountShown(stored)}; ${reporterOf(first)}: ${amountShown(other)}; difference ${signedAmount(amount)}; found ${at.slice(0, 19)}Z`,
    ...listed.map(
      (line) =>
        `${dimensionTitle(line.groupBy, line.meter)} ${line.dimensionId}: ${line.storedAmount ?? "none"} / ${line.otherAmount ?? "none"}`,
    ),
  ].join("\n");
  return html`<p>${capital(DIFFERENCE_KINDS[first.kind])}. ${DIFFERENCE_STATES[state].about} Found ${instant(at)}.
      ${first.meter === "traces" && isDay && html`<a href="${cell}">Loads and proof of these days</a>`}</p>
    ${table({
      label: "Lines",
      caption: `By dimension. Dimensions count the same usage: do not add them.${lines.length > listed.length ? ` The first ${listed.length} of ${lines.length}.` : ""}`,
      heads: ["Dimension", numberHead("Stored"), numberHead(capital(reporterOf(first)))],
      rows: listed.map(
        (
          line,
        ) => html`<tr><th scope="row">${capital(dimensionTitle(line.groupBy, line.meter))} by ${line.stride}
            <small title="${line.dimensionId}">${name(line.dimensionName ?? line.dimensionId)}</small>${line.exportSays !== null && html` <small>export: ${name(line.exportSays)}</small>`}</th>
          <td class="number">${count(line.storedAmount, "nothing is stored")}</td>
          <td class="number">${count(line.otherAmount, "nothing")}</td></tr>`,
      ),
    })}
    ${state === "platform_disagrees" && html`<p>Evidence for the platform's support:</p><pre class="evidence" tabindex="0">${evidence}</pre>`}`;
}
