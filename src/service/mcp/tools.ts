import { z } from "zod";
import { billTotals, describeTotal, lineName, lineState } from "../../domain/bill/bill.ts";
import { daysOfMonth } from "../../domain/months/month.ts";
import { DIFFERENCE_KINDS } from "../../domain/proof/difference.ts";
import { addDays, addMonths, type Days, dayOf, daysBetween, intervalOf } from "../../domain/time/days.ts";
import { subtract } from "../../domain/time/intervals.ts";
import { amountText } from "../../domain/usage/amount.ts";
import { METER, METER_NAME } from "../../domain/usage/meter.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import { UsageError } from "../../errors.ts";
import { begunMonth } from "../../pipeline/months/close.ts";
import { monthBill } from "../../store/bill/bill-lines.ts";
import { coverageLines } from "../../store/coverage/coverage-lines.ts";
import { trustOfSources } from "../../store/coverage/trust.ts";
import { COUNTED, meterOfCounted } from "../../store/figures/counted.ts";
import { type LoadedWorkspace, loadedForCosts } from "../../store/figures/loaded.ts";
import { findNamed } from "../../store/figures/named.ts";
import type { UsageSource } from "../../store/figures/sources.ts";
import { listDifferences, SAYERS } from "../../store/proof/difference-list.ts";
import { LoadedTime } from "../web/figures/loaded-time.ts";
import { MOST_DAYS, shownOf, type UsageQuery } from "../web/figures/question.ts";
import { loadedOf } from "../web/figures/report.ts";
import { questionWithAnswer } from "../web/figures/usage.ts";
import { claimsOf, closedOf, daysOf, figuresOf, spansOf } from "./figures.ts";
import {
  type Asked,
  BY,
  FIND,
  RANGE,
  ROWS,
  rangeOf,
  SOURCE,
  sourceNamed,
  WORKSPACE,
  workspaceIn,
} from "./input.ts";

/** A question that a client may ask. */
export interface Tool<Input extends z.ZodObject = z.ZodObject> {
  readonly title: string;
  readonly about: string;
  /** What is not a field of it is refused: a misspelt filter would answer another question. */
  readonly input: Input;
  readonly answer: (asked: Asked, input: z.output<Input>) => Promise<Record<string, unknown>>;
}

function tool<Input extends z.ZodObject>(given: Tool<Input>): Tool {
  return given as unknown as Tool;
}

const FIGURES = {
  source: SOURCE,
  by: BY.default("workspace"),
  ...RANGE,
  workspace: WORKSPACE,
  find: FIND.optional().describe("Only ids with this text in their name or id have a line of their own."),
  sort: z.enum(["amount", "growth"]).default("amount").describe("What comes first."),
  rows: ROWS,
};

const usage = tool({
  title: "Usage",
  about:
    "How much was used in a range of days: traces and what else is counted, by workspace, project, user or API key, compared with the range before. The lines add up to the total.",
  input: z.strictObject({
    ...FIGURES,
    measure: z.enum(COUNTED).default("traces").describe("What is counted."),
    per: z.enum(["hour", "day", "month"]).optional().describe("Adds the figure of each bucket to each line."),
  }),
  answer: figures,
});

const cost = tool({
  title: "Cost",
  about:
    "What the usage of a range of days costs at the imported prices: an estimate, no invoice. By project, user or API key for at most 92 days. Costs of a month are those of its close once its costs are closed.",
  input: z.strictObject({
    ...FIGURES,
    currency: z
      .string()
      .regex(/^[A-Z]{3}$/, "it is not a currency such as USD")
      .optional(),
    per: z.enum(["day", "month"]).optional().describe("Adds the figure of each bucket to each line."),
  }),
  answer: (asked, input) => figures(asked, { ...input, measure: "cost" }),
});

type FiguresInput = Omit<UsageQuery, "rows" | "source"> & {
  readonly source?: string | undefined;
  readonly from: string;
  readonly to: string;
  readonly rows: number;
};

async function figures(asked: Asked, input: FiguresInput) {
  const source = sourceNamed(input.source, asked);
  const range = rangeOf(input);
  const { rows, per, currency, ...rest } = input;
  const workspace = workspaceIn(source, input.workspace)?.id;
  // Of hours only the latest are kept, so a sum is one of days.
  const isShort = daysBetween(range) <= MOST_DAYS.day;
  const query = {
    ...rest,
    per: per ?? (isShort ? "day" : "month"),
    currency,
    workspace,
    source: source.slug,
  };
  const question = await questionWithAnswer(asked.db, query, { sources: [source], now: asked.now });
  if (currency !== undefined && currency !== question.currency) {
    throw new UsageError({
      code: "currency_unknown",
      message: `No price is in ${currency}.`,
      next: `Ask for ${question.currency}, or leave the currency out.`,
    });
  }
  return figuresOf(asked, question, { byBucket: per !== undefined, rows });
}

