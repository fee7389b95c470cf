import { STRIDE_MS } from "../../../../src/core/domain/time/stride.ts";
import { GROUPINGS } from "../../../../src/core/domain/usage/record.ts";
import { type Cell, dayFigure, type Figure, hourFigure, hoursOf, label } from "./expected-figures.ts";
import { monthlyTotals, monthlyViews } from "./expected-months.ts";
import { dateOf, daysUntil, instant, type Lines, line, type Value } from "./lines.ts";
import { type Entity, type Model, namesOf } from "./model.ts";
import type { Shown } from "./snapshot.ts";

/** The lines that every table and view must have for a model. */
export function expectedLines(model: Model, shown: Shown & { now: number }): Lines {
  return sorted({
    ...tables(model),
    ...monthlyTotals(model),
    ...recordViews(model),
    ...dimensions(model),
    ...facts(model, shown),
    ...monthlyViews(model, shown),
  });
}

function sorted(rows: Record<string, Value[][]>): Lines {
  return Object.fromEntries(Object.entries(rows).map(([name, all]) => [name, all.map(line).sort()]));
}

function tables(model: Model): Record<string, Value[][]> {
  const scopes = [...model.scopes.values()];
  const entities = [...model.entities.values()];
  return {
    record: scopes.flatMap((s) =>
      [...s.buckets].flatMap(([t, { traces }]) =>
        [...traces].map(([id, n]) => [s.stride, s.groupBy, s.workspaceId, id, instant(t), n]),
      ),
    ),
    coverage: scopes.flatMap((s) =>
      [...s.buckets].map(([t, b]) => [
        s.stride,
        s.groupBy,
        s.workspaceId,
        b.final,
        b.fetchNumber,
        instant(b.fetchedAt),
        instant(t),
      ]),
    ),
    failure: scopes.flatMap((s) =>
      [...s.failures].map(([t, f]) => [
        s.stride,
        s.groupBy,
        s.workspaceId,
        f.state,
        f.attempts,
        f.fetchNumber,
        ...[f.failedAt, f.retryAt, t].map(instant),
      ]),
    ),
    restatement: model.restatements.map(({ scope: s, id, bucket, before, after, fetchNumber }) => [
      s.stride,
      s.groupBy,
      s.workspaceId,
      id,
      instant(bucket),
      before,
      after,
      fetchNumber,
    ]),
    entity: entities.map((e) => [e.dimension, e.id, ...seen(e)]),
    name: entities.flatMap((e) =>
      namesOf(e).map(({ name, fetchedAt, fetchNumber }) => [
        e.dimension,
        e.id,
        name,
        instant(fetchedAt),
        fetchNumber,
      ]),
    ),
    workspace: [...model.workspaces].map(([id, w]) => [
      id,
      instant(w.readableAt),
      w.isDeleted,
      instant(w.unlistedSince),
      instant(w.readableSince),
      w.usedBefore === Number.POSITIVE_INFINITY ? w.usedBefore : instant(w.usedBefore),
    ]),
  };
}

function seen({ seen: times }: Entity): Value[] {
  return times.length === 0 ? [null, null] : [instant(Math.min(...times)), instant(Math.max(...times))];
}

function recordViews(model: Model): Record<string, Value[][]> {
  return {
    "view usage_record": [...model.scopes.values()].flatMap((s) =>
      [...s.buckets].flatMap(([t, b]) =>
        [...b.traces].map(([id, n]) => [
          s.stride,
          s.groupBy,
          s.workspaceId,
          label(id),
          instant(t),
          instant(t + STRIDE_MS[s.stride]),
          s.groupBy === "user" ? null : model.nameOf(s.groupBy, id),
          n,
          b.final,
          instant(b.fetchedAt),
        ]),
      ),
    ),
    "view usage_restatement": model.restatements.map(({ scope: s, id, bucket, before, after }) => [
      s.stride,
      s.groupBy,
      s.workspaceId,
      label(id),
      instant(bucket),
      before,
      after,
    ]),
  };
}

function dimensions(model: Model): Record<string, Value[][]> {
  return Object.fromEntries(
    GROUPINGS.map((dimension) => [
      `view dim_${dimension}`,
      [...model.entities.values()]
        .filter((e) => e.dimension === dimension)
        .map((e) => {
          const w = dimension === "workspace" ? model.workspaces.get(e.id) : undefined;
          const flags = w === undefined ? [] : [w.isDeleted, instant(w.unlistedSince)];
          return [label(e.id), model.nameOf(dimension, e.id), ...seen(e), ...flags];
        }),
    ]),
  );
}

function facts(
  model: Model,
  { firstDay, hourlyUntil, now }: Shown & { now: number },
): Record<string, Value[][]> {
  const rows: Record<string, Value[][]> = { "view usage_coverage_daily": [] };
  for (const groupBy of GROUPINGS) {
    const [daily, hourly]: [Value[][], Value[][]] = [[], []];
    rows[`view fct_usage_${groupBy}_daily`] = daily;
    rows[`view fct_usage_${groupBy}_hourly`] = hourly;
    for (const workspaceId of model.workspaces.keys()) {
      const cell = { groupBy, workspaceId };
      for (const day of daysUntil(firstDay, now)) {
        const figure = dayFigure(model, cell, day);
        daily.push(...capabilityRows(model, cell, figure).map((row) => [dateOf(day), ...row]));
        rows["view usage_coverage_daily"]?.push([dateOf(day), workspaceId, groupBy, "day", emptyOr(figure)]);
        if (day >= hourlyUntil) continue;
        const hours = hoursOf(day).map((hour) => ({ hour, figure: hourFigure(model, cell, hour) }));
        for (const { hour, figure } of hours) {
          hourly.push(...capabilityRows(model, cell, figure).map((row) => [instant(hour), ...row]));
        }
        const status = worst(hours.map(({ figure }) => emptyOr(figure)));
        rows["view usage_coverage_daily"]?.push([dateOf(day), workspaceId, groupBy, "hour", status]);
      }
    }
  }
  return rows;
}

function emptyOr({ status, traces }: Figure): string {
  return status === "ok" && [...(traces?.values() ?? [])].every((n) => n === 0) ? "empty" : status;
}

function worst(all: readonly string[]): string {
  const order = ["not_available", "failed", "missing", "unverified", "provisional", "ok", "empty"];
  return order.find((status) => all.includes(status)) as string;
}

function capabilityRows(model: Model, { groupBy, workspaceId }: Cell, figure: Figure): Value[][] {
  const { status, final, traces, fetchedAt } = figure;
  const row = (dimension: Value[], n: number | undefined, state: string) => [
    workspaceId,
    model.nameOf("workspace", workspaceId),
    ...dimension,
    n,
    final && (state === "ok" || state === "empty"),
    state,
    instant(fetchedAt),
  ];
  if (groupBy === "workspace") {
    const sum = traces && [...traces.values()].reduce((a, b) => a + b, 0);
    return [row([], sum, emptyOr(figure))];
  }
  if (traces === undefined) return [row([null, null], undefined, status)];
  return [...traces].map(([id, n]) =>
    row(
      [label(id), groupBy === "project" ? model.nameOf(groupBy, id) : null],
      n,
      status === "ok" && n === 0 ? "empty" : status,
    ),
  );
}
