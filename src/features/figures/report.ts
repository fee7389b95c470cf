import { type Days, intervalOf } from "../../core/domain/time/days.ts";
import { subtract } from "../../core/domain/time/intervals.ts";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import { type Amount, amountCut, amountOfStored, percentOf } from "../../core/domain/usage/amount.ts";
import { listedKeys, type ShownKey } from "../../core/store/catalog/listed-keys.ts";
import type { Database } from "../../core/store/db/database.ts";
import { seriesTermsOf } from "../../core/store/figures/counted.ts";
import {
  type LoadedWorkspace,
  loadedDays,
  loadedForCosts,
  loadedHours,
  loadedMeterDays,
} from "../../core/store/figures/loaded.ts";
import type { UsageCells } from "../../core/store/figures/records.ts";
import { usageSums } from "../../core/store/figures/sums.ts";
import { openCosts, unpricedIn, type ViewLine, viewLines } from "../costs/costs.store.ts";
import type { UnpricedDay } from "../costs/price.ts";
import { type DividingDimension, NO_COST_CENTER } from "../owners/owner.ts";
import { appliedOwners } from "../owners/owners.store.ts";
import { bucketsOfIds, bucketTotals, restatedBuckets, workspacesOfIds } from "./buckets.store.ts";
import { type Bucket, bucketsOf, LoadedTime, type State } from "./loaded-time.ts";
import type { Question } from "./question.ts";
import { describedByDay, unusualLately } from "./unusual.ts";

export interface Figure extends State {
  /** The loaded amount: not the whole one unless `isComplete`. */
  readonly amount: Amount;
}

interface Named {
  readonly kind: "id" | "none" | "unloaded" | "adjustment" | "rest" | "total";
  readonly id: string | null;
  readonly name: string | null;
  readonly ids: number;
}

export interface Line extends Named {
  readonly sum: Figure;
  readonly share: number | null;
  readonly compared: Amount;
  /** Percent since the earlier range. Null unless both are complete. */
  readonly change: number | null;
  readonly before: Figure;
  readonly isComparable: boolean;
  readonly trend: readonly Figure[];
}

export interface Report {
  readonly question: Question;
  readonly buckets: readonly Bucket[];
  readonly lines: readonly Line[];
  readonly total: Line;
  readonly trendBefore: readonly (Figure & { readonly at: string })[];
  /** Buckets in which a final count has changed. Always empty for costs. */
  readonly restated: ReadonlySet<string>;
  readonly unusual: ReadonlyMap<string, string>;
  /** Facts about each API key in the platform's lists. */
  readonly keys: ReadonlyMap<string, ShownKey>;
  /** The workspace of each project, by the project's id. */
  readonly workspaceOf: ReadonlyMap<string, string>;
  readonly gaps: readonly (Pick<LoadedWorkspace, "workspaceId" | "name"> & {
    readonly missing: readonly Interval[];
  })[];
  readonly provisional: readonly Interval[];
  /** For owners: the dimension that divides traces, and the time in which only the workspaces are loaded. */
  readonly divided?: { readonly by: DividingDimension; readonly missing: readonly Interval[] };
  readonly unpriced: readonly UnpricedDay[];
  readonly workspaces: number;
}

interface Sum extends Named {
  readonly amount: Amount;
  readonly before: Amount;
  readonly byBucket: ReadonlyMap<string, Amount>;
}