const bill = tool({
  title: "Bill of a month",
  about:
    "What a calendar month is charged, line by line, with its total: an estimate from the imported prices, no invoice. A cost of null is not known, which is not zero.",
  input: z.strictObject({
    source: SOURCE,
    month: z.string().describe("Such as 2026-03. It has begun."),
  }),
  answer: async (asked, input) => {
    const { db, now } = asked;
    const source = sourceNamed(input.source, asked);
    const month = begunMonth(input.month, now);
    const days = daysOfMonth(month);
    const lines = await monthBill(db, { source: source.slug, monthStart: month.start });
    const loaded = await loadedForCosts(db, cellsOf(source), days);
    const shown = shownOf(days, { dataStart: source.dataStart, today: dayOf(now) });
    const { isFinal } = timeOf(loaded, now).stateOf(intervalOf(shown));
    return {
      source: source.slug,
      month: month.name,
      ...daysOf(days),
      totals: billTotals(lines).map(({ currency, cost }) => ({ currency, cost: amountText(cost) })),
      says: describeTotal(lines, { month, dataStart: source.dataStart }),
      lines: lines.map((line) => ({
        what: lineName(line),
        sku: line.sku,
        quantity: line.quantity,
        unit_price: line.unitPrice,
        cost: line.cost,
        currency: line.currency,
        state: lineState(line),
        is_final: line.isFinal,
        is_proved: line.isProved,
        is_closed: line.isClosed,
      })),
      ...(await closedOf(asked, source.sourceId, { ...days, measure: "cost", isFinal })),
      missing: missingIn(loaded, shown, now),
    };
  },
});

const coverage = tool({
  title: "Coverage",
  about:
    "How far figures can be trusted: which days are loaded, final and proved, which are missing, by workspace, and up to which day everything is final, proved and closed.",
  input: z.strictObject({
    source: SOURCE,
    by: BY.default("workspace"),
    measure: z.enum(COUNTED).default("traces").describe("What is counted."),
    ...RANGE,
  }),
  answer: async (asked, input) => {
    const { db, now } = asked;
    const source = sourceNamed(input.source, asked);
    const { measure, by } = input;
    const meter = meterOfCounted(measure);
    if (!METER[meter].groupings.includes(by)) {
      throw new UsageError({
        code: "dimension_unknown",
        message: `The platform does not split ${METER_NAME[meter]} by ${by}.`,
        next: `Choose one of: ${METER[meter].groupings.join(", ")}.`,
      });
    }
    const days = shownOf(rangeOf(input), { dataStart: source.dataStart, today: dayOf(now) });
    const range = intervalOf(days);
    const isEmpty = range.start === range.end;
    const loaded = await loadedOf(
      db,
      { ...cellsOf(source), by, counted: measure },
      { per: "day", span: days },
    );
    const lines = isEmpty ? [] : await coverageLines(db, { source: source.slug, range, meter });
    const trust = (await trustOfSources(db)).find((one) => one.source === source.slug);
    return {
      source: source.slug,
      by,
      measure,
      ...daysOf(days),
      workspaces: loaded.length,
      ...claimsOf(timeOf(loaded, now).stateOf(range)),
      ...(await closedOf(asked, source.sourceId, { ...days, measure })),
      missing: missingIn(loaded, days, now),
      provisional: spansOf(loaded.map((one) => ({ ...one, spans: timeOf([one], now).provisionalIn(range) }))),
      final_not_proved: spansOf(loaded.map((one) => ({ ...one, spans: subtract(one.final, one.proved) }))),
      workspace_days: lines
        .filter(({ groupBy }) => groupBy === by)
        .map(({ stride, status, days: count, firstDay, lastDay }) => ({
          stride,
          status,
          days: count,
          first_day: firstDay,
          last_day: lastDay,
        })),
      // Of traces by every dimension. Each is the day after the last one.
      traces_up_to: trust && {
        data_start: trust.dataStart,
        final: trust.finalUntil,
        proved: trust.provedUntil,
        closed: trust.closedMonth === null ? null : addMonths(trust.closedMonth, 1),
        months_not_closed_before: trust.monthsNotClosed,
      },
      notes: [
        ...(isEmpty
          ? [`There is nothing to show. Days from ${source.dataStart} to today can be asked for.`]
          : []),
        ...(loaded.length === 0
          ? [`No ${METER_NAME[meter]} of ${source.slug} are loaded, which is not zero.`]
          : []),
      ],
    };
  },
});

