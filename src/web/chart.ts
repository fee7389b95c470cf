import { dayTitle } from "../core/domain/months/month.ts";
import { addDays } from "../core/domain/time/days.ts";
import { UNUSUAL_METHOD } from "../core/domain/usage/unusual.ts";
import { type Html, html, scroll } from "./parts.ts";

export interface ChartPoint {
  /** First day of the bucket, or the instant of an hour. */
  readonly at: string;
  /** Null: a part of the value is not loaded. It is never drawn as zero. */
  readonly value: number | null;
  readonly atLeast?: number | null;
  readonly isFinal: boolean;
  readonly isRestated?: boolean;
  readonly unusual?: string | undefined;
}

interface ChartPart {
  /** `s1` to `s5`, or `rest` for what has no team or project. */
  readonly kind: string;
  readonly name: string;
  readonly values: readonly number[];
}

interface Chart {
  readonly points: readonly ChartPoint[];
  /** Parts of each bar, from the bottom up. The rest of the value is on top. */
  readonly parts?: readonly ChartPart[];
  /** An earlier range, drawn as a line over the bars. Its first point is at the first of `points`. */
  readonly before?: readonly ChartPoint[];
  /** Address for a range of the chart. `from` and `to` are added. */
  readonly zoom?: string | undefined;
  readonly end?: string;
  readonly height?: number;
  readonly label: string;
  readonly unit: string;
  readonly isMoney?: boolean;
}

export const MOST_PARTS = 5;
const MOST_NAMED = 100;

const CHARACTER = 6.6;
const ROOM = { top: 10, bottom: 22 } as const;
/** What is drawn is this wide, and stretched to the width of its card. Texts stand at percentages of it. */
const WIDTH = 1000;
/** Narrower runs have no room for a text. */
const LEAST_FOR_TEXT = 90;

