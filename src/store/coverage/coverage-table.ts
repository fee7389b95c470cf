import type { ColumnLength } from "../../domain/coverage/coverage-columns.ts";
import {
  byDay,
  type Count,
  countsOf,
  kindOf,
  type Parts,
  partsOf,
  type Status,
  statusOf,
  withoutRunning,
} from "../../domain/coverage/coverage-grid.ts";
import { intersect, subtract } from "../../domain/time/intervals.ts";
import { DAY_MS, HOUR_MS } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { Database } from "../db/database.ts";
import { partsWithTraces, type ScopePart } from "./cell-traces.ts";
import type { CoverageCell, SourceCoverage } from "./coverage-cells.ts";

/** One cell in one column. */
export interface ColumnState {
  /** Days, or hours where a column is an hour. */
  readonly count: Count;
  /** Undefined where nothing is expected. */
  readonly status: Status | undefined;
}

/** A cell with its kinds, in some unit. */
export interface CellParts {
  readonly cell: CoverageCell;
  readonly parts: Parts;
}

/** In days, or in hours where the coverage is that of hours. */
export function cellParts(coverage: SourceCoverage, cells: readonly CoverageCell[]): CellParts[] {
  return cells.map((cell) => ({ cell, parts: partsOf(cell, coverage) }));
}

/** In the unit of columns: days, or hours where a column is an hour. */
export function partsFor(
  { stride, now }: SourceCoverage,
  cells: readonly CellParts[],
  length: ColumnLength,
): CellParts[] {
  if (length === "hour" || (length === "day" && stride === "day")) return [...cells];
  return cells.map(({ cell, parts }) => {
    const days = stride === "hour" ? byDay(parts) : parts;
    // A day says what the views say. A month does not call the day under way missing.
    return { cell, parts: length === "month" ? withoutRunning(days, "day", now) : days };
  });
}

/** The state of each cell in each column. */
export async function columnStates(
  db: Database,
  given: {
    coverage: Pick<SourceCoverage, "stride" | "dataStart">;
    length: ColumnLength;
    columns: readonly Interval[];
    cells: readonly CellParts[];
  },
): Promise<ColumnState[][]> {
  const { cells, columns, length } = given;
  const unitMs = length === "hour" ? HOUR_MS : DAY_MS;
  const counts = cells.map(({ parts }) => countsOf([parts], columns, unitMs));
  const finals = counts.flatMap((row, cell) =>
    row.flatMap((count, column) => (kindOf(count) === "final" ? [{ cell, column }] : [])),
  );
  const asked = finals.map(({ cell, column }) =>
    partsToAsk((cells[cell] as CellParts).cell, columns[column] as Interval, given),
  );
  const parts = asked.flatMap((list, n) => list.map((part) => ({ ...part, n })));
  const found = await partsWithTraces(db, parts);
  const withTraces = new Set(parts.flatMap(({ n }, place) => (found.has(place) ? [n] : [])));
  const isOk = new Set(
    finals.flatMap(({ cell, column }, n) => (withTraces.has(n) ? [`${cell} ${column}`] : [])),
  );
  return counts.map((row, cell) =>
    row.map((count, column) => {
      const kind = kindOf(count);
      return { count, status: kind && statusOf(kind, isOk.has(`${cell} ${column}`)) };
    }),
  );
}

/** Where the traces of a final column are: in its own records and, for days made of hours, in those hours. */
function partsToAsk(
  { dayScopeId, hourScopeId, daysOfHours }: CoverageCell,
  column: Interval,
  {
    coverage: { stride, dataStart },
    length,
  }: { coverage: Pick<SourceCoverage, "stride" | "dataStart">; length: ColumnLength },
): ScopePart[] {
  const inHours = stride === "hour" ? [column] : intersect(daysOfHours, [column]);
  const hours = hourScopeId === null ? [] : inHours.map((one) => ({ ...one, scopeId: hourScopeId }));
  const own = stride === "day" ? subtract([column], inHours) : [];
  const ofHours = hours.map((part): ScopePart => ({ ...part, by: "hour" }));
  if (dayScopeId === null || own.length === 0) return ofHours;
  // The total of a month counts days before the data start too, which no view shows.
  const days = column.start < dataStart && length === "month" ? daysFrom(dataStart, column.end) : undefined;
  const parts = days ?? [column];
  return [
    ...ofHours,
    ...parts.map((part): ScopePart => ({ ...part, scopeId: dayScopeId, by: days ? "day" : length })),
  ];
}

function daysFrom(start: number, end: number): Interval[] {
  return Array.from({ length: Math.max(0, (end - start) / DAY_MS) }, (_, n) => ({
    start: start + n * DAY_MS,
    end: start + (n + 1) * DAY_MS,
  }));
}