/** `db` is a snapshot. A load between two statements would make a sum contradict its trend or its state. */
export async function reportOf(
  db: Database,
  question: Question,
  { now, masked }: { now: number; masked: boolean },
): Promise<Report> {
  const { range, before, per, measure } = question;
  const of = cellsOf(question);
  const loaded = await timesOf(db, of, { question, now });
  const { parts, time, ofWorkspace } = loaded;
  const requested = { question, masked, byHours: parts.some((part) => part.byHours) };
  const isOfView = measure === "cost" || question.by === "owner";
  const read =
    range.from === range.to ? NOTHING : await (isOfView ? viewSumsOf : tracesOf)(db, of, requested);
  const { sums, open, trendBefore, restated = [] } = read;
  const buckets = bucketsOf(range, per);
  const unpriced = await unpricedOf(db, question);
  const total = { ...totalOf(sums, buckets), ...read.total };
  const unloaded = sums.find(({ kind }) => kind === "unloaded");
  const ids = question.by === "api_key" ? sums.flatMap(({ id }) => id ?? []) : [];
  const keys = ids.length === 0 ? [] : await listedKeys(db, { sourceId: question.source.sourceId, ids });
  const facts = { question, buckets, loaded, unpriced, open, unloaded, total };
  return {
    question,
    buckets,
    restated: new Set(restated),
    unusual: measure === "traces" && per === "day" ? await unusualOf(db, question) : new Map(),
    keys: new Map(keys.map((key) => [key.id, key])),
    workspaceOf: question.by === "project" ? await workspacesOfProjects(db, of, sums) : new Map(),
    trendBefore: bucketsOf(before, per).map((bucket) => {
      const { isComplete, ...state } = time.stateOf(bucket);
      const isWhole = isComplete && !hasDayIn(unpriced.days, bucket);
      return { at: bucket.at, amount: trendBefore.get(bucket.at) ?? 0n, ...state, isComplete: isWhole };
    }),
    workspaces: parts.length,
    unpriced: unpriced.all.filter(({ day }) => day >= range.from),
    lines: sums.filter(isLine).map((sum) => lineOf(sum, facts)),
    total: lineOf(total, facts),
    gaps: parts
      .map((part) => ({
        workspaceId: part.workspaceId,
        name: part.name,
        missing: ofWorkspace.get(part.workspaceId)?.missingIn(intervalOf(range)) ?? [],
      }))
      .filter(({ missing }) => missing.length > 0),
    provisional: time.provisionalIn(intervalOf(range)),
    ...(loaded.dividedBy && {
      divided: {
        by: loaded.dividedBy,
        missing: subtract(loaded.dividing.missingIn(intervalOf(range)), time.missingIn(intervalOf(range))),
      },
    }),
  };
}

function workspacesOfProjects(db: Database, { sourceId }: UsageCells, sums: readonly Sum[]) {
  return workspacesOfIds(db, { sourceId, ids: sums.flatMap(({ id }) => id ?? []) });
}

function cellsOf({ source, by, measure, workspace }: Question): UsageCells {
  return {
    sourceId: source.sourceId,
    source: source.slug,
    // Owners divide the usage of the workspaces.
    by: by === "owner" ? "workspace" : by,
    workspaceId: workspace?.key ?? null,
    ...(measure === "cost" ? {} : { counted: measure }),
  };
}

function spanOf({ before, range }: Question): Days {
  return { from: before.from, to: range.to };
}

interface Times {
  readonly parts: readonly LoadedWorkspace[];
  readonly time: LoadedTime;
  readonly ofWorkspace: ReadonlyMap<string, LoadedTime>;
  /** For costs and owners: the dimension that divides them. They are proved only where it is proved too. */
  readonly dividing: LoadedTime;
  readonly dividedBy: DividingDimension | undefined;
}

async function timesOf(
  db: Database,
  of: UsageCells,
  { question, now }: { question: Question; now: number },
): Promise<Times> {
  const { per, measure, by } = question;
  const span = spanOf(question);
  const timeOf = (parts: readonly LoadedWorkspace[]) => new LoadedTime(parts, { now, per });
  const isCost = measure === "cost";
  // Costs depend on all priced usage by workspace. A dimension only divides them.
  const parts = await (isCost ? loadedForCosts(db, of, span) : loadedOf(db, of, { per, span }));
  const time = timeOf(parts);
  const dividedBy = by === "owner" ? ((await appliedOwners(db))?.divideBy ?? "project") : undefined;
  const dividing = { ...of, ...(dividedBy && { by: dividedBy }) };
  return {
    parts,
    time,
    ofWorkspace: new Map(parts.map((part) => [part.workspaceId, timeOf([part])])),
    dividing: isCost || dividedBy ? timeOf(await loadedOf(db, dividing, { per, span })) : time,
    dividedBy,
  };
}

/** For costs: the usage without a price. Days are UTC midnights in epoch ms. */
interface Unpriced {
  readonly all: readonly UnpricedDay[];
  readonly days: ReadonlySet<number>;
  readonly byWorkspace: ReadonlyMap<string, ReadonlySet<number>>;
}

async function unpricedOf(db: Database, question: Question): Promise<Unpriced> {
  const { measure, source, workspace } = question;
  const of = { source: source.slug, workspaceId: workspace?.id ?? null, range: spanOf(question) };
  const all = measure === "cost" ? await unpricedIn(db, of) : [];
  const daysOf = (own: readonly UnpricedDay[]) => new Set(own.map(({ day }) => Date.parse(day)));
  const byWorkspace = Map.groupBy(all, ({ workspaceId }) => workspaceId);
  return {
    all,
    days: daysOf(all),
    byWorkspace: new Map([...byWorkspace].map(([id, own]) => [id, daysOf(own)])),
  };
}

