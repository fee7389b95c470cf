import { addDays, type Days, daysBetween } from "../../../domain/time/days.ts";
import type { Database } from "../../../store/db/database.ts";
import { hourlyUsage } from "../../../store/figures/hours.ts";
import type { UsageOf } from "../../../store/figures/records.ts";
import { type Html, html } from "../html.ts";
import { bucketsOf, LoadedTime } from "./loaded.ts";
import { MOST_DAYS, type Question } from "./question.ts";

const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"] as const;
/** Classes of colour; the figure stands in the cell too. */
const SHADES = 6;

interface Cell {
  /** Traces of its hours that are loaded. */
  readonly traces: number;
  readonly loaded: number;
  /** Hours that have ended. */
  readonly hours: number;
}

export interface HeatMap {
  readonly range: Days;
  /** By weekday, Monday first, then hour. */
  readonly cells: readonly (readonly Cell[])[];
}

/** Traces of all workspaces by weekday and hour (UTC), over the last days of the range. */
export async function heatMapOf(
  db: Database,
  question: Question,
  { now }: { now: number },
): Promise<HeatMap> {
  const { source, range, workspace } = question;
  const of: UsageOf = {
    sourceId: source.sourceId,
    source: source.slug,
    by: "workspace",
    workspaceId: workspace?.key ?? null,
    byHours: false,
  };
  const days = Math.min(MOST_DAYS.hour, daysBetween(range));
  const shown = { from: addDays(range.to, -days), to: range.to };
  const { totals, loaded } = await hourlyUsage(db, of, shown);
  const traces = new Map(totals.map((one) => [one.bucket, one.traces]));
  const time = new LoadedTime(loaded, { now, per: "hour" });
  const cells = WEEKDAYS.map(() => Array.from({ length: 24 }, () => ({ traces: 0, loaded: 0, hours: 0 })));
  for (const bucket of bucketsOf(shown, "hour")) {
    const { isComplete, isUnderWay } = time.stateOf(bucket);
    if (isUnderWay) continue;
    const at = new Date(bucket.start);
    const cell = cells[(at.getUTCDay() + 6) % 7]?.[at.getUTCHours()];
    if (cell === undefined) continue;
    cell.hours++;
    if (!isComplete) continue;
    cell.loaded++;
    cell.traces += traces.get(bucket.at) ?? 0;
  }
  return { range: shown, cells };
}

/** As a table: each cell has the average of its loaded hours, and a shade. Hours that are not loaded are not zero. */
export function heatMap({ range, cells }: HeatMap): Html {
  const most = Math.max(
    ...cells
      .flat()
      .map(averageOf)
      .map((one) => one ?? 0),
  );
  const hours = cells
    .flat()
    .reduce((sum, one) => ({ loaded: sum.loaded + one.loaded, hours: sum.hours + one.hours }), {
      loaded: 0,
      hours: 0,
    });
  const caption = `Traces per hour of all workspaces by weekday and hour, on average, ${range.from} to ${range.to} (not included)`;
  return html`<h2>Hours of the week</h2>
    ${
      hours.loaded === 0
        ? html`<p class="quiet">No hour of ${range.from} to ${range.to} is loaded for all workspaces. Hours are kept up to date for USAGE_HOURLY_FOR; a backfill with the stride hour loads older ones.</p>`
        : html`<p class="quiet">${hours.loaded.toLocaleString("en-US")} of ${hours.hours.toLocaleString("en-US")} hours are loaded for all workspaces. Only these count.</p>
    <div class="scroll" role="region" tabindex="0" aria-label="Hours of the week"><table class="heat">
      <caption>${caption}</caption>
      <thead><tr><th scope="col">Day</th>${Array.from({ length: 24 }, (_, hour) => html`<th scope="col">${String(hour).padStart(2, "0")}</th>`)}</tr></thead>
      <tbody>${WEEKDAYS.map((day, n) => html`<tr><th scope="row">${day}</th>${cells[n]?.map((cell) => heatCell(cell, most))}</tr>`)}</tbody>
    </table></div>`
    }`;
}

function heatCell(cell: Cell, most: number): Html {
  const average = averageOf(cell);
  if (average === null)
    return html`<td class="heat-none" title="not loaded">–<span class="visually-hidden"> not loaded</span></td>`;
  const shade = most === 0 ? 0 : Math.ceil((average / most) * SHADES);
  const whole = cell.loaded === cell.hours ? `${cell.loaded} hours` : `${cell.loaded} of ${cell.hours} hours`;
  return html`<td class="heat-${shade}" title="${cell.traces.toLocaleString("en-US")} traces in ${whole}">${Math.round(average).toLocaleString("en-US")}</td>`;
}

function averageOf({ traces, loaded }: Cell): number | null {
  return loaded === 0 ? null : traces / loaded;
}
