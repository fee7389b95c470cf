import { html } from "hono/html";
import { z } from "zod";
import { type EtlError, UsageError } from "../core/base/errors.ts";
import { parseJson } from "../core/base/json.ts";
import { printableLine } from "../core/base/printable.ts";
import { didYouMean } from "../core/base/spelling.ts";
import type { Status, Tone } from "../core/domain/proof/statuses.ts";
import { addDays } from "../core/domain/time/days.ts";
import { type Amount, amountShown, centsShown } from "../core/domain/usage/amount.ts";
import type { Meter } from "../core/domain/usage/meter.ts";
import { dimensionOf, type GroupBy } from "../core/domain/usage/record.ts";
import { DIMENSIONS } from "../core/store/db/dimensions.ts";

export { html };

/** A piece of a page. `html` escapes values, and inserts pieces and arrays of pieces as they are. */
export type Html = ReturnType<typeof html>;

const LONGEST = 60;

/** A name from the platform on one line, isolated from the text around it. A long name is cut and has a title. */
export function name(text: string): Html {
  const whole = printableLine(text);
  if (whole.trim() === "") return html`<bdi class="blank">(blank)</bdi>`;
  const short = shortened(whole);
  return short === whole ? html`<bdi>${whole}</bdi>` : html`<bdi title="${whole}">${short}</bdi>`;
}

export function otherId(id: string): Html {
  return html`<small class="id" title="${id}">${printableLine(id)}</small>`;
}

export function plainName(text: string): string {
  const whole = printableLine(text);
  return whole.trim() === "" ? "(blank)" : shortened(whole);
}

function shortened(text: string): string {
  const characters = [...text];
  return characters.length <= LONGEST ? text : `${characters.slice(0, LONGEST - 1).join("")}…`;
}

export function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

export function count(value: number | null, missing = "not known"): Html {
  return value === null
    ? html`<span class="none" title="${missing}">–<span class="visually-hidden"> ${missing}</span></span>`
    : html`<span class="number">${value.toLocaleString("en-US", { maximumFractionDigits: 9 })}</span>`;
}

/** `exact`: the amount before it was rounded as a part of a sum. */
export function money(amount: Amount, currency?: string, exact = amount): Html {
  return html`<span class="number" title="${amountShown(exact)}">${centsShown(amount, currency)}</span>`;
}

export function percent(value: number | null, { signed = false } = {}): string {
  if (value === null) return "–";
  const shown = Math.abs(value).toLocaleString("en-US", {
    minimumFractionDigits: 1,
    maximumFractionDigits: 1,
  });
  const sign = value < 0 ? "−" : signed && value > 0 ? "+" : "";
  return `${sign}${shown} %`;
}

export function signed(amount: number): string {
  const text = Math.abs(amount).toLocaleString("en-US", { maximumFractionDigits: 9 });
  if (amount === 0) return "±0";
  return amount > 0 ? `+${text}` : `−${text}`;
}

/** An instant (epoch ms or ISO text) to the second. The page's layout says that times are UTC. */
export function instant(at: number | string): Html {
  const iso = new Date(at).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 19).replace("T", " ")}</time>`;
}

export function twin(...commands: string[]): Html {
  const lines = commands.map((one) => html`<code>${one}</code>`);
  return html`<details class="twin"><summary>As ${commands.length === 1 ? "a command" : "commands"}</summary>${lines}</details>`;
}

export function prose(text: string): Html {
  const parts = printableLine(text).split(/`([^`]*)`/);
  return html`${parts.map((part, n) => (n % 2 === 0 ? part : html`<code>${part}</code>`))}`;
}

const NOTICES = {
  good: { glyph: "✓", word: "Good" },
  info: { glyph: "i", word: "Note" },
  warn: { glyph: "!", word: "Attention" },
  bad: { glyph: "✕", word: "Problem" },
} as const;

export function notice(kind: keyof typeof NOTICES, body: Html | string): Html {
  const { glyph, word } = NOTICES[kind];
  return html`<div class="notice ${kind}"><span class="sign" aria-hidden="true">${glyph}</span>
    <div><span class="visually-hidden">${word}: </span>${body}</div></div>`;
}

export function refusal({ message, next }: Pick<EtlError, "message" | "next">): Html {
  return notice("warn", html`<p>${prose(message)}</p><p>${prose(next)}</p>`);
}

export function joined(pieces: readonly (Html | string)[], between: Html | string = ", "): Html {
  return html`${pieces.map((one, n) => html`${n !== 0 && between}${one}`)}`;
}

/** Meters of deployments or sandboxes have the title of these instead of projects. */
export function dimensionTitle(groupBy: GroupBy, meter: Meter = "traces"): string {
  return DIMENSIONS[dimensionOf(meter, groupBy)].title;
}

/** A status as a label: `pill(MONTH_STATUS.open, "1 item")`. */
export function pill({ mark, word, tone, about }: Status, more?: string): Html {
  return html`<span class="pill ${tone}" title="${about}"><span aria-hidden="true">${mark}</span> ${word}${more !== undefined && ` · ${more}`}</span>`;
}

