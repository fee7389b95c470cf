import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyReply } from "fastify";
import { HATCH } from "./chart.ts";
import { address, type Html, html, instant } from "./parts.ts";

const compressed = promisify<string, Buffer>(gzip);

const SCREENS = [
  ["/", "Overview"],
  ["/coverage", "Coverage"],
  ["/usage", "Usage and costs"],
  ["/owners", "Owners"],
  ["/differences", "Differences"],
  ["/months", "Months"],
  ["/invoices", "Invoices"],
  ["/alerts", "Alerts"],
  ["/backfills", "Backfills"],
  ["/timeline", "Timeline"],
] as const;

export interface Page {
  readonly title: string;
  readonly body: Html;
  readonly status?: number;
}

export interface Viewed {
  readonly who: { readonly role: string; readonly name: string | null };
  readonly canLogOut: boolean;
}

interface Frame extends Viewed {
  /** Postgres's clock, epoch ms. Undefined: the page has no figures. */
  readonly asOf?: number;
  readonly isSourceUnknown?: boolean;
}

function placeOf(url: string) {
  const [path = "", query] = url.split("?");
  const source = new URLSearchParams(query).get("source") ?? "";
  return { path, source: /^[a-z][a-z0-9_-]{0,62}$/.test(source) ? source : undefined };
}

function layout(page: Page, { path, source }: ReturnType<typeof placeOf>, frame: Frame): Html {
  const { asOf, who, canLogOut, isSourceUnknown } = frame;
  const isHere = (start: string) => (start === "/" ? path === "/" : `${path}/`.startsWith(`${start}/`));
  return document(
    page.title,
    html`<header>
      <p class="product"><a href="/">usage-etl</a></p>
      <nav aria-label="Screens"><ul>${SCREENS.map(
        ([to, label]) =>
          html`<li><a href="${to === "/" ? to : address(to, isSourceUnknown ? {} : { source })}" ${isHere(to) && html`aria-current="page"`}>${label}</a></li>`,
      )}</ul></nav>
    </header>
    <main id="content" tabindex="-1">
      <h1>${page.title}</h1>
      ${asOf !== undefined && html`<p class="as-of" data-as-of="${asOf}">As of ${instant(asOf)}</p>`}
      ${page.body}
    </main>
    <footer>
      <p>All days and times are UTC.</p>
      <p>${who.role === "viewer" && "You may look. Addresses of users are masked."} ${who.name ?? ""}</p>
      ${canLogOut && html`<form method="post" action="/logout"><button class="plain">Log out</button></form>`}
    </footer>`,
  );
}

function document(title: string, body: Html): Html {
  return html`<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>${title} · usage-etl</title>
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
  const place = placeOf(reply.request.url);
  return sendHtml(reply, page.status ?? 200, layout(page, place, frame));
}

export async function sendBare(reply: FastifyReply, status: number, page: Page): Promise<FastifyReply> {
  const { title, body } = page;
  const main = html`<header><p class="product"><a href="/">usage-etl</a></p></header>
    <main id="content" tabindex="-1"><h1>${title}</h1>${body}</main>`;
  return sendHtml(reply, status, document(title, main));
}

/** Compression is safe: each form has a different token, so sizes of responses reveal none. */
async function sendHtml(reply: FastifyReply, status: number, page: Html): Promise<FastifyReply> {
  reply.code(status).type("text/html; charset=utf-8").header("vary", "accept-encoding");
  const text = String(await page);
  if (!/\bgzip\b(?!\s*;\s*q=0)/.test(String(reply.request.headers["accept-encoding"] ?? "")))
    return reply.send(text);
  return reply.header("content-encoding", "gzip").send(await compressed(text));
}
