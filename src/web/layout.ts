import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyReply } from "fastify";
import { describeDuration } from "../core/base/clock.ts";
import { monthNamed, monthTitle } from "../core/domain/months/month.ts";
import { HATCH } from "./chart.ts";
import { address, type Fields, type Html, hidden, html, instant } from "./parts.ts";
import { ALL_SOURCES, type Chooses, PLACE_COOKIE, type Place, placeOfLinks } from "./place.ts";

const compressed = promisify<string, Buffer>(gzip);

/** What is open, beside the links of the navigation. Undefined: not known here. */
export interface Counts {
  readonly gaps?: number;
  readonly differences?: number;
  readonly alerts?: number;
  /** End of the last sync, epoch ms. */
  readonly syncedAt?: number | undefined;
  readonly isSyncing?: boolean;
}

const GROUPS: readonly (readonly [
  string,
  readonly (readonly [to: string, label: string, count?: "gaps" | "differences" | "alerts"])[],
])[] = [
  [
    "Spend",
    [
      ["/", "Overview"],
      ["/usage", "Usage"],
      ["/owners", "Teams"],
      ["/months", "Bills"],
    ],
  ],
  [
    "Data",
    [
      ["/coverage", "Data health", "gaps"],
      ["/differences", "Differences", "differences"],
      ["/backfills", "Loads"],
    ],
  ],
  [
    "Activity",
    [
      ["/alerts", "Alerts", "alerts"],
      ["/timeline", "Timeline"],
    ],
  ],
];
/** Pages without a link of their own belong to one that has it. */
const PARENTS: Readonly<Record<string, string>> = { "/cell": "/coverage", "/invoices": "/months" };

export interface Page {
  /** The object and its month: the heading, and the title of the window. */
  readonly title: string;
  readonly pill?: Html;
  /** One quiet sentence beside the heading. */
  readonly about?: Html | string;
  readonly actions?: Html;
  readonly body: Html;
  /** The filters in words. They are in the title of the window and on paper. */
  readonly filters?: string;
  /** Address of the live part, which is all of `headed`. */
  readonly live?: string;
  /** The header's addresses, if the month is in the path: of a form with `month`, and of each month. */
  readonly paths?: { readonly form: string; readonly of: (month: string) => string };
  readonly status?: number;
}

export interface Viewed {
  readonly who: { readonly role: string; readonly name: string | null };
  readonly canLogOut: boolean;
}

interface Frame extends Viewed {
  /** Postgres's clock, epoch ms. Undefined: the page has no figures. */
  readonly asOf?: number;
  readonly place?: Place | undefined;
  readonly header?: Chooses;
  readonly counts?: Counts;
  readonly isSourceUnknown?: boolean;
}

/** The heading, and what is below it. */
export function headed({ title, pill, about, actions, filters, body }: Page): Html {
  return html`<div class="head"><h1>${title}</h1>${pill}${about !== undefined && html`<p class="quiet">${about}</p>`}
    ${filters !== undefined && html`<p class="filters">${filters}</p>`}
    ${actions !== undefined && html`<div class="actions">${actions}</div>`}</div>${body}`;
}

interface Requested {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
}

function layout(page: Page, requested: Requested, kept: Fields, frame: Frame): Html {
  const { who, canLogOut, place, header = {} } = frame;
  const shown = place?.shown === ALL_SOURCES ? "All sources" : place?.shown;
  const named = [page.title, page.filters ?? shown, "usage-etl"].filter((one) => one !== undefined);
  return document(
    named.join(" · "),
    html`<header class="side">
      <p class="product"><a href="${address("/", kept)}">usage-etl</a></p>
      <nav class="wide" aria-label="Pages">${navigation(requested.path, kept, frame)}</nav>
      <details class="menu"><summary>Menu</summary><nav aria-label="Pages, as a menu">${navigation(requested.path, kept, frame)}</nav></details>
    </header>
    <div class="page">
    <div class="bar" role="region" aria-label="Source and month">
      ${place !== undefined && place.sources.length > 0 && placeForm(page, requested, place, header)}
      ${asOfShown(frame)}
      <p class="quiet">${who.role === "viewer" && "Read-only. Email addresses are hidden."} ${who.name ?? ""}</p>
      ${canLogOut && html`<form method="post" action="/logout"><button class="plain">Log out</button></form>`}
    </div>
    <main id="content" tabindex="-1" ${page.live !== undefined && html`data-live="${page.live}"`}>${headed(page)}</main>
    </div>`,
  );
}

function asOfShown({ asOf, counts }: Frame): Html | "" {
  if (asOf === undefined) return "";
  const { syncedAt, isSyncing = false } = counts ?? {};
  const synced = isSyncing
    ? "Syncing · "
    : syncedAt !== undefined &&
      html`Synced <time datetime="${new Date(syncedAt).toISOString()}">${describeDuration(Math.max(1, Math.round((asOf - syncedAt) / 1000)) * 1000)} ago</time> · `;
  return html`<p class="as-of">${synced}<span data-as-of="${asOf}">As of ${instant(asOf)}</span> UTC</p>`;
}

