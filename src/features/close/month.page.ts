import { z } from "zod";
import { sourceFlagsOf } from "../../core/base/config.ts";
import { EtlError } from "../../core/base/errors.ts";
import {
  type CalendarMonth,
  monthAt,
  monthBefore,
  monthNamed,
  monthTitle,
  shortDay,
} from "../../core/domain/months/month.ts";
import { monthStart } from "../../core/domain/time/days.ts";
import type { SourceWithWorkspaces } from "../../core/store/activity/overview.ts";
import { inSnapshot } from "../../core/store/db/snapshot.ts";
import { usageSources } from "../../core/store/figures/sources.ts";
import { CLOSE_ACTION, closedMonths } from "../../core/store/months/closes.ts";
import { recordAction } from "../../core/store/work/operator-actions.ts";
import type { Page } from "../../web/layout.ts";
import {
  address,
  box,
  button,
  columns,
  type Html,
  html,
  notice,
  refusal,
  sourceUnknown,
  todos,
} from "../../web/parts.ts";
import { namedSource } from "../../web/query.ts";
import type { Context, Web } from "../../web/routes.ts";
import { sourcesToClose } from "../catalog/named.ts";
import { expectedUnloaded } from "../costs/bill-terms.store.ts";
import { billByOwner } from "../costs/owner-bill.ts";
import { billPage } from "./bill-page.ts";
import { checklist } from "./checklist.ts";
import { closeSources, monthOf } from "./close.ts";
import { lookAtMonth, type MonthLook } from "./close-preview.ts";
import { monthList } from "./months.page.ts";
import { acceptanceOf } from "./open-days.store.ts";
import type { CloseRequest } from "./open-days.ts";
import { openDifferences } from "./open-differences.store.ts";
import { confirmation, nextSteps } from "./open-month.ts";

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
  accept: z.string().max(10).optional(),
});
/** `done`: shows that the month was closed just now. */
const requestedMonth = requested.extend({ done: z.enum(["closed"]).optional() });

/** The header's form leads to the page of its month. */
const MONTH_PATHS = { form: "/months/go", of: (month: string) => `/months/${month}` };

export function addMonths(web: Web): void {
  const query = requested.extend({
    newest: z
      .string()
      .refine((text) => monthNamed(text) !== undefined, "Give a month, such as 2026-03")
      .optional(),
  });
  web.page("/months", { query, oneInstant: true, header: { all: true } }, async (context) => {
    const { source, newest } = context.query;
    const { sources } = await chosenSource(context, source);
    return monthList(context.db, {
      sources: sources.filter((one) => source === undefined || one.source === source),
      newest: monthNamed(newest ?? "") ?? monthAt(context.now),
      now: context.now,
      masked: context.masked,
    });
  });
  web.page("/months/go", { query: requested.extend({ month: params.shape.month }) }, async ({ query }) => ({
    redirect: address(`/months/${query.month}`, { source: query.source }),
  }));
  web.page(
    "/months/:month",
    { params, query: requestedMonth, oneInstant: true, header: { month: true } },
    async (context) => ({ ...(await monthPage(context)), paths: MONTH_PATHS }),
  );
  web.page("/months/:month/close", { params, query: requested, oneInstant: true }, (context) =>
    confirmPage(context, context.query),
  );
  web.action("/months/:month/close", { params, body: form }, close);
}

async function monthPage(context: Context<z.output<typeof requestedMonth>, Params>): Promise<Page> {
  const { db, query, isOperator, masked, now } = context;
  const { source } = await chosenSource(context, query.source);
  const named = monthNamed(context.params.month);
  const isUnderWay = named?.name === monthAt(now).name;
  const look = isUnderWay ? undefined : await lookFor(context, source);
  const month = look?.month ?? (named as CalendarMonth);
  const of = await signedOf(context, { month, source });
  return billPage(db, {
    ...of,
    look,
    requested: look && requestedOf(context, look, source.source),
    csrf: isOperator ? context.csrf() : undefined,
    isJustClosed: query.done === "closed",
    masked,
    now,
  });
}

