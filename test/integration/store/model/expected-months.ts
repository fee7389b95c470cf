import { DAY_MS, floorToGrid } from "../../../../src/core/domain/time/stride.ts";
import { GROUPINGS } from "../../../../src/core/domain/usage/record.ts";
import { type Cell, dayFigure, label } from "./expected-figures.ts";
import { dateOf, daysUntil, type Value } from "./lines.ts";
import type { Model } from "./model.ts";

function monthOf(bucket: number): string {
  return `${dateOf(bucket).slice(0, 7)}-01`;
}

export function monthlyTotals(model: Model): Record<string, Value[][]> {
  const totals = new Map<string, { key: Value[]; traces: number; records: number }>();
  for (const { stride, groupBy, workspaceId, buckets } of model.scopes.values()) {
    if (stride === "hour") continue;
    for (const [bucket, { traces }] of buckets) {
      for (const [id, n] of traces) {
        const key = [stride, groupBy, workspaceId, id, monthOf(bucket)];
        const total = totals.get(key.join(" ")) ?? { key, traces: 0, records: 0 };
        totals.set(key.join(" "), { key, traces: total.traces + n, records: total.records + 1 });
      }
    }
  }
  return {
    "monthly total": [...totals.values()].map(({ key, traces, records }) => [...key, traces, records]),
  };
}

export function monthlyViews(
  model: Model,
  { firstDay, now }: { firstDay: number; now: number },
): Record<string, Value[][]> {
  const rows: Record<string, Value[][]> = {};
  for (const groupBy of GROUPINGS) {
    rows[`view fct_usage_${groupBy}_monthly`] = [...model.workspaces.keys()].flatMap((workspaceId) =>
      cellRows(model, { groupBy, workspaceId }, { firstDay, now }),
    );
  }
  return rows;
}

function cellRows(model: Model, cell: Cell, { firstDay, now }: { firstDay: number; now: number }): Value[][] {
  const today = floorToGrid(now, DAY_MS);
  const days = daysUntil(firstDay, now)
    .map((day) => ({ day, figure: dayFigure(model, cell, day) }))
    .filter(({ day, figure }) => day < today || figure.traces !== undefined);
  const months = new Set(days.map(({ day }) => monthOf(day)));
  return [...months].flatMap((month) => {
    const expected = days.filter(({ day }) => monthOf(day) === month);
    const loaded = expected.filter(({ figure }) => figure.traces !== undefined);
    const isComplete = loaded.length === expected.length;
    const isFinal =
      month !== monthOf(now) && expected.every(({ figure }) => figure.final && figure.status === "ok");
    const traces = new Map<string, number>();
    for (const { figure } of loaded) {
      for (const [id, n] of figure.traces ?? []) traces.set(id, (traces.get(id) ?? 0) + n);
    }
    const row = (dimension: Value[], n: number | undefined, final: boolean, part = n) => [
      month,
      cell.workspaceId,
      model.nameOf("workspace", cell.workspaceId),
      ...dimension,
      n,
      expected.length,
      loaded.length,
      isComplete,
      final,
      part,
    ];
    const sum = loaded.length > 0 ? [...traces.values()].reduce((a, b) => a + b, 0) : undefined;
    if (cell.groupBy === "workspace") return [row([], isComplete ? sum : undefined, isFinal, sum)];
    if (!isComplete) return [row([null, null], undefined, false, sum)];
    const name = (id: string) => (cell.groupBy === "project" ? model.nameOf(cell.groupBy, id) : null);
    return [...traces].map(([id, n]) => row([label(id), name(id)], n, isFinal));
  });
}