interface Box {
  readonly title: Html | string;
  readonly body: Html;
  /** Columns of twelve. On narrow windows each box takes all. Default: 12. */
  readonly span?: 4 | 6 | 8 | 12;
  readonly note?: Html | string;
  /** At the right of the title: links, or a legend. */
  readonly links?: Html | string;
  readonly id?: string;
}

/** A card with a title. Boxes stand in `columns`. */
export function box({ title, body, span = 12, note, links, id }: Box): Html {
  return html`<section class="card c${span}" ${id !== undefined && html`id="${id}"`}><header><h2>${title}</h2>${note !== undefined && html`<span class="quiet">${note}</span>`}${links !== undefined && html`<div class="more">${links}</div>`}</header>${body}</section>`;
}

/** The grid of twelve columns. */
export function columns(...parts: readonly (Html | "" | false)[]): Html {
  return html`<div class="columns">${parts.filter((part) => part !== "" && part !== false)}</div>`;
}

export interface Kpi {
  readonly label: string;
  /** A figure, as `count` and `money` show it, or a word. */
  readonly value: Html | string;
  readonly unit?: string | undefined;
  /** The line below: a change, a pill, a link. */
  readonly note?: Html | string;
}

/** The row of cards below a page's heading: three columns each, two beside each other on a phone. */
export function kpis(all: readonly Kpi[]): Html {
  return html`<dl class="kpis">${all.map(
    ({ label, value, unit, note }) =>
      html`<div class="card"><dt>${label}</dt><dd><span class="figure">${value}</span>${unit !== undefined && html` <small>${unit}</small>`}${note !== undefined && html`<div class="note">${note}</div>`}</dd></div>`,
  )}</dl>`;
}

export interface Todo {
  readonly tone: Tone;
  readonly mark: string;
  readonly what: Html | string;
  readonly details?: Html | string | undefined;
  readonly action?: Html | undefined;
}

/** What needs attention, one row each: mark, statement, details and one action. */
export function todos(all: readonly Todo[]): Html {
  return html`<ul class="todo">${all.map(
    ({ tone, mark, what, details, action }) =>
      html`<li><span class="mark ${tone}" aria-hidden="true">${mark}</span><div><strong>${what}</strong>${details !== undefined && html`<p>${details}</p>`}</div>${action}</li>`,
  )}</ul>`;
}

export function button(to: string, label: string, kind: "" | "primary" = ""): Html {
  return html`<a class="button ${kind}" href="${to}">${label}</a>`;
}

/** A share of 100 as a bar and in words. */
export function share(value: number | null): Html {
  if (value === null) return html`${percent(value)}`;
  return html`<meter min="0" max="100" value="${Math.min(100, Math.max(0, Math.round(value * 10) / 10))}" aria-hidden="true"></meter> ${percent(value)}`;
}

/** A change in percent, as ▲ or ▼ without a judgement. */
export function change(value: number | null, title?: string): Html {
  if (value === null)
    return html`<span class="none" ${title !== undefined && html`title="${title}"`}>–</span>`;
  const [mark, word] = value > 0 ? ["▲", "+"] : value < 0 ? ["▼", "−"] : ["", ""];
  return html`<span class="change" ${title !== undefined && html`title="${title}"`}><span aria-hidden="true">${mark} </span><span class="visually-hidden">${word}</span>${percent(Math.abs(value))}</span>`;
}

/** Filters that are on. Each is a link to the page without it. */
export function chips(all: readonly { readonly label: string; readonly without: string }[]): Html | "" {
  if (all.length === 0) return "";
  return html`<ul class="chips" aria-label="Filters">${all.map(
    ({ label, without }) =>
      html`<li><a href="${without}" aria-label="Remove the filter ${label}">${label} <span aria-hidden="true">×</span></a></li>`,
  )}</ul>`;
}

/** A form of filters in one line. `more`: fields that are folded. */
export function filterBar(action: string, fields: Html, more?: Html): Html {
  return html`<form class="row filter" method="get" action="${action}">${fields}${more !== undefined && html`<details class="more"><summary>More</summary><div class="row">${more}</div></details>`}<button>Apply</button></form>`;
}

/** The head of a column of numbers that sorts both ways. `to`: the address of the page in an order. The link keeps the place. */
export function sortHead(
  label: Html | string,
  {
    sorted,
    to,
    kind = "",
  }: {
    readonly sorted: "descending" | "ascending" | undefined;
    readonly to: (order: "descending" | "ascending") => string;
    readonly kind?: string;
  },
): Html {
  const next = sorted === "descending" ? "ascending" : "descending";
  return html`<th scope="col" class="number ${kind}" ${sorted !== undefined && html`aria-sort="${sorted}"`}><a href="${to(next)}#table">${label}${sorted !== undefined && html` <span aria-hidden="true">${sorted === "descending" ? "↓" : "↑"}</span>`}</a></th>`;
}