/** Bars over time, as wide as their card. The scale stands still beside what scrolls on a phone. */
export function timeChart(chart: Chart): Html {
  const { points, parts = [], before = [], zoom, end, height = 240, label } = chart;
  const values = [...points, ...before].map((point) => point.value ?? point.atLeast ?? 0);
  const ticks = ticksUpTo(Math.max(0, ...values));
  const top = ticks.at(-1) ?? 1;
  const left = Math.max(...ticks.map((tick) => compact(tick).length)) * CHARACTER + 8;
  const bottom = height - ROOM.bottom;
  const step = WIDTH / Math.max(points.length, 1);
  const x = (n: number) => (n + 0.5) * step;
  const at = (n: number) => `${round(x(n) / 10)}%`;
  const y = (value: number) => bottom - (value / top) * (bottom - ROOM.top);
  const bar = { width: Math.max(step * 0.76, Math.min(step, 0.8)), x: (n: number) => x(n) - step * 0.38, y };
  const ghost = before
    .slice(0, points.length)
    .map((point, n) => ({ ...point, x: x(n), y: y(point.value ?? 0) }));
  const column = (kind: string, { first, after }: Run, room = bottom - ROOM.top) =>
    html`<rect class="${kind}" x="${round(first * step)}" y="${ROOM.top}" width="${round((after - first) * step)}" height="${round(room)}"></rect>`;
  const mark = (kind: string, sign: string, n: number, value: number) =>
    html`<text class="${kind}" x="${at(n)}" y="${round(Math.max(y(value) - 4, 10))}">${sign}</text>`;
  const gaps = gapsOf(points);
  const svg = html`<svg class="chart" role="img" width="100%" height="${height}" ${zoom !== undefined && html`data-zoom="${zoom}" data-end="${end}"`}>
    <title>${label}</title>
    <desc>${summary(chart)}</desc>
    <svg viewBox="0 0 ${WIDTH} ${height}" width="100%" height="${height}" preserveAspectRatio="none">
    ${runsOf(points, isWeekend).map((run) => column("weekend", run))}
    ${ticks.map((tick) => html`<path class="grid" d="M0 ${round(y(tick))}H${WIDTH}"></path>`)}
    ${gaps.map((run) => column("gap", run))}
    ${barsOf(points, parts).map(({ kind, bars }) => html`<path class="bar ${kind}" d="${bars.map((one) => barPath(one, bar)).join("")}"></path>`)}
    ${
      !points.every(({ isFinal, value }) => isFinal || value === null) &&
      html`<path class="open" d="${points
        .map(({ value, isFinal }, n) =>
          isFinal || value === null ? "" : barPath({ n, from: 0, to: value }, bar),
        )
        .join("")}"></path>`
    }
    ${ghost.length > 0 && html`<g class="ghost">${linesOf(ghost)}</g>`}
    </svg>
    ${gaps
      .filter(({ first, after }) => (after - first) * step >= LEAST_FOR_TEXT)
      .map(
        ({ first, after }) =>
          html`<text class="axis x" x="${round(((first + after) / 2) * (step / 10))}%" y="${round((ROOM.top + bottom) / 2)}">not loaded</text>`,
      )}
    ${points.map(({ value, atLeast, isRestated, unusual }, n) => {
      const least = value ?? atLeast ?? 0;
      return html`${value === null && least > 0 && mark("at-least", "▵", n, least)}${isRestated === true && mark("restated", "▾", n, least)}${unusual !== undefined && mark("unusual", "●", n, least)}`;
    })}
    ${dates(points).map(
      (n) =>
        html`<text class="axis x${n === points.length - 1 && n > 0 ? " last" : ""}" x="${n === points.length - 1 && n > 0 ? "100%" : at(n)}" y="${height - 6}">${axisText(points[n]?.at ?? "")}</text>`,
    )}
    ${points.map(
      (point, n) =>
        html`<rect class="hit" ${zoom !== undefined && html`data-at="${point.at.slice(0, 10)}"`} x="${round((n * step) / 10)}%" y="${ROOM.top}" width="${round(step / 10)}%" height="${round(bottom - ROOM.top)}"><title>${said(chart, n)}</title></rect>`,
    )}
  </svg>`;
  return html`<div class="plot"><svg class="scale" aria-hidden="true" width="${Math.ceil(left)}" height="${height}">${ticks.map(
    (tick) =>
      html`<text class="axis y" x="${round(left - 5)}" y="${round(y(tick) + 4)}">${compact(tick)}</text>`,
  )}</svg>${scroll(label, svg)}</div>`;
}

interface Key {
  readonly kind: string;
  readonly name: Html | string;
  /** The part's name in the chart, whose value of the pointed day is shown here. */
  readonly part?: string;
  readonly title?: string;
}

/** The key of a chart, for the head of its card. A script adds the values of the pointed day. */
export function chartLegend(keys: readonly Key[]): Html {
  return html`<ul class="legend">${keys.map(
    ({ kind, name, part, title }) =>
      html`<li ${part !== undefined && html`data-part="${part}"`} ${title !== undefined && html`title="${title}"`}><span class="swatch ${kind}" aria-hidden="true"></span> ${name}</li>`,
  )}</ul>`;
}

export function chartKeys(
  { points, parts = [], before = [] }: Pick<Chart, "points" | "parts" | "before">,
  named: {
    /** Of the earlier range. */
    readonly before?: string;
    readonly rest?: string | undefined;
  },
): Key[] {
  const has = (isSo: (point: ChartPoint) => boolean) => points.some(isSo);
  // What has no team is as grey as all others.
  const hasGrey = parts.some(({ kind }) => kind === "rest");
  return [
    ...(parts.length < 2
      ? []
      : parts.map(({ kind, name }) => ({
          kind,
          name: kind === "rest" && named.rest !== undefined ? `${name}, ${named.rest.toLowerCase()}` : name,
          part: name,
        }))),
    ...(named.rest === undefined || hasGrey ? [] : [{ kind: "rest", name: named.rest }]),
    ...(before.some(({ value }) => value !== null) ? [{ kind: "ghost", name: named.before ?? "" }] : []),
    ...(has(({ value, isFinal }) => value !== null && !isFinal)
      ? [{ kind: "s1 open", name: "Provisional" }]
      : []),
    ...(has(({ value }) => value === null) ? [{ kind: "gap", name: "Not loaded" }] : []),
    ...(has(({ unusual }) => unusual !== undefined)
      ? [{ kind: "unusual", name: "Unusual", title: UNUSUAL_METHOD }]
      : []),
    ...(has(({ isRestated }) => isRestated === true) ? [{ kind: "restated", name: "Restated" }] : []),
  ];
}

export const HATCH: Html = html`<svg class="visually-hidden" aria-hidden="true" width="0" height="0"><defs>
  <pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch" width="2.5" height="5"></rect></pattern>
