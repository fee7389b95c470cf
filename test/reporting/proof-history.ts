import fc from "fast-check";
import { sql } from "kysely";
import type { FetchToken } from "../../src/core/domain/coverage/finality.ts";
import { DAY_MS } from "../../src/core/domain/time/stride.ts";
import type { ExportRow } from "../../src/core/domain/usage/export.ts";
import { invalidateZerosOf } from "../../src/core/store/access/invalidate-zeros.ts";
import { lockScopes, scopesOf } from "../../src/core/store/catalog/scopes.ts";
import { compareExport } from "../../src/core/store/proof/compare-export.ts";
import { keepFindings } from "../../src/core/store/proof/control-findings.ts";
import { compareTotals } from "../../src/core/store/proof/control-totals.ts";
import type { Finding } from "../../src/core/store/proof/write-differences.ts";
import { pruneHistory } from "../../src/core/store/retention/prune.ts";
import { drawFetchToken } from "../../src/core/store/work/fetch-ledger.ts";
import { createSource, type StoreBundle } from "../integration/store/setup.ts";
import { now } from "../support/clock.ts";
import { loadRows, proveAccess } from "../support/store.ts";

export const START = Date.parse("2026-03-01T00:00:00Z");
export const DAYS = 9;
const WORKSPACES = ["00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"] as const;
const STRIDES = ["day", "hour"] as const;
const IDS = ["", "a", "b"];
const NEVER_MS = 1e15;

interface Proof {
  readonly at: number;
  readonly number: number;
  readonly from: number;
  readonly to: number;
}

interface Day {
  figures?: ReadonlyMap<string, number> | undefined;
  final: boolean;
  exported?: Proof | undefined;
  totalled?: Proof | undefined;
  readonly differing: Set<string>;
}

interface Scope {
  readonly workspaceId: string;
  readonly stride: (typeof STRIDES)[number];
  readonly scopeId: number;
  readonly days: Day[];
  readonly contradictions: Map<string, { from: number; to: number }>;
}

const span = fc.tuple(fc.nat({ max: 5 }), fc.integer({ min: 1, max: DAYS }));
export const step = fc.record({
  what: fc.constantFrom(
    ...(["load", "late", "late", "export", "export", "export", "export", "overtaken"] as const),
    ...(["total", "total", "total", "invalidate", "prune", "provisional"] as const),
  ),
  scope: fc.constantFrom<number>(0, 0, 0, 0, 1, 2, 3),
  span,
  change: fc.oneof(
    { weight: 3, arbitrary: fc.constant([]) },
    fc.array(fc.tuple(fc.nat({ max: DAYS - 1 }), fc.nat({ max: 2 }), fc.nat({ max: 2 })), { maxLength: 2 }),
  ),
  n: fc.nat({ max: 99 }),
});
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

let bundle: StoreBundle;
export let sourceId: number;
let scopes: Scope[];
/** Drawn before the steps that came since: answers that arrive late. */
let early: FetchToken[];

export async function begin(given: StoreBundle): Promise<void> {
  bundle = given;
  sourceId = await createSource(bundle, { workspaceIds: WORKSPACES, dataStart: START });
  await proveAccess(bundle.store, { sourceId, workspaceIds: WORKSPACES });
  scopes = [];
  for (const workspaceId of WORKSPACES) {
    for (const stride of STRIDES) {
      const [scopeId] = await scopesOf(bundle.store.db, {
        sourceId,
        groupBy: "project",
        stride,
        workspaceIds: [workspaceId],
      });
      const days = Array.from({ length: DAYS }, (): Day => ({ final: false, differing: new Set() }));
      scopes.push({ workspaceId, stride, scopeId: scopeId as number, days, contradictions: new Map() });
    }
  }
  for (const [n, scope] of scopes.entries()) {
    const change = scope.days.map((_, day) => [day, day % 3, day % 4] as [number, number, number]);
    change.pop();
    await load(scope, { what: "load", scope: n, span: [0, DAYS - n], change, n: 1 });
  }
  early = [await drawFetchToken(bundle.store.db)];
}

export const at = (day: number) => START + day * DAY_MS;
export const iso = (day: number) => new Date(at(day)).toISOString();
const range = ({ span: [from, length] }: Step) => [from, Math.min(from + length, DAYS)] as const;

