import type { UnpricedDay } from "../../../domain/bill/price.ts";
import type { Days } from "../../../domain/time/days.ts";
import { DAY_MS } from "../../../domain/time/stride.ts";
import type { Interval } from "../../../domain/time/window.ts";
import { type Amount, amountOf, amountOfStored, percentOf } from "../../../domain/usage/amount.ts";
import { describedByDay, unusualLately } from "../../../pipeline/unusual.ts";
import type { Database } from "../../../store/db/database.ts";
import { bucketsOfIds, bucketTotals, restatedBuckets } from "../../../store/figures/buckets.ts";
import { type CostLine, openCosts, unpricedIn, usageCosts } from "../../../store/figures/costs.ts";
import { seriesTermsOf } from "../../../store/figures/counted.ts";
import {
  type LoadedWorkspace,
  loadedDays,
  loadedForCosts,
  loadedHours,
  loadedMeterDays,
} from "../../../store/figures/loaded.ts";
import type { UsageCells } from "../../../store/figures/records.ts";
import { usageSums } from "../../../store/figures/sums.ts";
import { type Bucket, bucketsOf, LoadedTime, type State } from "./loaded-time.ts";
import type { Question } from "./question.ts";

/** A sum with what it can claim. */
export interface Figure extends State {
  /** Of what is loaded; less than all where it is not complete. */
  readonly amount: Amount;
}

export interface Line {
  readonly kind: "id" | "none" | "unloaded" | "adjustment" | "rest" | "total";
  readonly id: string | null;
  readonly name: string | null;
  /** How many ids it stands for. */
  readonly ids: number;
  readonly sum: Figure;
  /** Per cent of the total, to a tenth. */
  readonly share: number | null;
  /** Of what is compared with the earlier range. */
  readonly compared: Amount;
  /** Per cent since the earlier range; null unless both are complete. */
  readonly change: number | null;
  readonly before: Figure;
  /** Whether all of both is loaded, and nothing of it is still under way. */
  readonly isComparable: boolean;
  /** In the order of the report's buckets. */
  readonly course: readonly Figure[];
}

export interface Report {
  readonly question: Question;
  readonly buckets: readonly Bucket[];
  /** The first ids, then those without an id, then the rest. */
  readonly lines: readonly Line[];
  readonly total: Line;
  /** The total of each bucket of the earlier range, in order. */
  readonly courseBefore: readonly (Figure & { readonly at: string })[];
  /** Buckets in which a count changed when it was final already. Of costs: not known. */
  readonly restated: ReadonlySet<string>;
  /** Of traces by day: what is unusual about a day, in sentences. */
  readonly unusual: ReadonlyMap<string, string>;
  /** Workspaces of which a part of the range is missing. */
  readonly gaps: readonly (Pick<LoadedWorkspace, "workspaceId" | "name"> & {
    readonly missing: readonly Interval[];
  })[];
  readonly provisional: readonly Interval[];
  /** Of costs: the usage that they leave out. */
  readonly unpriced: readonly UnpricedDay[];
  /** How many workspaces the figures are about. */
  readonly workspaces: number;
}

interface Sum {
  readonly kind: Line["kind"];
  readonly id: string | null;
  readonly name: string | null;
  readonly ids: number;
  readonly amount: Amount;
  readonly before: Amount;
  readonly byBucket: ReadonlyMap<string, Amount>;
}

/**
 * Reads everything that the page and its files show of a question. `db`: a snapshot, since a load between two statements
 * would make a sum, its course and what it claims contradict each other.
 */
