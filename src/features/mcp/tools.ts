import { z } from "zod";
import type { Config } from "../../core/base/config.ts";
import { UsageError } from "../../core/base/errors.ts";
import { isDay } from "../../core/domain/time/days.ts";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import { amountText } from "../../core/domain/usage/amount.ts";
import { METER_NAME } from "../../core/domain/usage/meter.ts";
import type { Database, Store } from "../../core/store/db/database.ts";
import { inSnapshot } from "../../core/store/db/snapshot.ts";
import { grainOf, keyOf, listReporting, queryOf, type View } from "../../core/store/db/views.ts";
import { type UsageSource, usageSources } from "../../core/store/figures/sources.ts";
import { countRestatements } from "../../core/store/proof/restatement-counts.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { maskedActor } from "../../core/store/work/operator-actions.ts";
import { listDifferences } from "../activity/difference-list.store.ts";
import { listMoments, type Moment } from "../activity/timeline.store.ts";
import { factOf } from "../alerts/conditions.ts";
import { begunMonth, unknownName } from "../catalog/named.ts";
import { billTotals, describeTotal, describeUnloaded, lineName, lineState } from "../costs/bill.ts";
import { laterCosts } from "../costs/closed-costs.store.ts";
import { changedMonths } from "../costs/month-adjustments.store.ts";
import { readMonthBill } from "../costs/month-bill.store.ts";
import { describeUnusual, unusualLately } from "../figures/unusual.ts";
import { readComparison } from "../invoice/comparison.store.ts";
import { invoiceNumbered, notCompared } from "../invoice/explain-invoice.ts";
import { causeRows, differenceText } from "../invoice/explanation.ts";
import { reportOnSources } from "../status/advice.ts";
import { type Found, MOST_BYTES } from "./page.ts";
import { queryAsReader, type Reader } from "./query-as-reader.store.ts";

export interface Sources {
  readonly config: Config;
  readonly store: Store;
  readonly db: Database;
  readonly reader: Reader;
}

export interface Tool<Shape extends z.ZodRawShape = z.ZodRawShape> {
  readonly about: string;
  readonly input: Shape;
  readonly facts: z.ZodRawShape;
  /** Name and items of the list that `Found.rows` becomes. */
  readonly list: readonly [name: string, item: z.ZodType];
  /** May leave out the rows before the cursor. */
  readonly response: (from: Sources, input: z.output<z.ZodObject<Shape>>, cursor?: number) => Promise<Found>;
}

function tool<Shape extends z.ZodRawShape>(definition: Tool<Shape>): Tool {
  return definition as unknown as Tool;
}

/** Rows and bytes of a page. */
const QUERY_LIMITS = { rows: 500, bytes: MOST_BYTES, statementMs: 5_000 } as const;
const MOST_CHANGES = 50;

const SOURCE = z.string().nullish().describe("Slug of the source. Needed where there are several.");
const DAY = z.string().refine(isDay, "it is not a day such as 2026-03-01");
const text = z.string();
const textOrNull = z.string().nullable();
const records = z.array(z.looseObject({}));