function figuresOf({ days }: Scope, [from, to]: readonly [number, number], change: Step["change"]) {
  const changed = days.map(({ figures }) => new Map(figures ?? []));
  for (const [day, id, traces] of change) changed[day]?.set(IDS[id] as string, traces);
  return changed.map((figures, day) => ({ day, figures })).slice(from, to);
}

const nonZero = (figures: ReadonlyMap<string, number>) =>
  JSON.stringify([...figures].filter(([, traces]) => traces > 0).sort());

async function load(scope: Scope, step: Step, how: { fetchToken?: FetchToken; settleAfterMs?: number } = {}) {
  const window = figuresOf(scope, range(step), step.change);
  const [from, to] = range(step);
  const fetchToken = how.fetchToken ?? (await drawFetchToken(bundle.store.db));
  const { outcome } = await loadRows(bundle.store, {
    sourceId,
    groupBy: "project",
    workspaceId: scope.workspaceId,
    fetchToken,
    settleAfterMs: how.settleAfterMs ?? 0,
    window: { stride: scope.stride, start: at(from), end: at(to) },
    rows: window.flatMap(({ day, figures }) => [...figures].map(([id, n]) => [iso(day), id, n] as const)),
  });
  if (outcome !== "loaded") return;
  for (const { day, figures } of window) {
    const stored = scope.days[day] as Day;
    if (stored.final && nonZero(stored.figures ?? new Map()) !== nonZero(figures)) {
      restated(scope, day, fetchToken.fetchNumber);
    }
    stored.figures = figures;
    stored.final ||= how.settleAfterMs === undefined;
  }
}

function restated(scope: Scope, day: number, number: number): void {
  delete (scope.days[day] as Day).exported;
  endTotals(scope, day);
  if (scope.stride !== "day") return;
  const hours = scopes.find((one) => one.workspaceId === scope.workspaceId && one.stride === "hour")?.days[
    day
  ];
  if (hours?.exported !== undefined && hours.exported.number < number) delete hours.exported;
}

function endTotals({ days }: Scope, day: number): void {
  for (const one of days) {
    if (one.totalled && one.totalled.from <= day && day < one.totalled.to) delete one.totalled;
  }
}

async function compare(scope: Scope, step: Step, fetchToken: FetchToken) {
  const [from, to] = range(step);
  const exported = figuresOf(scope, [from, to], step.change);
  const { workspaceId, stride, scopeId } = scope;
  const result = await compareExport(bundle.store, {
    sourceId,
    groupBy: "project",
    fetchToken,
    workspaceIds: [workspaceId],
    scopeIds: [scopeId],
    window: { stride, start: at(from), end: at(to) },
    whole: step.n % 4 !== 0,
    withNames: false,
    rows: async function* () {
      let line = 1;
      const length = stride === "hour" ? DAY_MS / 24 : DAY_MS;
      for (const { day, figures } of exported) {
        yield [...figures].map(
          ([dimensionId, traces]): ExportRow => ({
            bucketStart: at(day),
            bucketEnd: at(day) + length,
            workspaceId: null,
            dimensionId,
            dimensionName: null,
            traces,
            line: ++line,
          }),
        );
      }
    },
  });
  if (result.outcome !== "compared" || result.notFinal.length + result.unverified.length > 0) return;
  for (const { day, figures } of exported) {
    const stored = scope.days[day] as Day;
    for (const id of IDS) {
      const [ours, theirs] = [stored.figures?.get(id), figures.get(id)];
      // An export without a proven end may lack rows: only those that it has say something.
      if (step.n % 4 === 0 && theirs === undefined) continue;
      if ((ours ?? 0) === (theirs ?? 0)) stored.differing.delete(id);
      else stored.differing.add(id);
    }
    if (step.n % 4 === 0) continue;
    const proof = { at: fetchToken.fetchedAt, number: fetchToken.fetchNumber, from: day, to: day + 1 };
    stored.exported = stored.differing.size === 0 ? proof : undefined;
  }
}