</defs></svg>`;

interface Bar {
  readonly n: number;
  readonly from: number;
  readonly to: number;
}

/** Bars of each part and of the rest. A bucket with a negative part cannot be stacked, so it has one bar. */
function barsOf(points: readonly ChartPoint[], parts: readonly ChartPart[]): { kind: string; bars: Bar[] }[] {
  const stacks = [
    ...parts.map(({ kind }) => ({ kind, bars: [] as Bar[] })),
    { kind: parts.length === 0 ? "s1" : "rest", bars: [] as Bar[] },
  ];
  points.forEach(({ value }, n) => {
    if (value === null) return;
    const values = parts.map((part) => part.values[n] ?? 0);
    const rest = value - values.reduce((sum, one) => sum + one, 0);
    // A sum of decimals is not exact to the last digit.
    const isStacked = values.every((one) => one >= 0) && rest > -1e-6 * Math.abs(value);
    let from = 0;
    (isStacked ? [...values, Math.max(rest, 0)] : [...values.map(() => 0), value]).forEach((one, part) => {
      if (one > 0) stacks[part]?.bars.push({ n, from, to: from + one });
      from += one;
    });
  });
  return stacks.filter(({ bars }) => bars.length > 0);
}

function barPath(
  { n, from, to }: Bar,
  { width, x, y }: { width: number; x: (n: number) => number; y: (value: number) => number },
): string {
  return `M${round(x(n))} ${round(y(from))}V${round(y(to))}h${round(width)}V${round(y(from))}z`;
}

export function sparkline(points: readonly ChartPoint[]): Html {
  const [width, height] = [120, 24];
  const top = Math.max(1e-9, ...points.map(({ value }) => value ?? 0));
  const step = width / Math.max(points.length, 1);
  const drawn = points.map((point, n) => ({
    ...point,
    x: (n + 0.5) * step,
    y: height - 2 - ((point.value ?? 0) / top) * (height - 4),
  }));
  return html`<svg class="spark" aria-hidden="true" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">${linesOf(drawn)}</svg>`;
}

type Drawn = ChartPoint & { readonly x: number; readonly y: number };

/** Joins neighbouring points, dashed if one of them is not final. A point between two gaps is a dot. */
function linesOf(points: readonly Drawn[]): Html[] {
  const paths = { final: "", provisional: "" };
  const dots: Drawn[] = [];
  let last: keyof typeof paths | undefined;
  points.forEach((point, n) => {
    const before = points[n - 1];
    const isAlone = isGap(before) && isGap(points[n + 1]);
    if (!isGap(point) && isAlone) dots.push(point);
    if (isGap(point) || isGap(before)) {
      last = undefined;
      return;
    }
    const kind = point.isFinal && before.isFinal ? "final" : "provisional";
    if (kind !== last) paths[kind] += `M${round(before.x)} ${round(before.y)}`;
    paths[kind] += `L${round(point.x)} ${round(point.y)}`;
    last = kind;
  });
  return [
    ...Object.entries(paths).map(([kind, d]) =>
      d === "" ? html`` : html`<path class="line ${kind}" d="${d}"></path>`,
    ),
    ...dots.map(
      ({ x, y, isFinal }) =>
        html`<circle class="dot ${isFinal ? "final" : "provisional"}" cx="${round(x)}" cy="${round(y)}" r="2.5"></circle>`,
    ),
  ];
}

function isGap(point: Drawn | undefined): point is undefined {
  return point === undefined || point.value === null;
}

interface Run {
  readonly first: number;
  readonly after: number;
}

function gapsOf(points: readonly ChartPoint[]): Run[] {
  return runsOf(points, ({ value }) => value === null);
}

function runsOf(
  points: readonly ChartPoint[],
  isSo: (point: ChartPoint, n: number, all: readonly ChartPoint[]) => boolean,
): Run[] {
  const runs: Run[] = [];
  points.forEach((point, n) => {
    const last = runs.at(-1);
    if (!isSo(point, n, points)) return;
    if (last?.after === n) runs[runs.length - 1] = { first: last.first, after: n + 1 };
    else runs.push({ first: n, after: n + 1 });
  });
  return runs;
}

/** Returns ticks from zero in at most five steps of 1, 2 or 5 times a power of ten. */
function ticksUpTo(most: number): number[] {
  if (most <= 0) return [0, 1];
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough) ?? 10 * power;
  const last = Math.ceil(most / step - 1e-9);
  return Array.from({ length: last + 1 }, (_, n) => Number((n * step).toPrecision(12)));
}