/** What the bill and the form that closes it show alike. */
async function signedOf(
  { db, now }: Context<unknown, Params>,
  { month, source }: { month: CalendarMonth; source: SourceWithWorkspaces },
) {
  const { sourceId, dataStart } = source;
  const owned = await billByOwner(db, { source: source.source, dataStart, month, now });
  const from = monthStart(dataStart);
  const closed = new Set(
    (await closedMonths(db, { sourceId, from, to: month.start })).map(({ name }) => name),
  );
  const earlier: CalendarMonth[] = [];
  for (let one = monthBefore(month); one.end > dataStart; one = monthBefore(one))
    if (!closed.has(one.name)) earlier.unshift(one);
  const usage = (await usageSources(db)).find(({ slug }) => slug === source.source);
  const names = new Map(usage?.workspaces.map(({ id, name }) => [id, name]));
  return {
    ...{ source, month, owned, usage, earlier },
    bill: { ...owned.bill, unloaded: await expectedUnloaded(db, { source: source.source, month, now }) },
    differences: await openDifferences(db, {
      sourceId,
      source: source.source,
      from: month.start,
      to: month.end,
    }),
    nameOf: (workspaceId: string) => names.get(workspaceId) ?? workspaceId,
  };
}

async function confirmPage(
  context: Context<unknown, Params>,
  wanted: Requested,
  refused?: Html,
): Promise<Page> {
  const { db, isOperator } = context;
  const { source } = await chosenSource(context, wanted.source);
  const look = await lookFor(context, source);
  const { month, closed, open } = look;
  const back = button(address(`/months/${month.name}`, { source: source.source }), `Back to the bill`);
  const about = `Source ${source.source}`;
  if (closed !== undefined) {
    const body = notice(
      "info",
      `${monthTitle(month)} of ${source.source} was closed on ${shortDay(closed.closedAt)}. A month closes once.`,
    );
    return { title: `${monthTitle(month)} is closed`, actions: back, body, status: 409 };
  }
  const of = await signedOf(context, { month, source });
  if (open.length > 0 && acceptanceOf(look).required.length === 0) {
    const todo = todos(checklist({ ...of, look, mayClose: isOperator }));
    const steps = nextSteps(look, requestedOf(context, look, source.source), of.nameOf);
    const body = columns(box({ title: "To do first", body: html`${todo}${steps}` }));
    return { title: `${monthTitle(month)} cannot be closed yet`, about, actions: back, body, status: 409 };
  }
  if (!isOperator)
    return {
      title: `Close ${monthTitle(month)}`,
      about,
      actions: back,
      body: html`<p>An operator can close it.</p>`,
      status: 403,
    };
  const body = await confirmation(db, { ...of, look, csrf: context.csrf() });
  return {
    title: `Close ${monthTitle(month)}`,
    about,
    actions: back,
    body: html`${refused}${body}`,
    ...(refused && { status: 400 }),
  };
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
  if (body.costs !== "closed" && body.accept !== "yes") {
    const text = `Tick the box to accept the list. ${monthTitle(named)} is not closed.`;
    return inSnapshot(context.db, (db) => confirmPage({ ...context, db }, body, notice("warn", text)));
  }
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
      return { redirect: address(`/months/${month}`, { source: source.source, done: "closed" }) };
    }
    await refused(closed[0]?.result.state === "open" ? "it is open" : "it was closed before");
    return await inSnapshot(context.db, (db) => confirmPage({ ...context, db }, body));
  } catch (error) {
    if (!(error instanceof EtlError) || error.code !== "period_changed") throw error;
    await refused("it changed since it was looked at");
    const again = address(`/months/${month}/close`, { source: source.source });
    const page = html`${refusal(error)}<p>${button(again, "Preview again", "primary")}</p>`;
    return { title: `${monthTitle(named)} was not closed`, body: page, status: 409 };
  }
}

function lookFor({ db, params, now }: Context<unknown, Params>, source: SourceWithWorkspaces) {
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
