import { z } from "zod";
import { sourceFlagsOf } from "../../core/base/config.ts";
import { EtlError } from "../../core/base/errors.ts";
import { type CalendarMonth, monthAt, monthNamed, monthTitle } from "../../core/domain/months/month.ts";
import { describeProviderMonth, type ProviderMonth } from "../../core/domain/months/provider.ts";
import { METER_NAME } from "../../core/domain/usage/meter.ts";
import type { ListedSource, SourceWithWorkspaces } from "../../core/store/activity/overview.ts";
import { inSnapshot } from "../../core/store/db/snapshot.ts";
import { CLOSE_ACTION } from "../../core/store/months/closes.ts";
import { recordAction } from "../../core/store/work/operator-actions.ts";
import type { Page } from "../../web/layout.ts";
import {
  address,
  capital,
  count,
  type Html,
  html,
  instant,
  notice,
  numberHead,
  prose,
  refusal,
  sourceField,
  sourceUnknown,
  table,
} from "../../web/parts.ts";
import { namedSource } from "../../web/query.ts";
import type { Context, Web } from "../../web/routes.ts";
import { sourcesToClose } from "../catalog/named.ts";
import { describeUnloaded } from "../costs/bill.ts";
import { alsoReportedTable, billTable, withoutCost } from "../costs/bill-table.ts";
import { changesOfMonth, describeLoggedChanges, type ExplainedChange } from "../costs/logged-changes.ts";
import { readMonthBill } from "../costs/month-bill.store.ts";
import { closeDoes, describeAbsent, type KnownUsage, withFigures } from "../costs/other-usage.ts";
import { statementOf } from "../figures/statement.ts";
import { closeSources, monthOf } from "./close.ts";
import { lookAtMonth, type MonthLook } from "./close-preview.ts";
import { closedLine, closedPage, monthList } from "./months.page.ts";
import { acceptanceOf } from "./open-days.store.ts";
import type { CloseRequest } from "./open-days.ts";
import { confirmation, openDaysList, openPage, providerBehind } from "./open-month.ts";

const SLUG = z.string().max(63).optional();
const params = z.object({ month: z.string().max(20) });
const requested = z.object({ source: SLUG });
/** `closed`: adds the costs to a month that is closed already. `none`: closes the month without costs. */
const COSTS = z.enum(["closed", "none"]);
type Requested = z.output<typeof requested>;
type Params = z.output<typeof params>;
const form = requested.extend({
  source: z.string().max(63),
  digest: z.string().max(64).optional(),
  costs: COSTS.optional(),
});

/** The header's form leads to the page of its month. */
const MONTH_PATHS = { form: "/months/go", of: (month: string) => `/months/${month}` };

export function addMonths(web: Web): void {
  const query = z.object({
    source: SLUG,
    newest: z
      .string()
      .refine((text) => monthNamed(text) !== undefined, "Give a month, such as 2026-03")
      .optional(),
  });
  web.page("/months", { query, oneInstant: true }, async (context) => {
    const { source, sources } = await chosenSource(context, context.query.source);
    const newest = monthNamed(context.query.newest ?? "") ?? monthAt(context.now);
    const list = await monthList(context.db, {
      source,
      newest,
      now: context.now,
      masked: context.masked,
    });
    return { title: "Months", body: html`${sourceForm("/months", sources, source.source)}${list}` };
  });
  web.page("/months/go", { query: requested.extend({ month: params.shape.month }) }, async ({ query }) => ({
    redirect: address(`/months/${query.month}`, { source: query.source }),
  }));
  web.page(
    "/months/:month",
    { params, query: requested, oneInstant: true, header: { month: true } },
    async (context) => ({ ...(await monthPage(context)), paths: MONTH_PATHS }),
  );
  web.page("/months/:month/close", { params, query: requested, oneInstant: true }, (context) =>
    confirmPage(context, context.query),
  );
  web.action("/months/:month/close", { params, body: form }, close);
}