interface Table {
  readonly label?: string;
  readonly caption: string;
  readonly heads: readonly (string | Html)[];
  readonly rows: readonly Html[];
  readonly foot?: Html;
  /** `two`: rows of two lines on a phone, of cells with the classes `lead`, `share` and `change`. `opt` cells are left out there. */
  readonly kind?: string;
  /** `table`: links of `sortHead` lead here. */
  readonly id?: string;
}

export function scroll(label: string, content: Html, id?: string): Html {
  return html`<div class="scroll" role="region" tabindex="0" aria-label="${label}" ${id !== undefined && html`id="${id}"`}>${content}</div>`;
}

export function table({ caption, label = caption, heads, rows, foot, kind = "", id }: Table): Html {
  const content = html`<table class="${kind}">
    <caption>${caption}</caption>
    <thead><tr>${heads.map((head) => (typeof head === "string" ? html`<th scope="col">${head}</th>` : head))}</tr></thead>
    <tbody>${rows}</tbody>
    ${foot !== undefined && html`<tfoot>${foot}</tfoot>`}
  </table>`;
  return scroll(label, content, id);
}

export type Cell = readonly [column: string, cell: Html | string, kind?: string];

export function fact(label: Html | string, value: Html | string): Html {
  return html`<div><dt>${label}</dt><dd>${value}</dd></div>`;
}

/** A row of a table with the class `cards`. On a phone each cell is a line that begins with its column's name. */
export function card(first: Html | string, cells: readonly Cell[]): Html {
  return html`<tr><th scope="row">${first}</th>${cells.map(
    ([column, cell, kind]) =>
      html`<td data-column="${column}" ${kind !== undefined && html`class="${kind}"`}>${cell}</td>`,
  )}</tr>`;
}

/** The head of a column of numbers. `spare`: phones hide the column, whose cells must have this class too. */
export function numberHead(label: string, spare: "" | "spare" | "opt" = ""): Html {
  return html`<th scope="col" class="number ${spare}">${label}</th>`;
}

export function postForm(
  action: string,
  { csrf, label, fields }: { csrf: string; label: string; fields: Fields },
): Html {
  return html`<form method="post" action="${action}">
    ${hidden({ _csrf: csrf, ...fields })}
    <button>${label}</button>
  </form>`;
}

/** Fields of an address or a form. A list gives a field several times; undefined fields are left out. */
export type Fields = Readonly<Record<string, string | number | readonly string[] | undefined>>;

const pairsOf = (fields: Fields): [string, string][] =>
  Object.entries(fields).flatMap(([field, given]) =>
    [given ?? []].flat().map((value): [string, string] => [field, String(value)]),
  );

export function address(path: string, fields: Fields): string {
  const query = new URLSearchParams(pairsOf(fields));
  return query.size === 0 ? path : `${path}?${query}`;
}

export function hidden(fields: Fields): Html[] {
  return pairsOf(fields).map(
    ([field, value]) => html`<input type="hidden" name="${field}" value="${value}">`,
  );
}

type Option = string | { readonly value: string; readonly text: string };

export function choice(
  label: string,
  field: string,
  options: readonly Option[],
  chosen: string | undefined,
): Html {
  return html`<label>${label}
    <select name="${field}">${options
      .map((option) => (typeof option === "string" ? { value: option, text: option } : option))
      .map(
        ({ value, text }) =>
          html`<option value="${value}" ${value === chosen && "selected"}>${text}</option>`,
      )}</select>
  </label>`;
}

export const ALL = { value: "", text: "all" };

export function sourceField(slugs: readonly string[], chosen: string | undefined): Html | Html[] {
  return slugs.length > 1 ? choice("Source", "source", slugs, chosen) : hidden({ source: slugs[0] ?? "" });
}

export function dayField(label: string, field: string, value: string | undefined): Html {
  return html`<label>${label}
    <input type="date" name="${field}" value="${value ?? ""}">
  </label>`;
}

/** A field for the last day of a range, which pages accept instead of `to`, the day after it. */
export function lastDayField(to: string | undefined): Html {
  return dayField("To (included)", "until", to === undefined ? undefined : addDays(to, -1));
}

/** Forms send an empty text for an empty field. */
export const optional = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (value === "" ? undefined : value), schema.optional());

export function cursorField<S extends z.ZodType>(schema: S) {
  return z
    .string()
    .max(8000)
    .transform((text, context): z.output<S> => {
      const { data, error } = schema.safeParse(readJson(text));
      if (error === undefined) return data;
      context.addIssue({ code: "custom", message: "This is no place in the list. Begin at its first page" });
      return z.NEVER;
    })
    .optional();
}

export function cursorText(cursor: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(cursor)).toString("base64url");
}

function readJson(text: string): unknown {
  try {
    return parseJson(Buffer.from(text, "base64url").toString());
  } catch {
    return undefined;
  }
}

export function sourceUnknown(source: string, known: readonly string[]): UsageError {
  return new UsageError({
    code: "source_unknown",
    message: `There is no loaded source ${source}${didYouMean(source, known) || "."}`,
    next: `Choose one of: ${known.join(", ") || "none yet; run `usage-etl sync` first"}.`,
  });
}
