import { type Html, html } from "./parts.ts";

/** One bucket of a chart. */
export interface ChartPoint {
  /** First day of the bucket, or the instant of an hour. */
  readonly at: string;
  /** Null: not known, because something of it is not loaded. It is never drawn as zero. */
  readonly value: number | null;
  /** Where the value is not known: what is loaded of it. */
  readonly atLeast?: number | null;
  readonly isFinal: boolean;
}

interface Chart {
  readonly points: readonly ChartPoint[];
  /** Of the drawing, in its own units; the page scales it. */
  readonly width: number;
  readonly height: number;
  /** What it shows, for those who do not see it. */
  readonly label: string;
  /** Of its figures: `traces`, `USD`. */
  readonly unit: string;
}

/** Units of the drawing that one character of an axis takes, and the room around the plot. */
const CHARACTER = 6.6;
const ROOM = { top: 10, right: 12, bottom: 22 } as const;

/** A line over time with axes, as SVG. Each bucket has its figure as a title, which browsers show without a script. */
export function timeChart(chart: Chart): Html {
  const { points, width, height, label, unit } = chart;
  const ticks = ticksUpTo(Math.max(0, ...points.map((point) => point.value ?? point.atLeast ?? 0)));
  const top = ticks.at(-1) ?? 1;
  const left = Math.max(...ticks.map((tick) => shown(tick).length)) * CHARACTER + 10;
  const plot = { left, right: width - ROOM.right, top: ROOM.top, bottom: height - ROOM.bottom };
  const step = (plot.right - plot.left) / Math.max(points.length, 1);
  const x = (n: number) => plot.left + (n + 0.5) * step;
  const y = (value: number) => plot.bottom - (value / top) * (plot.bottom - plot.top);
  const drawn = points.map((point, n) => ({ ...point, x: x(n), y: y(point.value ?? 0) }));
  return html`<svg class="chart" role="img" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
    <title>${label}</title>
    <desc>${summary(chart)}</desc>
    ${ticks.map(
      (
        tick,
      ) => html`<line class="grid" x1="${round(plot.left)}" x2="${round(plot.right)}" y1="${round(y(tick))}" y2="${round(y(tick))}"></line>
      <text class="axis y" x="${round(plot.left - 5)}" y="${round(y(tick) + 4)}">${shown(tick)}</text>`,
    )}
    ${gapsOf(points).map(
      ({ first, after }) =>
        html`<rect class="gap" x="${round(plot.left + first * step)}" y="${plot.top}" width="${round((after - first) * step)}" height="${round(plot.bottom - plot.top)}"></rect>`,
    )}
    ${linesOf(drawn)}
    ${drawn.map((point) =>
      point.value === null && (point.atLeast ?? 0) > 0
        ? html`<path class="at-least" d="M${round(point.x - 4)} ${round(y(point.atLeast ?? 0) + 3)}h8l-4 -6z"></path>`
        : "",
    )}
    ${dates(points, plot.right - plot.left).map(
      (n) =>
        html`<text class="axis x" x="${round(x(n))}" y="${height - 6}">${shortAt(points[n]?.at ?? "")}</text>`,
    )}
    ${points.map(
      (point, n) =>
        html`<rect class="hit" x="${round(plot.left + n * step)}" y="${plot.top}" width="${round(step)}" height="${round(plot.bottom - plot.top)}"><title>${said(point, unit)}</title></rect>`,
    )}
  </svg>`;
}

/** The course of one row of a table: as tall as its text, without axes. The table beside it has the figures. */
export function sparkline(points: readonly ChartPoint[], { width = 120, height = 24 } = {}): Html {
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

/** Two neighbours are joined; dashed where one of them is not final. A bucket between two gaps is a dot. */
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

/** Neighbouring points of which something is true. */
function runsOf(points: readonly ChartPoint[], isSo: (point: ChartPoint) => boolean): Run[] {
  const runs: Run[] = [];
  points.forEach((point, n) => {
    const last = runs.at(-1);
    if (!isSo(point)) return;
    if (last?.after === n) runs[runs.length - 1] = { first: last.first, after: n + 1 };
    else runs.push({ first: n, after: n + 1 });
  });
  return runs;
}

/** From zero in steps of 1, 2 or 5 times a power of ten, at most five. */
export function ticksUpTo(most: number): number[] {
  if (most <= 0) return [0, 1];
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough) ?? 10 * power;
  const last = Math.ceil(most / step - 1e-9);
  return Array.from({ length: last + 1 }, (_, n) => Number((n * step).toPrecision(12)));
}

/** Places of the dates below the axis: as many as have room, evenly. */
function dates(points: readonly ChartPoint[], room: number): number[] {
  const longest = Math.max(1, ...points.map(({ at }) => shortAt(at).length)) * CHARACTER + 14;
  const every = Math.max(1, Math.ceil((points.length * longest) / Math.max(room, longest)));
  return points.flatMap((_, n) =>
    n % every === 0 && (n + 0.5) * (room / points.length) + longest / 2 <= room + 20 ? [n] : [],
  );
}

/** A whole sentence, for those who do not see the line. */
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

/** What a bucket's title says. */
function said({ at, value, atLeast, isFinal }: ChartPoint, unit: string): string {
  if (value !== null) return `${shortAt(at)}: ${shown(value)} ${unit}${isFinal ? "" : ", provisional"}`;
  return `${shortAt(at)}: not fully loaded${(atLeast ?? 0) > 0 ? `, at least ${shown(atLeast ?? 0)} ${unit}` : ""}`;
}

/** An hour without its minutes; days and months as they are. */
function shortAt(at: string): string {
  return at.length > 10 ? `${at.slice(0, 10)} ${at.slice(11, 16)}` : at;
}

function shown(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 10 });
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