function totalOf(sums: readonly Sum[], buckets: readonly Bucket[]): Sum {
  return {
    kind: "total",
    id: null,
    name: null,
    ids: sums.reduce((all, { ids }) => all + ids, 0),
    amount: sumOf(sums.map(({ amount }) => amount)),
    before: sumOf(sums.map((one) => one.before)),
    byBucket: new Map(
      buckets.map(({ at }) => [at, sumOf(sums.map(({ byBucket }) => byBucket.get(at) ?? 0n))]),
    ),
  };
}

function isLine({ kind, amount, before, byBucket }: Sum): boolean {
  const isNothing = amount === 0n && [...byBucket.values()].every((one) => one === 0n);
  return kind === "id" || !isNothing || before !== 0n;
}

interface Facts extends Pick<Sums, "open"> {
  readonly question: Question;
  readonly buckets: readonly Bucket[];
  readonly loaded: Times;
  readonly unpriced: Unpriced;
  /** The cost on days on which the dimension is not loaded. It has a line of its own. */
  readonly unloaded: Sum | undefined;
  readonly total: Sum;
}

function lineOf(sum: Sum, facts: Facts): Line {
  const { question, buckets, open, unloaded, total } = facts;
  const { range, before, ended } = question;
  const state = claimsOf(sum, facts);
  const figure: Figure = {
    amount: sum.amount,
    ...state(intervalOf(range), { isOpen: open.size > 0, elsewhere: unloaded?.amount }),
  };
  const known = state(intervalOf(before), { isOpen: false, elsewhere: unloaded?.before });
  const isRead = before.from < before.to;
  const early: Figure = { amount: sum.before, ...known, isComplete: known.isComplete && isRead };
  const whole = state(intervalOf(ended), { isOpen: false, elsewhere: unloaded?.amount });
  const isComparable = whole.isComplete && !whole.isUnderWay && early.isComplete;
  const compared = ended.to < range.to ? sum.amount - (sum.byBucket.get(ended.to) ?? 0n) : sum.amount;
  return {
    kind: sum.kind,
    id: sum.id,
    name: sum.name,
    ids: sum.ids,
    sum: figure,
    before: early,
    isComparable,
    share: percentOf(sum.amount, total.amount),
    compared,
    change: isComparable ? percentOf(compared - sum.before, sum.before) : null,
    trend: buckets.map((bucket) => ({
      amount: sum.byBucket.get(bucket.at) ?? 0n,
      ...state(bucket, { isOpen: open.has(bucket.at), elsewhere: unloaded?.byBucket.get(bucket.at) }),
    })),
  };
}

/**
 * The state of a sum in an interval. `isOpen`: the sum may still change, even if its days are final. `elsewhere`: the
 * amount that is not divided among the groups.
 */
function claimsOf({ kind, id }: Sum, { question, loaded, unpriced }: Facts) {
  const isOfWorkspaces = question.by === "workspace";
  const isOfOwners = question.by === "owner";
  const own = (isOfWorkspaces && id !== null && loaded.ofWorkspace.get(id)) || loaded.time;
  const isDivided = kind === "id" || kind === "none" || kind === "rest";
  // Unpriced usage is known only by workspace, not by other dimensions.
  const uncosted = isOfWorkspaces && kind === "id" ? unpriced.byWorkspace.get(id ?? "") : unpriced.days;
  return (
    interval: Interval,
    { isOpen, elsewhere = 0n }: { isOpen: boolean; elsewhere: Amount | undefined },
  ): State => {
    const { isComplete, isFinal, isProved, isUnderWay } = own.stateOf(interval);
    const isUnpriced = uncosted !== undefined && hasDayIn(uncosted, interval);
    const isWhole = isComplete && !isUnpriced && !(isDivided && elsewhere !== 0n);
    const isSettled = isWhole && !isOpen;
    const dividing = loaded.dividing.stateOf(interval);
    return {
      isComplete: isWhole,
      // Final figures of a workspace still move between owners until the dividing dimension is final.
      isFinal: isSettled && isFinal && (dividing.isFinal || !isOfOwners),
      isProved: isSettled && isProved && dividing.isProved,
      isUnderWay,
      isUnpriced,
    };
  };
}

async function unusualOf(db: Database, { source, workspace }: Question): Promise<Map<string, string>> {
  const found = (await unusualLately(db)).filter(
    (one) => one.source === source.slug && (workspace === undefined || one.workspaceId === workspace.id),
  );
  return describedByDay(found);
}

function loadedOf(db: Database, of: UsageCells, { per, span }: { per: Question["per"]; span: Days }) {
  const { counted = "traces" } = of;
  if (counted !== "traces") return loadedMeterDays(db, { ...of, counted }, span);
  return per === "hour" ? loadedHours(db, of, span) : loadedDays(db, of, span);
}

interface Requested {
  readonly question: Question;
  readonly masked: boolean;
  readonly byHours: boolean;
}