export async function reportOf(
  db: Database,
  question: Question,
  { now, masked }: { now: number; masked: boolean },
): Promise<Report> {
  const { source, by, range, ended, before, per, measure, workspace } = question;
  const of: UsageCells = {
    sourceId: source.sourceId,
    source: source.slug,
    by,
    workspaceId: workspace?.key ?? null,
    ...(measure === "cost" ? {} : { counted: measure }),
  };
  const span = { from: before.from, to: range.to };
  // Costs follow from the usage by workspace of all that is priced; a dimension divides them.
  const parts = await (measure === "cost" ? loadedForCosts(db, of, span) : loadedOf(db, of, { per, span }));
  const time = new LoadedTime(parts, { now, per });
  // Costs are final as their workspace's are. Divided, they are proved where the dimension that divides them is too.
  const dividing =
    measure === "cost" ? new LoadedTime(await loadedOf(db, of, { per, span }), { now, per }) : time;
  const asked = { question, masked, byHours: parts.some((part) => part.byHours) };
  const {
    sums,
    open,
    courseBefore,
    restated = [],
  } = range.from === range.to ? NOTHING : await (measure === "cost" ? costsOf : tracesOf)(db, of, asked);
  const buckets = bucketsOf(range, per);
  const unpriced =
    measure === "cost"
      ? await unpricedIn(db, { source: source.slug, workspaceId: workspace?.id ?? null, range: span })
      : [];
  const allUnpricedDays = daysIn(unpriced);
  const unpricedDays = new Map(
    [...Map.groupBy(unpriced, ({ workspaceId }) => workspaceId)].map(([id, own]) => [id, daysIn(own)]),
  );
  const total: Sum = {
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
  const ofWorkspace = new Map(parts.map((part) => [part.workspaceId, new LoadedTime([part], { now, per })]));
  // Where the dimension is not loaded, the cost of its ids stands in a line of its own.
  const unloaded = sums.find(({ kind }) => kind === "unloaded");
  const lineOf = (sum: Sum): Line => {
    const own = (by === "workspace" && sum.id !== null && ofWorkspace.get(sum.id)) || time;
    const isDivided = sum.kind === "id" || sum.kind === "none" || sum.kind === "rest";
    // Which ids used what has no price is known of workspaces only.
    const uncosted =
      by === "workspace" && sum.kind === "id" ? unpricedDays.get(sum.id ?? "") : allUnpricedDays;
    const state = (interval: Interval, isOpen: boolean, elsewhere: Amount | undefined): State => {
      const { isComplete, isFinal, isProved, isUnderWay } = own.stateOf(interval);
      const isUnpriced = uncosted !== undefined && hasDayIn(uncosted, interval);
      const isWhole = isComplete && !isUnpriced && !(isDivided && (elsewhere ?? 0n) !== 0n);
      const isSettled = isWhole && !isOpen;
      return {
        isComplete: isWhole,
        isFinal: isSettled && isFinal,
        isProved: isSettled && isProved && dividing.stateOf(interval).isProved,
        isUnderWay,
        isUnpriced,
      };
    };
    const [inRange, inBefore] = [intervalOf(range), intervalOf(before)];
    const figure: Figure = { amount: sum.amount, ...state(inRange, open.size > 0, unloaded?.amount) };
    const known = state(inBefore, false, unloaded?.before);
    const isRead = before.from < before.to;
    const early: Figure = { amount: sum.before, ...known, isComplete: known.isComplete && isRead };
    const whole = state(intervalOf(ended), false, unloaded?.amount);
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
      course: buckets.map((bucket) => ({
        amount: sum.byBucket.get(bucket.at) ?? 0n,
        ...state(bucket, open.has(bucket.at), unloaded?.byBucket.get(bucket.at)),
      })),
    };
  };
  return {
    question,
    buckets,
    restated: new Set(restated),
    unusual: measure === "traces" && per === "day" ? await unusualOf(db, question) : new Map(),
    courseBefore: bucketsOf(before, per).map((bucket) => {
      const { isComplete, ...state } = time.stateOf(bucket);
      const isWhole = isComplete && !hasDayIn(allUnpricedDays, bucket);
      return { at: bucket.at, amount: courseBefore.get(bucket.at) ?? 0n, ...state, isComplete: isWhole };
    }),
    workspaces: parts.length,
    unpriced: unpriced.filter(({ day }) => day >= range.from),
    // What stands for no id, now or before, is no line.
    lines: sums
      .filter(({ kind, amount, before: early, byBucket }) => {
        const isNothing = amount === 0n && [...byBucket.values()].every((one) => one === 0n);
        return kind === "id" || !isNothing || early !== 0n;
      })
      .map(lineOf),
    total: lineOf(total),
    gaps: parts
      .map((part) => ({
        workspaceId: part.workspaceId,
        name: part.name,
        missing: ofWorkspace.get(part.workspaceId)?.missingIn(intervalOf(range)) ?? [],
      }))
      .filter(({ missing }) => missing.length > 0),
    provisional: time.provisionalIn(intervalOf(range)),
  };
}