export const TOOLS = {
  list_views: tool({
    about: "The views that a query may read, each with its grain, its key and its meaning.",
    input: {},
    facts: {},
    list: ["views", z.looseObject({ view: text, about: text })],
    response: async (from) => {
      const views = await readableViews(from);
      return { facts: {}, rows: views.map((view) => ({ view: nameOf(view), about: view.comment })) };
    },
  }),

  describe_view: tool({
    about:
      "The columns of a view, each with its type and its meaning, and an example. Read it before you query the view.",
    input: { view: z.string().describe("Its name, with or without its schema.") },
    facts: {
      view: text,
      about: text,
      grain: textOrNull.describe("What one row is."),
      key: z.array(text).describe("Columns that together name one row."),
      example: text.describe("A statement for the tool query."),
    },
    list: ["columns", z.looseObject({ column: text, type: text, about: text })],
    response: async (from, input) => {
      const views = await readableViews(from);
      const name = input.view.replace(/^.*\.|\(.*$/g, "");
      const view = views.find((one) => one.name === name);
      if (view === undefined) {
        const known = views.map((one) => one.name);
        throw unknownName({
          code: "view_unknown",
          what: "readable view",
          name,
          known,
          next: "See list_views.",
        });
      }
      const { comment: about, columns } = view;
      const example = exampleOf(view, await storeNow(from.db));
      return {
        facts: { view: nameOf(view), about, grain: grainOf(view) ?? null, key: keyOf(view), example },
        rows: columns.map(({ name: column, type, comment }) => ({ column, type, about: comment })),
      };
    },
  }),

  query: tool({
    about: `Runs one SELECT of Postgres over the views and returns its columns and rows, at most ${QUERY_LIMITS.rows} at once. A statement has ${QUERY_LIMITS.statementMs / 1000} s. Aggregate and filter in SQL, and order the rows if you read them in parts.`,
    input: {
      sql: z
        .string()
        .refine((sql) => sql.length <= 20_000, "it is longer than 20,000 characters")
        .describe("One SELECT."),
    },
    facts: { columns: z.array(text).describe("Empty if there is no row.") },
    list: ["rows", z.array(z.unknown())],
    response: ({ store, reader }, { sql }, start = 0) =>
      queryAsReader(store, reader, { statement: sql, start }, QUERY_LIMITS),
  }),

  bill: tool({
    about:
      "What a calendar month is charged, line by line, with its total: an estimate from the imported prices, not an invoice. A cost of null is unknown, which is not zero.",
    input: { source: SOURCE, month: z.string().describe("Such as 2026-03. It has begun.") },
    facts: {
      source: text,
      month: text,
      totals: z.array(z.looseObject({ currency: text, cost: text })),
      says: text.describe("The total in words, and what it lacks."),
    },
    list: ["lines", z.looseObject({ line: text, state: text, cost: textOrNull, currency: textOrNull })],
    response: ({ db: pool }, input) =>
      inSnapshot(pool, async (db) => {
        const { slug, dataStart } = sourceNamed(await usageSources(db), input.source);
        const month = begunMonth(input.month, await storeNow(db));
        const bill = await readMonthBill(db, { source: slug, dataStart, month });
        const { lines, unloaded } = bill;
        const totals = billTotals(lines).map(({ currency, cost }) => ({ currency, cost: amountText(cost) }));
        return {
          facts: {
            source: slug,
            month: month.name,
            totals,
            says: [describeTotal(bill), describeUnloaded(unloaded)]
              .filter((one) => one !== undefined)
              .join("\n"),
          },
          rows: lines.map((line) => ({ ...line, line: lineName(line), state: lineState(line) })),
        };
      }),
  }),

  explain_invoice: tool({
    about:
      "Why an invoice of the platform differs from our bill of the same usage. Each cause is our bill priced again with one thing changed; all amounts of the list add up to the difference. A row with is_explained false is a part of the remainder.",
    input: { source: SOURCE, number: z.string().describe("The number of the invoice.") },
    facts: {
      source: text,
      says: text.describe("The difference in words."),
      currency: text,
      total: text,
      bill: text,
      difference: text,
      remainder: text.describe("What no cause explains."),
      settlement: z.looseObject({}).nullable(),
    },
    list: ["causes", z.looseObject({ why: text, amount: text })],
    response: async ({ db, reader }, { source, number }) => {
      const invoice = await invoiceNumbered(db, { number, source: source ?? undefined });
      const compared = await readComparison(db, invoice, { masked: reader === "usage_reader_masked" });
      if (compared === undefined) throw notCompared(number);
      const { total, bill, difference, remainder, settlement } = compared;
      return {
        facts: {
          ...{ source: invoice.source, says: differenceText(compared), currency: invoice.currency },
          ...{ total, bill, difference, remainder, settlement },
        },
        rows: causeRows(compared).map((row, at) => ({
          ...row,
          is_explained: compared.causes[at]?.cause !== "unexplained",
        })),
      };
    },
  }),

  why_changed: tool({
    about: `What changed figures of a range of days: restatements of final figures and differences from the platform's export and totals (the newest ${MOST_CHANGES}; restatements counts all, by meter and measure), what closed months have more now, and new prices, closes and settings of all days, here and in the platform's audit log.`,
    input: {
      source: SOURCE,
      from_day: DAY.describe("First day (UTC)."),
      to_day: DAY.describe("Day after the last one (UTC)."),
      workspace_id: z.string().nullish().describe("Only changes of this workspace."),
    },
    facts: {
      source: text,
      closed_months_with_other_traces: records,
      closed_months_with_other_costs: records,
      restatements: records,
    },
    list: ["changes", z.looseObject({ change: text, at: text })],
    response: ({ db: pool, reader }, { source, from_day: from, to_day: to, workspace_id }) =>
      inSnapshot(pool, async (db) => {
        const { slug, sourceId, workspaces } = sourceNamed(await usageSources(db), source);
        const workspace = workspaces.find(({ id }) => id === workspace_id);
        if (workspace === undefined && workspace_id != null) {
          const known = workspaces.map(({ id }) => id);
          throw unknownName({
            code: "workspace_unknown",
            what: "known workspace",
            name: workspace_id,
            known,
          });
        }
        const about = { sourceId, from, to, workspace: workspace?.key };
        const masked = reader === "usage_reader_masked";
        const differences = await listDifferences(db, {
          source: slug,
          onlyLeft: false,
          from,
          to,
          workspaceId: workspace?.id,
          most: MOST_CHANGES,
          masked,
        });
        const kinds = ["prices", "close", "configuration", "platform_change"] as const;
        const events = await listMoments(db, { source: slug, kinds, most: MOST_CHANGES });
        return {
          facts: {
            source: slug,
            closed_months_with_other_traces: await changedMonths(db, about),
            closed_months_with_other_costs: await laterCosts(db, about),
            restatements: await countRestatements(db, about),
          },
          rows: [
            ...differences.map(({ cursor: _, says, ...difference }) => ({ change: says, ...difference })),
            ...events
              .map((event) => (masked ? withMaskedActor(event) : event))
              .map(({ kind, at, details }) => ({ change: kind, at, details })),
          ],
        };
      }),
  }),

  status: tool({
    about:
      "How far each source is loaded, final, proved and closed, its unusual days of the last month, which alerts fire, and what an operator should do next.",
    input: {},
    facts: {},
    list: ["sources", z.looseObject({ source: text, advice: text, command: textOrNull })],
    response: async ({ config, db, reader }) => {
      const now = await storeNow(db);
      const masked = reader === "usage_reader_masked";
      const reports = await reportOnSources(db, { config, now, queues: { problem: null }, masked });
      const unusual = await unusualLately(db);
      const rows = reports.map(({ status, trust, lastSync, alerts, advice }) => ({
        source: status.source,
        data_start: trust.dataStart,
        final_up_to: trust.finalUntil,
        proved_up_to: trust.provedUntil,
        newest_closed_month: trust.closedMonth,
        months_not_closed_before: trust.monthsNotClosed,
        daily_figures_not_loaded: trust.gapDays,
        not_known_whether_counted: trust.unknownMeters.map(({ meter, evidence, since }) => {
          return { usage: METER_NAME[meter], since, why: evidence };
        }),
        open_differences: status.openDifferences,
        restatements: status.restatements,
        last_sync: lastSync && { at: lastSync.startedAt, outcome: lastSync.outcome },
        unusual_days: unusual.filter(({ source }) => source === status.source).map(describeUnusual),
        alerts: alerts.map(factOf),
        advice: advice.sentence,
        command: advice.command ?? null,
      }));
      return { facts: {}, rows };
    },
  }),
} as const;

async function readableViews({ db, reader }: Sources): Promise<View[]> {
  return (await listReporting(db, reader)).filter(({ isReadable }) => isReadable);
}

function nameOf({ schema, name, isAsOf }: View): string {
  return `${schema}.${name}${isAsOf ? "(as_of timestamptz)" : ""}`;
}

function exampleOf(view: View, now: number): string {
  const today = now - (now % DAY_MS);
  const range = { from: today - 7 * DAY_MS, to: today + DAY_MS };
  const asOf = view.isAsOf ? { asOf: today } : {};
  const columns = view.columns.slice(0, 8);
  return `${queryOf({ view, columns, range, where: [], ...asOf })} LIMIT 20`;
}

function withMaskedActor(event: Moment): Moment {
  if (event.kind === "platform_change") return { ...event, details: { ...event.details, userName: null } };
  if (event.kind !== "close" || event.details.by === null) return event;
  const { by } = event.details;
  const actor = by.actor === null ? null : maskedActor(by.actor);
  return { ...event, details: { ...event.details, by: { ...by, actor } } };
}

/** Errors: `source_unknown`, `source_unnamed`. */
function sourceNamed(sources: readonly UsageSource[], name: string | null | undefined): UsageSource {
  const known = sources.map(({ slug }) => slug);
  const source =
    name == null && sources.length === 1 ? sources[0] : sources.find(({ slug }) => slug === name);
  if (source !== undefined) return source;
  if (name != null) throw unknownName({ code: "source_unknown", what: "stored source", name, known });
  throw new UsageError({
    code: "source_unnamed",
    message: `${sources.length} sources are stored, and the request names none.`,
    next:
      sources.length === 0
        ? "`usage-etl sync --inline` loads the first one."
        : `Name one source: ${known.join(", ")}.`,
  });
}