function navigation(path: string, kept: Fields, { counts = {} }: Frame): Html[] {
  const [, first = ""] = path.split("/");
  const here = PARENTS[`/${first}`] ?? `/${first}`;
  return GROUPS.map(
    ([title, links]) =>
      html`<p class="group">${title}</p><ul>${links.map(([to, label, count]) => {
        const open = count === undefined ? 0 : (counts[count] ?? 0);
        return html`<li><a href="${address(to, kept)}" ${here === to && html`aria-current="page"`}>${label}${open > 0 && html` <span class="count">${open.toLocaleString("en-US")}<span class="visually-hidden"> open</span></span>`}</a></li>`;
      })}</ul>`,
  );
}

/** Fields of the address that another source or month keeps, because they do not depend on it. */
const KEPT = ["by", "measure", "currency", "per", "group_by", "meter", "says", "state", "sort"];
/** An arrow also keeps these, because it keeps the source. */
const KEPT_BY_ARROWS = [...KEPT, "workspace", "owner", "find", "rows"];

function placeForm(page: Page, { path, query }: Requested, place: Place, header: Chooses): Html {
  const { shown, month, months, sources } = place;
  const options = [
    ...(header.all && sources.length > 1 ? [{ value: ALL_SOURCES, text: "All sources" }] : []),
    ...sources.map(({ slug }) => ({ value: slug, text: slug })),
  ];
  const only = (fields: readonly string[]) =>
    Object.fromEntries(Object.entries(query).filter(([field, value]) => fields.includes(field) && value));
  const monthPath = page.paths?.of ?? (() => path);
  const arrow = (step: number, sign: string) => {
    const to = months[months.indexOf(month) - step];
    if (to === undefined) return html`<span class="arrow" aria-hidden="true">${sign}</span>`;
    const inPath = page.paths === undefined ? to : undefined;
    const href = address(monthPath(to), { ...only(KEPT_BY_ARROWS), source: shown, month: inPath });
    return html`<a class="arrow" href="${href}" aria-label="${titleOf(to)}">${sign}</a>`;
  };
  return html`<form class="place" method="get" action="${page.paths?.form ?? path}">
    ${hidden(only(KEPT))}
    <label>Source <select name="source">${options.map(({ value, text }) => html`<option value="${value}" ${value === shown && "selected"}>${text}</option>`)}</select></label>
    ${
      header.month
        ? html`<span class="pick">${arrow(-1, "‹")}<label><span class="visually-hidden">Month</span><select name="month">${months.map((one) => html`<option value="${one}" ${one === month && "selected"}>${titleOf(one)}</option>`)}</select></label>${arrow(1, "›")}</span>`
        : hidden({ month })
    }
    <button>Show</button>
  </form>`;
}

function titleOf(month: string): string {
  const named = monthNamed(month);
  return named === undefined ? month : monthTitle(named);
}

function document(title: string, body: Html): Html {
  return html`<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>${title}</title>
  <link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
  <link rel="stylesheet" href="/assets/style.css">
  <script type="module" src="/assets/live.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
${HATCH}
${body}
</body>
</html>`;
}

export async function sendPage(reply: FastifyReply, page: Page, frame: Frame): Promise<FastifyReply> {
  const { url, cookies } = reply.request;
  const [path = "", text] = url.split("?");
  const query = Object.fromEntries(new URLSearchParams(text));
  const { source, month } = frame.place ?? placeOfLinks(query, cookies[PLACE_COOKIE]);
  const kept = { source: frame.isSourceUnknown ? undefined : source, month };
  return sendHtml(reply, page.status ?? 200, layout(page, { path, query }, kept, frame));
}

export async function sendBare(reply: FastifyReply, status: number, page: Page): Promise<FastifyReply> {
  const main = html`<div class="page bare"><header><p class="product"><a href="/">usage-etl</a></p></header>
    <main id="content" tabindex="-1">${headed(page)}</main></div>`;
  return sendHtml(reply, status, document(`${page.title} · usage-etl`, main));
}

/** Compression is safe: each form has a different token, so sizes of responses reveal none. */
async function sendHtml(reply: FastifyReply, status: number, page: Html): Promise<FastifyReply> {
  reply.code(status).type("text/html; charset=utf-8").header("vary", "accept-encoding");
  const text = String(await page);
  if (!/\bgzip\b(?!\s*;\s*q=0)/.test(String(reply.request.headers["accept-encoding"] ?? "")))
    return reply.send(text);
  return reply.header("content-encoding", "gzip").send(await compressed(text));
}