async function unusualOf(db: Database, { source, workspace }: Question): Promise<Map<string, string>> {
  const found = (await unusualLately(db)).filter(
    (one) => one.source === source.slug && (workspace === undefined || one.workspaceId === workspace.id),
  );
  return describedByDay(found);
}

/** What is loaded of what the cells count, as the views of its buckets show it. */
export function loadedOf(db: Database, of: UsageCells, { per, span }: { per: Question["per"]; span: Days }) {
  const { counted = "traces" } = of;
  if (counted !== "traces") return loadedMeterDays(db, { ...of, counted }, span);
  return per === "hour" ? loadedHours(db, of, span) : loadedDays(db, of, span);
}

interface Asked {
  readonly question: Question;
  readonly masked: boolean;
  readonly byHours: boolean;
}

interface Sums {
  readonly sums: Sum[];
  /** Buckets whose figures are not final, although their days may be. */
  readonly open: ReadonlySet<string>;
  /** Of the earlier range, by bucket. */
  readonly courseBefore: ReadonlyMap<string, Amount>;
  readonly restated?: readonly string[];
}

const NOTHING: Sums = { sums: [], open: new Set(), courseBefore: new Map() };

async function tracesOf(
  db: Database,
  cells: UsageCells,
  { question, masked, byHours }: Asked,
): Promise<Sums> {
  const { per, before, rows: top, find, sort } = question;
  const { measure: counted } = seriesTermsOf(cells.counted ?? "traces");
  const of = { ...cells, byHours };
  const range = { ...question.range, per };
  // Whole months are read from the month totals, whatever the size of the buckets.
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
  const courseBefore = new Map(early.map(({ bucket, traces }) => [bucket, amountOfStored(counted, traces)]));
  return { sums, open: new Set(), courseBefore, restated };
}

async function costsOf(db: Database, of: UsageCells, { question, masked }: Asked): Promise<Sums> {
  const { range, before, per, currency, rows: top, find, sort } = question;
  if (currency === undefined || per === "hour") return { sums: [], open: new Set(), courseBefore: new Map() };
  const listed = { before, top, find, masked, sort };
  const rows = await usageCosts(db, of, { ...range, ...listed, per, currency });
  const byBucketOf = (own: readonly CostLine[]) =>
    new Map(own.flatMap(({ bucket, cost }) => (bucket === null ? [] : [[bucket, amountOf(cost)] as const])));
  const { before: early = [], ...lines } = Object.groupBy(rows, ({ kind, id }) =>
    kind === "before" ? kind : `${kind} ${id}`,
  );
  const sums = Object.values(lines).flatMap((own = []): Sum[] => {
    const whole = own.find(({ bucket }) => bucket === null);
    if (whole === undefined) return [];
    const [amount, amountBefore] = [amountOf(whole.cost), amountOf(whole.costBefore)];
    return [
      { ...whole, kind: whole.kind as Sum["kind"], amount, before: amountBefore, byBucket: byBucketOf(own) },
    ];
  });
  const open = await openCosts(db, of, { ...range, per, currency });
  return { sums, open, courseBefore: byBucketOf(early) };
}

/** UTC midnights of the days, epoch milliseconds. */
function daysIn(unpriced: readonly UnpricedDay[]): ReadonlySet<number> {
  return new Set(unpriced.map(({ day }) => Date.parse(day)));
}

function hasDayIn(days: ReadonlySet<number>, { start, end }: Interval): boolean {
  if (days.size === 0) return false;
  for (let day = start; day < end; day += DAY_MS) if (days.has(day)) return true;
  return false;
}

function sumOf(amounts: readonly Amount[]): Amount {
  return amounts.reduce((all, one) => all + one, 0n);
}

export function intervalOf({ from, to }: Days): Interval {
  return { start: Date.parse(from), end: Date.parse(to) };
}