const differences = tool({
  title: "Differences",
  about:
    "Where the platform's export or totals differ from what is stored, and which final counts changed later (restatements), the newest first.",
  input: z.strictObject({
    source: SOURCE,
    from: RANGE.from.optional(),
    to: RANGE.to.optional(),
    by: BY.optional(),
    workspace: WORKSPACE,
    says: z
      .enum(SAYERS)
      .optional()
      .describe("Who says another number: the export, a total, or a later answer."),
    state: z
      .enum(["left", "all"])
      .default("left")
      .describe("left: open ones and restatements. all: repaired ones too."),
    rows: ROWS,
  }),
  answer: async (asked, input) => {
    const source = sourceNamed(input.source, asked);
    const workspace = workspaceIn(source, input.workspace);
    const { from = source.dataStart, to = addDays(dayOf(asked.now), 1) } = input;
    const days = rangeOf({ from, to }, { most: Number.POSITIVE_INFINITY });
    const found = await listDifferences(asked.db, {
      source: source.slug,
      says: input.says,
      onlyLeft: input.state === "left",
      ...days,
      groupBy: input.by,
      workspaceId: workspace?.id,
      most: input.rows + 1,
      masked: asked.masked,
    });
    return {
      source: source.slug,
      ...daysOf(days),
      differences: found.slice(0, input.rows).map((one) => ({
        says: one.says,
        found_at: one.at,
        by: one.groupBy,
        measure: one.measure,
        stride: one.stride,
        from: one.from,
        to: one.to,
        workspace_id: one.workspaceId,
        workspace_name: one.workspaceName,
        id: one.dimensionId,
        name: one.dimensionName,
        what: DIFFERENCE_KINDS[one.kind],
        state: one.state,
        stored: one.storedTraces,
        other: one.otherTraces,
        export_says: one.exportSays,
      })),
      ...(await closedOf(asked, source.sourceId, { ...days, measure: "traces", workspace })),
      notes: cutNote(found.length > input.rows, input.rows),
    };
  },
});

const find = tool({
  title: "Find by name",
  about: "The ids of workspaces, projects, users and API keys by a part of their name or id.",
  input: z.strictObject({
    source: SOURCE,
    find: FIND,
    kind: BY.optional().describe("Only this kind. Default: all four."),
    rows: ROWS,
  }),
  answer: async (asked, input) => {
    const source = sourceNamed(input.source, asked);
    const groupings = input.kind === undefined ? GROUPINGS : [input.kind];
    const found = await findNamed(asked.db, {
      sourceId: source.sourceId,
      groupings,
      find: input.find,
      masked: asked.masked,
      most: input.rows + 1,
    });
    const notes = cutNote(found.length > input.rows, input.rows);
    return {
      source: source.slug,
      found: found.slice(0, input.rows).map(({ by, id, name, firstSeen, lastSeen }) => ({
        kind: by,
        id,
        name,
        first_seen: firstSeen,
        last_seen: lastSeen,
      })),
      notes: found.length === 0 ? [`Nothing has ${JSON.stringify(input.find)} in its name or id.`] : notes,
    };
  },
});

/** By the name that a client calls. */
export const TOOLS = { find, usage, cost, bill, coverage, differences } as const;

function cellsOf({ sourceId, slug }: UsageSource) {
  return { sourceId, source: slug, by: "workspace", workspaceId: null } as const;
}

function timeOf(parts: readonly LoadedWorkspace[], now: number): LoadedTime {
  return new LoadedTime(parts, { now, per: "day" });
}

function missingIn(loaded: readonly LoadedWorkspace[], days: Days, now: number) {
  const range = intervalOf(days);
  return spansOf(loaded.map((one) => ({ ...one, spans: timeOf([one], now).missingIn(range) })));
}

function cutNote(isCut: boolean, rows: number): string[] {
  return isCut ? [`Only the first ${rows} are listed. Ask for more rows, or narrow the question.`] : [];
}