/** Mondays of days, every sixth of hours, else as many as there is room for. */
function dates(points: readonly ChartPoint[]): number[] {
  const all = points.map((_, n) => n);
  const isHour = (points[0]?.at.length ?? 0) > 10;
  const isDays = !isHour && points.every(({ at }, n) => n === 0 || dayAfter(points[n - 1]?.at ?? "") === at);
  const chosen = isDays && points.length > 10 ? all.filter((n) => weekday(points[n]?.at) === 1) : all;
  const room = isHour ? 7 : 14;
  const every = Math.max(1, Math.ceil(chosen.length / room));
  const thinned = chosen.filter((_, n) => n % every === 0);
  return thinned[0] !== undefined && thinned[0] >= points.length / 12 ? [0, ...thinned] : thinned;
}

function dayAfter(day: string): string {
  return addDays(day, 1);
}

function weekday(at: string | undefined): number {
  return new Date(at ?? "").getUTCDay();
}

function isWeekend({ at }: ChartPoint, n: number, points: readonly ChartPoint[]): boolean {
  const isDay = at.length === 10 && points.length > 2 && dayAfter(at) === (points[n + 1]?.at ?? dayAfter(at));
  return isDay && weekday(at) % 6 === 0;
}

function axisText(at: string): string {
  return at.length > 10 ? `${dayTitle(at)} ${at.slice(11, 16)}` : dayTitle(at);
}

const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 2 });

function compact(value: number): string {
  return value >= 10_000 ? COMPACT.format(value).toLowerCase() : shown(value);
}

function summary({ points, unit }: Chart): string {
  const known = points.filter((point): point is ChartPoint & { value: number } => point.value !== null);
  const values = known.map(({ value }) => value);
  const most = known.find(({ value }) => value === Math.max(...values));
  const least = known.find(({ value }) => value === Math.min(...values));
  const named = (runs: readonly Run[]) =>
    runs
      .map(({ first, after }) => {
        const [from, to] = [points[first]?.at ?? "", points[after - 1]?.at ?? ""];
        return from === to ? shortAt(from) : `${shortAt(from)} to ${shortAt(to)}`;
      })
      .join(", ");
  const gaps = gapsOf(points);
  const open = runsOf(points, ({ value, isFinal }) => value !== null && !isFinal);
  return [
    points.length === 0
      ? "Nothing to draw."
      : `From ${shortAt(points[0]?.at ?? "")} to ${shortAt(points.at(-1)?.at ?? "")}.`,
    most === undefined || least === undefined
      ? ""
      : `Most ${shown(most.value)} ${unit} on ${shortAt(most.at)}, least ${shown(least.value)} on ${shortAt(least.at)}.`,
    gaps.length === 0 ? "" : `Not fully loaded: ${named(gaps)}.`,
    open.length === 0 ? "" : `Provisional: ${named(open)}.`,
  ]
    .filter((sentence) => sentence !== "")
    .join(" ");
}

function said({ points, parts = [], before = [], unit, isMoney = false }: Chart, n: number): string {
  const told = isMoney ? inCents : shown;
  const { at, value, atLeast, isFinal, isRestated, unusual } = points[n] as ChartPoint;
  const lines =
    value !== null
      ? [`${shortAt(at)}: ${told(value)} ${unit}${isFinal ? "" : ", provisional"}`]
      : [
          `${shortAt(at)}: not fully loaded${(atLeast ?? 0) > 0 ? `, at least ${told(atLeast ?? 0)} ${unit}` : ""}`,
        ];
  if (isRestated === true) lines[0] += ", changed when it was final";
  if (unusual !== undefined) lines.push(`Unusual: ${unusual}`);
  if (points.length > MOST_NAMED) return lines.join("\n");
  for (const { name, values } of value === null ? [] : parts)
    if (values[n] !== 0) lines.push(`${name}: ${told(values[n] ?? 0)}`);
  const early = before[n];
  if (early !== undefined && early.value !== null) lines.push(`${shortAt(early.at)}: ${told(early.value)}`);
  return lines.join("\n");
}

function shortAt(at: string): string {
  const day = dayTitle(at, { withYear: true });
  return at.length > 10 ? `${day} ${at.slice(11, 16)}` : day;
}

// Creating a formatter takes longer than drawing a thousand values.
const LARGE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });
const SMALL = new Intl.NumberFormat("en-US", { maximumFractionDigits: 10 });

function shown(value: number): string {
  return (Math.abs(value) < 1 ? SMALL : LARGE).format(value);
}

function inCents(value: number): string {
  const digits = Math.abs(value) < 0.005 ? {} : { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return value.toLocaleString("en-US", { maximumFractionDigits: 10, ...digits });
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