interface Sums {
  readonly sums: Sum[];
  /** Exact totals. Undefined: `sums` are exact too. */
  readonly total?: Pick<Sum, "amount" | "before" | "byBucket">;
  readonly open: ReadonlySet<string>;
  readonly trendBefore: ReadonlyMap<string, Amount>;
  readonly restated?: readonly string[];
}

const NOTHING: Sums = { sums: [], open: new Set(), trendBefore: new Map() };

async function tracesOf(
  db: Database,
  cells: UsageCells,
  { question, masked, byHours }: Requested,
): Promise<Sums> {
  const { per, before, rows: top, find, sort } = question;
  const { measure: counted } = seriesTermsOf(cells.counted ?? "traces");
  const of = { ...cells, byHours };
  const range = { ...question.range, per };
  // Sums over whole months use the month totals, whatever the size of the buckets.
  const summed = { ...range, per: per === "hour" ? per : "month" } as const;
  const [rows, totals, early, restated] = await Promise.all([
    usageSums(db, of, { range: summed, before, top, find, masked, sort }),
    bucketTotals(db, of, range),
    before.from === before.to ? [] : bucketTotals(db, of, { ...before, per }),
    restatedBuckets(db, of, range),
  ]);
  const keys = rows.flatMap(({ key }) => (key === null ? [] : [key]));
  const named = Map.groupBy(await bucketsOfIds(db, of, { range, keys }), ({ key }) => key);
  const rest = new Map(totals.map(({ bucket, traces }) => [bucket, traces]));
  for (const { bucket, traces } of [...named.values()].flat())
    rest.set(bucket, (rest.get(bucket) ?? 0) - traces);
  const sums = rows.map((row): Sum => {
    const own =
      row.key === null
        ? [...rest]
        : (named.get(row.key) ?? []).map(({ bucket, traces }) => [bucket, traces] as const);
    return {
      ...row,
      amount: amountOfStored(counted, row.traces),
      before: amountOfStored(counted, row.tracesBefore),
      byBucket: new Map(own.map(([bucket, traces]) => [bucket, amountOfStored(counted, traces)])),
    };
  });
  const trendBefore = new Map(early.map(({ bucket, traces }) => [bucket, amountOfStored(counted, traces)]));
  return { sums, open: new Set(), trendBefore, restated };
}

async function viewSumsOf(db: Database, of: UsageCells, { question, masked }: Requested): Promise<Sums> {
  const { by, range, before, per, measure, currency, rows: top, find, sort } = question;
  const isCost = measure === "cost";
  if ((isCost && currency === undefined) || per === "hour") return NOTHING;
  const listed = { before, top, find, masked, sort };
  const wanted = { ...range, per, currency: isCost ? currency : undefined };
  const rows = await viewLines(db, { ...of, by }, { ...wanted, ...listed });
  const byBucketOf = (own: readonly ViewLine[]) =>
    new Map(
      own.flatMap(({ bucket, amount }) => (bucket === null ? [] : [[bucket, amountCut(amount)] as const])),
    );
  const {
    before: early = [],
    total: all,
    ...lines
  } = Object.groupBy(rows, ({ kind, id }) =>
    kind === "before" || kind === "total" ? kind : `${kind} ${id}`,
  );
  const amountsOf = (own: readonly ViewLine[] = []) => {
    const whole = own.find(({ bucket }) => bucket === null);
    return {
      amount: amountCut(whole?.amount),
      before: amountCut(whole?.amountBefore),
      byBucket: byBucketOf(own),
    };
  };
  const sums = Object.values(lines).flatMap((own = []): Sum[] => {
    const whole = own.find(({ bucket }) => bucket === null);
    if (whole === undefined) return [];
    const { id, name } = by === "owner" ? ownerOf(whole) : whole;
    return [{ kind: whole.kind as Sum["kind"], id, name, ids: whole.ids, ...amountsOf(own) }];
  });
  const open = isCost ? await openCosts(db, of, wanted) : new Set<string>();
  return { sums, open, trendBefore: byBucketOf(early), ...(all && { total: amountsOf(all) }) };
}

function ownerOf({ id }: ViewLine): Pick<Sum, "id" | "name"> {
  if (id === null) return { id: null, name: null };
  const [owner, costCenter] = JSON.parse(id) as [string, string];
  return { id: owner, name: costCenter === NO_COST_CENTER ? null : costCenter };
}

function hasDayIn(days: ReadonlySet<number>, { start, end }: Interval): boolean {
  if (days.size === 0) return false;
  for (let day = start; day < end; day += DAY_MS) if (days.has(day)) return true;
  return false;
}

function sumOf(amounts: readonly Amount[]): Amount {
  return amounts.reduce((all, one) => all + one, 0n);
}