async function monthPage(context: Context<Requested, Params>): Promise<Page> {
  const { db, query, isOperator, masked, now } = context;
  const { source, sources } = await chosenSource(context, query.source);
  const named = monthNamed(context.params.month);
  if (named?.name === monthAt(now).name) {
    const state = `${monthTitle(named)} is under way. It can be closed once its last day is final and proved.`;
    return pageOf(context, { month: named, source, sources }, { state: notice("info", state) });
  }
  const look = await lookFor(context, source);
  const { month, closed, provider, others } = look;
  const state =
    closed === undefined
      ? openPage({
          look,
          source,
          mayClose: isOperator,
          requested: requestedOf(context, look, source.source),
        })
      : await closedPage(db, {
          month,
          source,
          closed,
          masked,
          csrf: isOperator ? context.csrf() : undefined,
        });
  return pageOf(
    context,
    { month, source, sources },
    {
      closed: closed && closedLine(closed, masked),
      provider: providerLine(provider, source),
      state,
      others: others.length === 0 ? undefined : otherUsage(others),
    },
  );
}

interface MonthParts {
  readonly closed?: Html | undefined;
  readonly provider?: Html;
  readonly state: Html;
  readonly others?: Html | undefined;
}

async function pageOf(
  { db, now, masked }: Context<Requested, Params>,
  { month, source: of, sources }: { month: CalendarMonth } & Awaited<ReturnType<typeof chosenSource>>,
  { closed, provider, state, others }: MonthParts,
): Promise<Page> {
  const { source, dataStart } = of;
  const requested = { source, month: month.name, now, masked };
  const statement = await statementOf(db, requested);
  const bill = await readMonthBill(db, { source, dataStart, month });
  const missing = describeUnloaded(bill.unloaded);
  const changes = await changesOfMonth(db, { source, month });
  return {
    title: `${monthTitle(month)}, ${source}`,
    body: html`${sourceForm(`/months/${month.name}`, sources, source)}${closed}${statement?.sums}${provider}${beforeDataStart(month, of)}${withoutCost(bill.lines)}${statement?.parts}
        <h2>Bill</h2>${missing !== undefined && notice("warn", html`<p>${prose(missing)}</p>`)}${billTable(bill)}${alsoReportedTable(bill.alsoReported)}${changes.length > 0 && loggedChanges(changes, source)}${state}${others}<p class="back"><a href="${address("/months", { source })}">All months</a></p>`,
  };
}

function loggedChanges(changes: readonly ExplainedChange[], source: string): Html {
  return html`<h2>Changes of settings</h2>
    <ul>${describeLoggedChanges(changes).map((one) => html`<li>${prose(one)}</li>`)}</ul>
    <p class="quiet">From the platform's audit log. A change and a step on the same day need not belong together. <a href="${address("/timeline", { source, kind: "platform_change" })}">Who made them</a></p>`;
}

function providerLine(provider: ProviderMonth, { source }: ListedSource): Html {
  const said = prose(capital(describeProviderMonth(provider)));
  if (provider.outcomes.every(({ outcome }) => outcome !== "differs"))
    return html`<p class="quiet">${said}</p>`;
  const both = address("/differences", { source, says: "total" });
  return notice("warn", html`<p>${said} <a href="${both}">Show both numbers</a></p>`);
}

/** A month may lack its first days, although each loaded day is proved. */
function beforeDataStart(month: CalendarMonth, { dataStart }: Pick<ListedSource, "dataStart">): Html | "" {
  if (dataStart <= month.start) return "";
  return notice(
    "warn",
    `Usage is loaded from ${dataStart} on. What was used earlier in this month is in no figure of this page.`,
  );
}

function otherUsage(others: readonly KnownUsage[]): Html {
  const days = (one: KnownUsage, number: number) =>
    html`<td class="number">${(one.state === "checked" || number > 0) && count(number)}</td>`;
  const rows = withFigures(others);
  return html`<h2>Other usage</h2>${describeAbsent(others).map((one) => html`<p>${prose(one)}</p>`)}${
    rows.length > 0 &&
    table({
      label: "Other usage",
      caption: "What a close of the month has to do with it. In daily figures.",
      heads: [
        "Usage",
        "A close",
        numberHead("Final days"),
        numberHead("Compared with the export"),
        numberHead("Differences"),
      ],
      rows: rows.map(
        (one) => html`<tr><th scope="row">${capital(METER_NAME[one.meter])}</th><td>${closeDoes(one)}</td>
        ${[one.finalDays, one.reconciledDays, one.differences].map((number) => days(one, number))}</tr>`,
      ),
    })
  }`;
}

