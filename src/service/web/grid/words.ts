import {
  type Count,
  type GridStride,
  kindOf,
  statusOf,
  unitsOf,
} from "../../../domain/coverage/coverage-grid.ts";
import { DAY_MS } from "../../../domain/time/stride.ts";
import type { Interval } from "../../../domain/time/window.ts";
import type { GroupBy } from "../../../domain/usage/record.ts";
import { printableLine } from "../../../printable.ts";
import { type Html, html } from "../html.ts";
import { STATUSES, type Status } from "../parts/status.ts";
import { written } from "./query.ts";

/** How dimensions are called. */
export const DIMENSION: Readonly<Record<GroupBy, string>> = {
  workspace: "workspace",
  project: "project",
  user: "user",
  api_key: "API key",
};

/** Short enough for a narrow cell; the whole word stands beside it for screen readers. */
const SHORT: Readonly<Record<Status, string>> = {
  ...{ not_available: "n/a", failed: "fail", missing: "miss", unverified: "unver" },
  ...{ provisional: "prov", empty: "empty", ok: "final" },
};

/** A range by its first and last day, or by its hours. */
export function rangeText({ start, end }: Interval): string {
  if (start % DAY_MS !== 0 || end % DAY_MS !== 0) return `${hour(start)} to ${hour(end)}`;
  const [first, last] = [written(start), written(end - DAY_MS)];
  return first === last ? first : `${first} to ${last}`;
}

function hour(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace("T", " ");
}

/** The sign, word and colour of a part, how much of it that is, and its marks. `text`: all of it in words. */
export function cellContent(count: Count, status: Status, text: string): Html {
  const { glyph } = STATUSES[status];
  const worst = kindOf(count);
  const affected = worst === undefined ? 0 : count[worst];
  const share = affected === unitsOf(count) ? "" : ` ${affected}`;
  return html`<span class="status ${status}" aria-hidden="true">${glyph} <span class="word">${SHORT[status]}${share}</span></span><span class="visually-hidden">${text}</span>${marks(count)}`;
}

/** The counts of a part in words: the worst first. */
export function described(count: Count, status: Status, unit: string): string {
  const units = unitsOf(count);
  if (units === 0) return "nothing expected";
  const kinds = (["not_available", "failed", "missing", "unverified", "provisional", "final"] as const)
    .filter((kind) => count[kind] > 0)
    .map((kind) => {
      const { word } = STATUSES[statusOf(kind, status !== "empty")];
      return count[kind] === units ? word : `${word} ${count[kind]} of ${units} ${unit}`;
    });
  const proofs = [
    ...(count.reconciled > 0 ? [proof("reconciled", count.reconciled, units)] : []),
    ...(count.matched > 0 ? [proof("matched by totals", count.matched, units)] : []),
  ];
  return [...kinds, ...proofs].join(", ");
}

function proof(word: string, proved: number, units: number): string {
  return proved >= units ? word : `${word} ${proved} of ${units}`;
}

/** Marks stand only where all of the part is proved. */
function marks(count: Count): Html {
  const units = unitsOf(count);
  const letters = [
    ...(units > 0 && count.reconciled >= units ? ["R"] : []),
    ...(units > 0 && count.matched >= units ? ["T"] : []),
  ];
  if (letters.length === 0) return html``;
  return html`<span class="marks" aria-hidden="true">${letters.map((one) => html`<span class="mark">${one}</span>`)}</span>`;
}

/** What the marks mean. */
export function marksLegend(): Html {
  return html`<dl class="legend">
    <div><dt><span class="mark" aria-hidden="true">R</span> reconciled</dt><dd>all of it equals the platform's export</dd></div>
    <div><dt><span class="mark" aria-hidden="true">T</span> matched by totals</dt><dd>all of it is part of a total that equals the stored days</dd></div>
  </dl>`;
}

export function unitOf(length: "month" | "day" | "hour", stride: GridStride, dimensions: number): string {
  const units = length === "hour" && stride === "hour" ? "hours" : "days";
  return dimensions > 1 ? `${units} x dimensions` : units;
}

/** A name where markup cannot stand, such as in a list to choose from. */
export function plainName(text: string): string {
  const characters = [...printableLine(text)];
  if (characters.every((one) => one.trim() === "")) return "(blank)";
  return characters.length <= 60 ? characters.join("") : `${characters.slice(0, 59).join("")}…`;
}
