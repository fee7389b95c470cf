import { percentOf } from "../../core/domain/usage/amount.ts";
import { ALL_SOURCES } from "../../web/place.ts";
import type { Figure, Line, Report } from "./report.ts";

/** The sum of reports of several sources over the same days: lines of one kind, id and name are added up. */
export function mergedReport(reports: readonly [Report, ...Report[]]): Report {
  const [first, ...others] = reports;
  if (others.length === 0) return first;
  const total = sumOf(reports.map((one) => one.total));
  const lines = Map.groupBy(
    reports.flatMap((one) => one.lines),
    ({ kind, id, name }) => JSON.stringify([kind, id, name]),
  );
  const { source } = first.question;
  return {
    ...first,
    question: { ...first.question, source: { ...source, slug: ALL_SOURCES } },
    total,
    lines: [...lines.values()]
      .map((some) => sumOf(some as [Line, ...Line[]]))
      .map((one) => ({ ...one, share: percentOf(one.sum.amount, total.sum.amount) }))
      .sort((a, b) => (a.sum.amount < b.sum.amount ? 1 : -1)),
    trendBefore: first.trendBefore.map((one, n) => ({
      ...one,
      ...figuresOf(reports.map(({ trendBefore }) => trendBefore[n] ?? one)),
    })),
    restated: new Set(reports.flatMap(({ restated }) => [...restated])),
    unusual: new Map(),
    gaps: reports.flatMap(({ gaps }) => gaps),
    provisional: reports.flatMap(({ provisional }) => provisional),
    unpriced: reports.flatMap(({ unpriced }) => unpriced),
    workspaces: reports.reduce((all, { workspaces }) => all + workspaces, 0),
  };
}

function sumOf(lines: readonly Line[]): Line {
  const first = lines[0] as Line;
  const before = figuresOf(lines.map((one) => one.before));
  const compared = lines.reduce((sum, one) => sum + one.compared, 0n);
  const isComparable = lines.every((one) => one.isComparable);
  return {
    ...first,
    before,
    compared,
    isComparable,
    sum: figuresOf(lines.map(({ sum }) => sum)),
    ids: lines.reduce((all, { ids }) => all + ids, 0),
    change: isComparable ? percentOf(compared - before.amount, before.amount) : null,
    trend: first.trend.map((_, n) => figuresOf(lines.flatMap(({ trend }) => trend[n] ?? []))),
  };
}

function figuresOf(figures: readonly Figure[]): Figure {
  return {
    amount: figures.reduce((sum, { amount }) => sum + amount, 0n),
    isComplete: figures.every(({ isComplete }) => isComplete),
    isFinal: figures.every(({ isFinal }) => isFinal),
    isProved: figures.every(({ isProved }) => isProved),
    isUnderWay: figures.some(({ isUnderWay }) => isUnderWay),
    isUnpriced: figures.some(({ isUnpriced }) => isUnpriced === true),
  };
}
