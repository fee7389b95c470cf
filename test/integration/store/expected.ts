import { GROUPINGS, type GroupBy } from "../../../src/domain/record.ts";
import { HOUR_MS, STRIDE_MS } from "../../../src/domain/stride.ts";
import { dateOf, daysUntil, instant, type Lines, line, type Value } from "./lines.ts";
import type { Entity, Model } from "./model.ts";
import type { Shown } from "./snapshot.ts";

/** The lines that every table and view must have for a model. */
export function expectedLines(model: Model, shown: Shown & { now: number }): Lines {
  return sorted({ ...tables(model), ...recordViews(model), ...dimensions(model), ...facts(model, shown) });
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
        ...[s.stride, s.groupBy, s.workspaceId, b.settled, b.fetchNumber, instant(b.fetchedAt), instant(t)],
      ]),
    ),
    failure: scopes.flatMap((s) =>
      [...s.failures].map(([t, f]) => [
        ...[s.stride, s.groupBy, s.workspaceId, f.state, f.attempts, f.fetchNumber],
        ...[f.failedAt, f.retryAt, t].map(instant),
      ]),
    ),
    restatement: model.restatements.map(({ scope: s, id, bucket, before, after, fetchNumber }) => [
      ...[s.stride, s.groupBy, s.workspaceId, id, instant(bucket), before, after, fetchNumber],
    ]),
    entity: entities.map((e) => [e.dimension, e.id, ...seen(e)]),
    name: entities.flatMap((e) =>
      [...new Set(e.named.map(({ name }) => name))].map((name) => {
        const times = e.named.filter((given) => given.name === name);
        const last = Math.max(...times.map((given) => given.bucket));
        const first = Math.min(...times.map((given) => given.bucket));
        const fetches = times.filter((given) => given.bucket === last).map((given) => given.fetchNumber);
        return [e.dimension, e.id, name, instant(first), instant(last), Math.max(...fetches)];
      }),
    ),
    workspace: [...model.workspaces].map(([id, w]) => [
      id,
      instant(w.readableAt),
      w.isDeleted,
      instant(w.unlistedSince),
    ]),
  };
}

function seen({ seen: times }: Entity): Value[] {
  return times.length === 0 ? [null, null] : [instant(Math.min(...times)), instant(Math.max(...times))];
}

function label(id: string): string {
  return id === "" ? "(none)" : id;
}

function recordViews(model: Model): Record<string, Value[][]> {
  return {
    "view usage_record": [...model.scopes.values()].flatMap((s) =>
      [...s.buckets].flatMap(([t, b]) =>
        [...b.traces].map(([id, n]) => [
          ...[s.stride, s.groupBy, s.workspaceId, label(id), instant(t), instant(t + STRIDE_MS[s.stride])],
          ...[model.nameOf(s.groupBy, id), n, b.settled, instant(b.fetchedAt)],
        ]),
      ),
    ),
    "view usage_restatement": model.restatements.map(({ scope: s, id, bucket, before, after }) => [
      ...[s.stride, s.groupBy, s.workspaceId, label(id), instant(bucket), before, after],
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

/** What a day or an hour shows of one workspace and grouping; without `traces` it is not loaded. */
interface Figure {
  readonly status: string;
  readonly settled: boolean;
  readonly fetchedAt?: number | undefined;
  readonly traces?: ReadonlyMap<string, number> | undefined;
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
        daily.push(...factRows(model, cell, figure).map((row) => [dateOf(day), ...row]));
        rows["view usage_coverage_daily"]?.push([dateOf(day), workspaceId, groupBy, "day", emptyOr(figure)]);
        if (day >= hourlyUntil) continue;
        const hours = hoursOf(day).map((hour) => ({ hour, figure: hourFigure(model, cell, hour) }));
        for (const { hour, figure } of hours) {
          hourly.push(...factRows(model, cell, figure).map((row) => [instant(hour), ...row]));
        }
        const status = worst(hours.map(({ figure }) => emptyOr(figure)));
        rows["view usage_coverage_daily"]?.push([dateOf(day), workspaceId, groupBy, "hour", status]);
      }
    }
  }
  return rows;
}

type Cell = { groupBy: GroupBy; workspaceId: string };

function hoursOf(day: number): number[] {
  return Array.from({ length: 24 }, (_, i) => day + i * HOUR_MS);
}

/** The day's own record; only where the day is not loaded, its 24 hours together. */
function dayFigure(model: Model, { groupBy, workspaceId }: Cell, day: number): Figure {
  const own = model.scope(workspaceId, groupBy, "day");
  const hours = hoursOf(day).flatMap((t) => model.scope(workspaceId, groupBy, "hour").buckets.get(t) ?? []);
  const parts = own.buckets.has(day) ? [own.buckets.get(day) ?? []].flat() : hours.length === 24 ? hours : [];
  const traces = new Map<string, number>();
  for (const part of parts) for (const [id, n] of part.traces) traces.set(id, (traces.get(id) ?? 0) + n);
  const loaded = parts.length > 0 && {
    settled: parts.every((part) => part.settled),
    fetchedAt: Math.min(...parts.map((part) => part.fetchedAt)),
    traces,
  };
  return withStatus(loaded, own.failures.get(day)?.state, model.facts.has("no_day"));
}

function hourFigure(model: Model, { groupBy, workspaceId }: Cell, hour: number): Figure {
  const scope = model.scope(workspaceId, groupBy, "hour");
  const loaded = scope.buckets.get(hour) ?? false;
  return withStatus(loaded, scope.failures.get(hour)?.state, model.facts.has("no_hour"));
}

/** The first that applies (docs/decisions.md, rule 10); `empty` and `ok` are told apart by the figures. */
function withStatus(
  loaded: Omit<Figure, "status"> | false,
  failure: string | undefined,
  isUnavailable: boolean,
): Figure {
  const isSettled = (loaded || { settled: false }).settled;
  const first = (): string => {
    if (!loaded && isUnavailable) return "not_available";
    if (failure === "failed") return "failed";
    if (!loaded && failure === undefined) return "missing";
    if (failure === "unverified") return "unverified";
    return isSettled ? "ok" : "provisional";
  };
  return { ...(loaded || { settled: false }), status: first() };
}

function emptyOr({ status, traces }: Figure): string {
  return status === "ok" && [...(traces?.values() ?? [])].every((n) => n === 0) ? "empty" : status;
}

function worst(all: readonly string[]): string {
  const order = ["not_available", "failed", "missing", "unverified", "provisional", "ok", "empty"];
  return order.find((status) => all.includes(status)) as string;
}

/** A workspace has one row a day or hour; another dimension one a value, or one without where nothing is loaded. */
function factRows(model: Model, { groupBy, workspaceId }: Cell, figure: Figure): Value[][] {
  const { status, settled, traces, fetchedAt } = figure;
  const row = (dimension: Value[], n: number | undefined, state: string) => [
    ...[workspaceId, model.nameOf("workspace", workspaceId), ...dimension, n],
    ...[settled && (state === "ok" || state === "empty"), state, instant(fetchedAt)],
  ];
  if (groupBy === "workspace") {
    const sum = traces && [...traces.values()].reduce((a, b) => a + b, 0);
    return [row([], sum, emptyOr(figure))];
  }
  if (traces === undefined) return [row([null, null], undefined, status)];
  return [...traces].map(([id, n]) =>
    row(
      [label(id), groupBy === "api_key" ? null : model.nameOf(groupBy, id)],
      n,
      status === "ok" && n === 0 ? "empty" : status,
    ),
  );
}
