import { describeDuration } from "../../../clock.ts";
import type { Age } from "../../replica.ts";
import { type Html, html } from "../html.ts";
import { notice } from "./notice.ts";
import { instant } from "./text.ts";

/** Where the navigation leads. */
const SCREENS = [
  ["/", "Overview"],
  ["/coverage", "Coverage"],
  ["/usage", "Usage and costs"],
  ["/differences", "Differences"],
  ["/months", "Months"],
  ["/backfills", "Backfills"],
  ["/timeline", "Timeline"],
] as const;

interface Page {
  readonly title: string;
  readonly body: Html;
}

interface Frame {
  /** Path of the page, for the navigation. */
  readonly path: string;
  /** Postgres's clock, epoch milliseconds; undefined where it was not asked. */
  readonly asOf: number | undefined;
  /** Of a page from a replica. */
  readonly age?: Age | undefined;
  readonly who: { readonly role: string; readonly name: string | null };
  /** Whether somebody logged in, and can log out. */
  readonly canLogOut: boolean;
}

export function layout(page: Page, { path, asOf, age, who, canLogOut }: Frame): Html {
  const isHere = (start: string) => (start === "/" ? path === "/" : `${path}/`.startsWith(`${start}/`));
  return document(
    page.title,
    html`<header>
      <p class="product"><a href="/">usage-etl</a></p>
      <nav aria-label="Screens"><ul>${SCREENS.map(
        ([to, label]) =>
          html`<li><a href="${to}" ${isHere(to) ? html`aria-current="page"` : ""}>${label}</a></li>`,
      )}</ul></nav>
    </header>
    <main id="content" tabindex="-1">
      <h1>${page.title}</h1>
      ${asOf === undefined ? "" : asOfLine(asOf, age)}
      ${page.body}
    </main>
    <footer>
      <p>All days and times are UTC.</p>
      <p>${who.role === "viewer" ? "You may look. Addresses of users are masked." : ""} ${who.name ?? ""}</p>
      ${canLogOut ? html`<form method="post" action="/logout"><button class="plain">Log out</button></form>` : ""}
    </footer>`,
  );
}

/** A page is never older without saying so. */
function asOfLine(asOf: number, age: Age | undefined): Html {
  if (age === undefined) return html`<p class="as-of" data-as-of="${asOf}">As of ${instant(asOf)}</p>`;
  const { lagMs, isOld } = age;
  const ago = lagMs < 1000 ? "" : `, ${describeDuration(Math.floor(lagMs / 1000) * 1000)} ago`;
  const line = html`<p class="as-of" data-as-of="${asOf}" data-lag="${Math.round(lagMs)}">As of ${instant(asOf)}<span class="age">${ago}</span>, from a replica</p>`;
  if (!isOld) return line;
  return html`${line}${notice(
    "bad",
    html`<p>Postgres does not answer. This page is from a replica, and shows nothing that came later.</p>
    <p>Nothing is lost: the service goes on once Postgres answers.</p>`,
  )}`;
}

/** Without navigation. */
export function bareLayout({ title, body }: Page): Html {
  return document(
    title,
    html`<header><p class="product"><a href="/">usage-etl</a></p></header>
    <main id="content" tabindex="-1"><h1>${title}</h1>${body}</main>`,
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
${body}
</body>
</html>`;
}