async function confirmPage(context: Context<unknown, Params>, wanted: Requested): Promise<Page> {
  const { db, isOperator } = context;
  const { source } = await chosenSource(context, wanted.source);
  const look = await lookFor(context, source);
  const { month, closed, open } = look;
  const back = html`<p><a href="${address(`/months/${month.name}`, { source: source.source })}">Back to ${monthTitle(month)}</a></p>`;
  if (closed !== undefined) {
    const body = html`${notice("info", html`<p>${monthTitle(month)} of ${source.source} was closed ${instant(closed.closedAt)}. A month closes once.</p>`)}${back}`;
    return { title: `${monthTitle(month)} is closed`, body, status: 409 };
  }
  if (open.length > 0 && acceptanceOf(look).required.length === 0) {
    const requested = requestedOf(context, look, source.source);
    const list = openDaysList(open, requested, source.source, providerBehind(look));
    return { title: `${monthTitle(month)} cannot be closed yet`, body: html`${list}${back}`, status: 409 };
  }
  if (!isOperator) {
    return {
      title: `Close ${monthTitle(month)}`,
      body: html`<p>An operator can close it.</p>${back}`,
      status: 403,
    };
  }
  const body = await confirmation(db, { look, source, csrf: context.csrf() });
  return { title: `Close ${monthTitle(month)}`, body: html`${body}${back}` };
}

type Form = Context<unknown, Params> & { readonly body: z.output<typeof form> };

async function close(context: Form): Promise<Page | { redirect: string }> {
  const { store, config, actor: by, body } = context;
  const { source } = await chosenSource(context, body.source);
  const named = monthOf(context.params.month, context.now);
  const month = named.name;
  const refused = (why: string) =>
    recordAction(store.db, by, {
      sourceId: source.sourceId,
      action: CLOSE_ACTION,
      outcome: "refused",
      detail: `${month}: ${why}`,
    });
  try {
    const closed = await closeSources(store, {
      period: month,
      slugs: [source.source],
      by,
      withoutCosts: body.costs === "none",
      // Closing costs later keeps the close, so no preview has to match.
      ...(body.costs === "closed" ? {} : { accept: [body.digest ?? ""] }),
      settleAfterMs: config.settleAfterMs,
    });
    if (closed[0]?.result.state === "closed" || closed[0]?.result.state === "costs_closed") {
      return { redirect: address(`/months/${month}`, { source: source.source }) };
    }
    await refused(closed[0]?.result.state === "open" ? "it is open" : "it was closed before");
    return await inSnapshot(context.db, (db) => confirmPage({ ...context, db }, body));
  } catch (error) {
    if (!(error instanceof EtlError) || error.code !== "period_changed") throw error;
    await refused("it changed since it was looked at");
    const again = address(`/months/${month}/close`, { source: source.source });
    const page = html`${refusal(error)}<p><a class="button" href="${again}">Look again</a></p>`;
    return { title: `${monthTitle(named)} was not closed`, body: page, status: 409 };
  }
}

function lookFor(
  { db, params, now }: Context<unknown, Params>,
  source: Awaited<ReturnType<typeof chosenSource>>["source"],
) {
  return lookAtMonth(db, { month: params.month, source, now });
}

function requestedOf({ config }: Pick<Context, "config">, look: MonthLook, source: string): CloseRequest {
  const sourceFlags = sourceFlagsOf(config, source);
  const { settleAfterMs, redis } = config;
  const { month, lacksPrice } = look;
  // The confirmation page computes the digests.
  const digests = acceptanceOf(look).required.length === 0 ? { digests: [] } : {};
  return { month, lacksPrice, sourceFlags, settleAfterMs, hasRedis: redis !== undefined, ...digests };
}

export async function chosenSource(
  { db, config }: Pick<Context, "db" | "config">,
  slug: string | undefined,
): Promise<{ source: SourceWithWorkspaces; sources: readonly SourceWithWorkspaces[] }> {
  const sources = await sourcesToClose(
    db,
    config.sources.map((one) => one.slug),
  );
  const source = namedSource(sources, slug);
  if (source === undefined) throw sourceUnknown("", []);
  return { source, sources };
}

function sourceForm(path: string, sources: readonly ListedSource[], chosen: string): Html | "" {
  if (sources.length < 2) return "";
  const slugs = sources.map(({ source }) => source);
  return html`<form class="row" method="get" action="${path}">
    ${sourceField(slugs, chosen)} <button>Show</button></form>`;
}