async function total(scope: Scope, step: Step) {
  const [from, to] = range(step);
  const half = Math.ceil((from + to) / 2);
  const parts =
    half < to && step.n % 2 === 0 ? [[from, half] as const, [half, to] as const] : [[from, to] as const];
  const fetchToken = await drawFetchToken(bundle.store.db);
  const sums = parts.map((part) => {
    const sum = (days: ReturnType<typeof figuresOf>) =>
      new Map(IDS.map((id) => [id, days.reduce((all, { figures }) => all + (figures.get(id) ?? 0), 0)]));
    return { part, ours: sum(figuresOf(scope, part, [])), theirs: sum(figuresOf(scope, part, step.change)) };
  });
  const { scopeId } = scope;
  const { compared, differences } = await compareTotals(bundle.store, {
    fetchToken,
    scopeIds: [scopeId],
    parts: parts.map(([start, end]) => ({ start: at(start), end: at(end) })),
    totals: sums.flatMap(({ theirs }, n) =>
      [...theirs].map(([dimensionId, traces]) => ({
        scopeId,
        part: n,
        dimensionId,
        traces,
        measure: "traces" as const,
      })),
    ),
  });
  await keepFindings(
    bundle.store,
    {
      kind: "stride_total",
      compared: compared.map((one) => ({ scopeId: one, period: { start: at(from), end: at(to) } })),
      fetchNumber: fetchToken.fetchNumber,
    },
    differences.map((one): Finding => ({ ...one, kind: "stride_total", state: "platform_disagrees" })),
  );
  if (compared.length === 0) return;
  for (const [key, one] of scope.contradictions) {
    if (one.from >= from && one.to <= to) scope.contradictions.delete(key);
  }
  for (const { part, ours, theirs } of sums) {
    const different = IDS.filter((id) => ours.get(id) !== theirs.get(id));
    for (const id of different) {
      scope.contradictions.set(`${part} ${id}`, { from: part[0], to: part[1] });
    }
    const proof = { at: fetchToken.fetchedAt, number: fetchToken.fetchNumber, from: part[0], to: part[1] };
    for (let day = part[0]; day < part[1]; day++) {
      (scope.days[day] as Day).totalled = different.length === 0 ? proof : undefined;
    }
  }
}

async function invalidate(scope: Scope) {
  await bundle.store.transaction(async ({ db }) => {
    await lockScopes(db, [scope.scopeId]);
    await invalidateZerosOf(db, {
      time: sql`select ${scope.scopeId}::integer, '{(,)}'::tstzmultirange, '-infinity'::timestamptz`,
      noticedAt: now(),
    });
  });
  for (const [day, one] of scope.days.entries()) {
    if (one.figures === undefined || one.figures.size > 0) continue;
    endTotals(scope, day);
    Object.assign(one, { figures: undefined, final: false, exported: undefined, totalled: undefined });
  }
}

export async function take(step: Step): Promise<void> {
  const scope = scopes[step.scope] as Scope;
  const { db } = bundle.store;
  if (step.n % 3 === 0) early.push(await drawFetchToken(db));
  switch (step.what) {
    case "load":
      return load(scope, step);
    case "late":
      return load(scope, step, { fetchToken: early[step.n % early.length] as FetchToken });
    case "provisional":
      return load(scope, step, { settleAfterMs: NEVER_MS });
    case "export":
      return compare(scope, step, await drawFetchToken(db));
    case "overtaken": {
      const fetchToken = await drawFetchToken(db);
      await load(scope, step);
      return compare(scope, { ...step, change: [] }, fetchToken);
    }
    case "total":
      return scope.stride === "day" ? total(scope, step) : undefined;
    case "invalidate":
      return invalidate(scope);
    case "prune": {
      await sql`update usage.source set created_at = ${new Date(0)}`.execute(db);
      await pruneHistory(bundle.store, { sourceId, keepDays: 0 });
    }
  }
}

export type Proved = { reconciled: number | null; totals: number | null; later: number | null };

export function expected(): Map<string, Proved> {
  return new Map(
    scopes.flatMap((scope) =>
      scope.days.map((day, n): [string, Proved] => {
        const isInvalidated = [...scope.contradictions.values()].some(({ from, to }) => from <= n && n < to);
        const isProvable =
          day.figures !== undefined && day.final && day.differing.size === 0 && !isInvalidated;
        const reconciled = (isProvable && day.exported?.at) || null;
        const totals = (isProvable && day.totalled?.at) || null;
        const later = reconciled === null && totals === null ? null : Math.max(reconciled ?? 0, totals ?? 0);
        return [`${iso(n).slice(0, 10)} ${scope.workspaceId} ${scope.stride}`, { reconciled, totals, later }];
      }),
    ),
  );
}
